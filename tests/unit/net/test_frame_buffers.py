"""Receive buffers are counted while in use and used again afterwards; those that need more wait for their turn."""

from headrace.net.frame_buffers import SCANT_BYTES, SCRATCH_BYTES, FrameBuffers


class Frame:
    """A frame that begins with some bytes and wants to double."""

    def __init__(self, buffers: FrameBuffers, size: int, *, since: float) -> None:
        self.buffers = buffers
        self.buffer = buffers.take(size, filled=size)
        self.frame_since = since
        self.closed_for = ""

    def wait(self) -> None:
        self.buffers.wait(self, len(self.buffer))

    def grow(self) -> None:
        self.buffer = self.buffers.exchange(self.buffer, 2 * len(self.buffer))

    def close(self, reason: str) -> None:
        self.closed_for = reason
        self.end()

    def end(self) -> None:
        self.buffers.forget(self)
        self.buffers.give_back(self.buffer)


def test_a_served_frame_leaves_its_buffer_to_the_next() -> None:
    """Is the buffer of one frame used for the next that fits, and counted only while in use?"""
    buffers = FrameBuffers()
    first = buffers.take(1000)

    assert buffers.held_bytes == 1000
    buffers.give_back(first)
    assert buffers.held_bytes == 0
    assert buffers.take(500) is first
    assert buffers.held_bytes == 1000
    assert buffers.take(500) is not first


def test_spares_are_few_and_small() -> None:
    """Is no more kept than a few buffers, and no giant one?"""
    buffers = FrameBuffers()
    giant = buffers.take(50 * 1024 * 1024)
    many = [buffers.take(10) for _ in range(20)]
    for buffer in (giant, *many):
        buffers.give_back(buffer)

    again = [buffers.take(1) for _ in range(20)]

    assert len({id(buffer) for buffer in again} & {id(buffer) for buffer in many}) == 8
    assert giant not in again


def test_those_that_wait_grow_in_their_order() -> None:
    """Is the first that waits served first, and nobody past it, when others give back?"""
    buffers = FrameBuffers(1000)
    busy, first, second = (Frame(buffers, size, since=1.0) for size in (400, 300, 100))
    first.wait()
    second.wait()
    assert (300, 100) == (len(first.buffer), len(second.buffer))
    assert not buffers.fits(1)

    busy.end()

    # The second has the buffer that was given back, which is larger than it asked for and still fits.
    assert (600, 400) == (len(first.buffer), len(second.buffer))
    assert 1000 == buffers.held_bytes


def test_the_oldest_ends_if_nothing_can_go_on() -> None:
    """Is the oldest frame ended, and only when all wait, so that the newest never pays for the others?"""
    buffers = FrameBuffers(1000)
    newer, oldest, newest = Frame(buffers, 300, since=2.0), Frame(buffers, 400, since=1.0), Frame(buffers, 300, since=3)
    newest.wait()
    newer.wait()
    assert ["", "", ""] == [frame.closed_for for frame in (oldest, newer, newest)]

    oldest.wait()

    assert "queued.max.request.bytes" in oldest.closed_for
    assert ["", ""] == [newer.closed_for, newest.closed_for]
    # Room for one of the two is there; the one that waited longer has it, and will give it back.
    assert (300, 600) == (len(newer.buffer), len(newest.buffer))


def test_a_frame_too_large_for_all_the_room_ends() -> None:
    """Does a frame that is alone and still finds no room wait for nobody?"""
    buffers = FrameBuffers(1000)
    alone = Frame(buffers, 600, since=1.0)
    alone.wait()

    assert alone.closed_for
    assert buffers.held_bytes == 0


def test_little_is_read_while_frames_wait() -> None:
    """Can a connection that brings a new frame hold only little beyond the limit, and is that over afterwards?"""
    buffers = FrameBuffers(1000)
    busy, waiting = Frame(buffers, 500, since=1.0), Frame(buffers, 400, since=1.0)
    waiting.wait()

    assert len(buffers.scratch) == SCANT_BYTES
    assert len(buffers.take(50, filled=7)) == 7
    busy.end()
    assert len(buffers.scratch) == SCRATCH_BYTES
