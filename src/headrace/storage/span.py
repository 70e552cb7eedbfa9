"""A range of whole batches in one segment, promised but not yet read."""

from collections.abc import Callable

from headrace.model.errors import StorageFault
from headrace.storage.file_range import FileRange
from headrace.storage.residency import warm
from headrace.storage.segment import Segment

_EMPTY = memoryview(b"")
IN_PLACE_MIN = 64 * 1024
"""From this size on to copy bytes into a socket costs more than to have the kernel look up their pages."""


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
        return self._ask(self._segment.resident)

    def is_warm(self) -> bool:
        """Whether it is resident and somebody has looked at it since it came from the disk."""
        return self._ask(self._segment.is_warm)

    def _ask(self, question: Callable[[int, int], bool]) -> bool:
        try:
            return self.size == 0 or question(self._position, self.size)
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

    def piece(self) -> FileRange | memoryview:
        """The bytes for a socket: as they lie in the file where that is worth it; HOT."""
        if self.size < IN_PLACE_MIN:
            return self.view()
        try:
            return self._segment.piece(self._position, self.size)
        except OSError as problem:
            raise StorageFault(f"{self._segment.path()}: {problem}") from problem

    def bring(self, view: memoryview) -> memoryview:
        """What `view` gave, or a copy of it, so that nobody waits for the disk any more; blocking, for a thread."""
        return view if warm(view) else memoryview(self.load())

    def load(self) -> bytes:
        """The bytes by reading them; blocking, for a thread."""
        if self.size == 0:
            return b""
        try:
            return self._segment.read(self._position, self.size)
        except OSError as problem:
            raise StorageFault(f"{self._segment.path()}: {problem}") from problem
