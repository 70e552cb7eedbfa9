"""A range of whole batches in one segment, promised but not yet read."""

from headrace.model.errors import StorageFault
from headrace.storage.segment import Segment

_EMPTY = memoryview(b"")


class Span:
    """What a read found: look at it in place, or load it in a thread if it is cold."""

    __slots__ = ("_position", "_segment", "base_offset", "end_offset", "size")

    def __init__(self, segment: Segment, position: int, size: int, base_offset: int, end_offset: int) -> None:
        self._segment = segment
        self._position = position
        self.size = size
        self.base_offset = base_offset
        """Where the first batch begins, maybe before the offset that was asked for; or compaction's gap before it."""
        self.end_offset = end_offset
        """Where the next read goes on."""

    def resident(self) -> bool:
        """Whether `view` would not wait for the disk; True if that cannot be told."""
        try:
            return self.size == 0 or self._segment.resident(self._position, self.size)
        except OSError as problem:
            raise StorageFault(f"{self._segment.path()}: {problem}") from problem

    def view(self) -> memoryview:
        """The bytes, without copying where the file is mapped; HOT."""
        if self.size == 0:
            return _EMPTY
        try:
            return self._segment.view(self._position, self.size)
        except OSError as problem:
            raise StorageFault(f"{self._segment.path()}: {problem}") from problem

    def load(self) -> bytes:
        """The bytes by reading them; blocking, for a thread."""
        if self.size == 0:
            return b""
        try:
            return self._segment.read(self._position, self.size)
        except OSError as problem:
            raise StorageFault(f"{self._segment.path()}: {problem}") from problem
