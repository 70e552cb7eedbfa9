"""The receive buffers that the connections of one listener share.

One scratch buffer takes whatever arrives between frames. A frame that is not complete yet gets a buffer of its own;
when it has been served the buffer is kept for the next one, because a fresh megabyte costs more than filling it.
"""

SCRATCH_BYTES = 256 * 1024
FIRST_BYTES_MAX = 1024 * 1024
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

    def take(self, size: int) -> bytearray:
        """A buffer of at least `size` bytes; its content is whatever was in it before."""
        for place, spare in enumerate(self._spares):
            if len(spare) >= size:
                del self._spares[place]
                break
        else:
            spare = bytearray(size)
        self.held_bytes += len(spare)
        return spare

    def give_back(self, buffer: bytearray) -> None:
        """The frame in this buffer has been served, or has grown out of it."""
        self.held_bytes -= len(buffer)
        if len(self._spares) < _SPARES_MAX and len(buffer) <= _SPARE_BYTES_MAX:
            self._spares.append(buffer)
