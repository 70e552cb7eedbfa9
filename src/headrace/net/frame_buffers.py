"""The receive buffers that the connections of one listener share.

One scratch buffer takes whatever arrives between frames. A frame that is not complete yet gets a buffer of its own;
when it has been served the buffer is kept for the next one, because a fresh megabyte costs more than filling it.
"""

from bisect import insort

SCRATCH_BYTES = 256 * 1024
FIRST_BYTES_MAX = 128 * 1024
"""A partial frame starts with no more than this, whatever size it announced, and doubles as its bytes arrive."""
_SPARES_MAX = 8
_SPARE_BYTES_MAX = 4 * 1024 * 1024


class FrameBuffers:
    """Scratch, buffers in use and spare ones."""

    __slots__ = ("_spares", "held_bytes", "scratch")

    def __init__(self) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.held_bytes = 0
        """In frames that are not complete yet."""
        self._spares: list[bytearray] = []
        """Smallest first."""

    def take(self, size: int) -> bytearray:
        """A buffer of at least `size` bytes, with whatever was in it; the largest spare, so that it need not grow."""
        fits = bool(self._spares) and len(self._spares[-1]) >= size
        buffer = self._spares.pop() if fits else bytearray(size)
        self.held_bytes += len(buffer)
        return buffer

    def give_back(self, buffer: bytearray) -> None:
        """The frame in this buffer has been served, or has grown out of it."""
        self.held_bytes -= len(buffer)
        if len(buffer) <= _SPARE_BYTES_MAX:
            insort(self._spares, buffer, key=len)
            if len(self._spares) > _SPARES_MAX:
                del self._spares[0]
