"""Receive buffers are counted while in use and used again afterwards."""

from headrace.net.frame_buffers import FrameBuffers


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
