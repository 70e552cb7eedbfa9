"""A log's segments in offset order; never changed but replaced, so that any thread may hold one."""

from bisect import bisect_right
from collections.abc import Iterable

from headrace.storage.segment import Segment


class SegmentList:
    """An ordered, immutable row of segments with at least one in it; the last is the active one."""

    __slots__ = ("_base_offsets", "all")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.all = tuple(segments)
        assert self.all
        self._base_offsets = [segment.base_offset for segment in self.all]

    def from_offset(self, offset: int) -> tuple[Segment, ...]:
        """The segment that may hold `offset`, and all behind it."""
        return self.all[max(0, bisect_right(self._base_offsets, offset) - 1) :]

    def floor(self, offset: int) -> Segment:
        """The segment that may hold `offset`."""
        return self.all[max(0, bisect_right(self._base_offsets, offset) - 1)]

    def after(self, segment: Segment) -> Segment | None:
        """The segment behind one."""
        slot = bisect_right(self._base_offsets, segment.base_offset)
        return self.all[slot] if slot < len(self.all) else None
