"""The receive buffers that the connections of one listener share, and the limit on what they hold together.

One scratch buffer takes whatever arrives between frames. A frame that is not complete yet gets a buffer of its own;
when it has been served the buffer is kept for the next one, because a fresh megabyte costs more than filling it.

Where the limit is reached, a frame that needs more room waits for others to give back theirs, and its connection is
not read meanwhile; first come, first served. Only if every frame waits, so that none will ever give back, the oldest
is ended: never the one that merely came last.
"""

import sys
from bisect import insort
from typing import Protocol

SCRATCH_BYTES = 256 * 1024
FIRST_BYTES_MAX = 128 * 1024
"""A partial frame starts with no more than this, whatever size it announced, and doubles as its bytes arrive."""
SCANT_BYTES = 4 * 1024
"""What is read at once while frames wait for room: so much may each connection hold beyond the limit, and no more."""
_SPARES_MAX = 8
_SPARE_BYTES_MAX = 4 * 1024 * 1024


class Waiter(Protocol):
    """A connection whose frame waits for room."""

    frame_since: float

    def grow(self) -> None:
        """There is room now."""

    def close(self, reason: str) -> None:
        """There will be none; gives the buffer back."""


class FrameBuffers:
    """Scratch, buffers in use and spare ones."""

    __slots__ = (
        "_frames",
        "_limit_bytes",
        "_settling",
        "_spares",
        "_waiting",
        "_whole_scratch",
        "held_bytes",
        "scratch",
    )

    def __init__(self, limit_bytes: int = sys.maxsize) -> None:
        self._whole_scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.scratch = self._whole_scratch
        """All of it, or its scant beginning while frames wait."""
        self.held_bytes = 0
        """In frames that are not complete yet."""
        self._limit_bytes = limit_bytes
        self._frames = 0
        self._waiting: dict[Waiter, int] = {}
        """How much more each needs, in the order they came."""
        self._settling = False
        self._spares: list[bytearray] = []
        """Smallest first."""

    def take(self, size: int, *, filled: int = 0) -> bytearray:
        """A buffer for a frame's first bytes: `size`, or a larger spare; just what is `filled` where room is short."""
        buffer = self._buffer(size) if self.fits(size) else bytearray(filled)
        self._frames += 1
        self.held_bytes += len(buffer)
        return buffer

    def exchange(self, buffer: bytearray, size: int) -> bytearray:
        """A buffer of at least `size` bytes that begins with all of the other one's, which is given back."""
        larger = self._buffer(size, in_exchange=len(buffer))
        larger[: len(buffer)] = buffer
        self.held_bytes += len(larger) - len(buffer)
        self._spare(buffer)
        return larger

    def give_back(self, buffer: bytearray) -> None:
        """The frame in this buffer has been served, or is given up."""
        self._frames -= 1
        self.held_bytes -= len(buffer)
        self._spare(buffer)
        if self._waiting:
            self._settle()

    def fits(self, size: int) -> bool:
        """Whether `size` more bytes may be held; not while others wait for them."""
        return not self._waiting and self.held_bytes + size <= self._limit_bytes

    def wait(self, waiter: Waiter, size: int) -> None:
        """Let `waiter`, which is not read meanwhile, grow by `size` bytes as soon as they are there."""
        self._waiting[waiter] = size
        self.scratch = self._whole_scratch[:SCANT_BYTES]
        self._settle()

    def forget(self, waiter: Waiter) -> None:
        """This one needs no more."""
        self._waiting.pop(waiter, None)

    def _settle(self) -> None:
        """Let those go on for whom there is room; end the oldest if there is none, and nobody left to give it back."""
        if self._settling:
            return
        self._settling = True
        try:
            while self._waiting and self._settle_one():
                pass
        finally:
            self._settling = False
        if not self._waiting:
            self.scratch = self._whole_scratch

    def _settle_one(self) -> bool:
        first, size = next(iter(self._waiting.items()))
        if self.held_bytes + size <= self._limit_bytes:
            del self._waiting[first]
            first.grow()
            return True
        if len(self._waiting) < self._frames:
            return False
        oldest = min(self._waiting, key=lambda waiter: waiter.frame_since)
        del self._waiting[oldest]
        oldest.close("no room for incomplete requests (queued.max.request.bytes)")
        return True

    def _buffer(self, size: int, *, in_exchange: int = 0) -> bytearray:
        """The largest spare, so that it need not grow, or a new one; what is in it does not matter."""
        if self._spares:
            largest = len(self._spares[-1])
            if size <= largest and self.held_bytes - in_exchange + largest <= self._limit_bytes:
                return self._spares.pop()
        return bytearray(size)

    def _spare(self, buffer: bytearray) -> None:
        if len(buffer) <= _SPARE_BYTES_MAX:
            insort(self._spares, buffer, key=len)
            if len(self._spares) > _SPARES_MAX:
                del self._spares[0]
