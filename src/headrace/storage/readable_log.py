"""The part of a log that is read: which batches, from where to where, and what of them was aborted.

Everything here runs on the owner's event loop, but for what says otherwise. A reader that follows the log is served
from remembered positions; one that jumps needs an index and a few pages, which may have to come from the disk. A caller
that must not wait for that says so (`wait=False`), and has a thread `prefetch` when it is told `NotAtHand`.
"""

from collections.abc import Sequence

from headrace.model.errors import ErrorCode, HeadraceError, KafkaError, StorageFault
from headrace.model.log_config import LogConfig
from headrace.records.batch import CorruptBatch
from headrace.records.control import AbortedTransaction
from headrace.storage import time_search
from headrace.storage.corruption import CorruptLog
from headrace.storage.segment import Segment
from headrace.storage.segment_list import SegmentList
from headrace.storage.span import Span

_POSITIONS_MAX = 64
"""Remembered batch boundaries: one for each reader that follows the log, and the latest flushes."""
_OPEN_SEGMENTS_MAX = 3
"""Segments behind the active one that keep descriptor, mapping and indexes at a time."""


class NotAtHand(HeadraceError):
    """A read would have to wait for the disk, and was told not to."""


class ReadableLog:
    """A row of segments and the marks between which it may be read."""

    __slots__ = (
        "_active",
        "_has_aborted",
        "_open_segments",
        "_positions",
        "_segments",
        "config",
        "fault",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "name",
        "path",
        "recovery_point",
    )

    def __init__(
        self, path: str, config: LogConfig, *, start_offset: int, end_offset: int, recovery_point: int
    ) -> None:
        self.path = path
        self.name = path.rpartition("/")[2]
        self.log_start_offset = start_offset
        self.log_end_offset = end_offset
        self.recovery_point = recovery_point
        self.high_watermark = start_offset
        self.fault: str | None = None
        """Why the log takes nothing more; None while it is well."""
        self.config = config
        """The topic's settings; `configure` changes them."""
        self._segments: SegmentList
        self._active: Segment
        self._has_aborted = False
        self._positions: dict[int, tuple[Segment, int]] = {}
        self._open_segments: list[Segment] = []

    @property
    def size_bytes(self) -> int:
        """The batches' bytes in all segments."""
        return sum(segment.size for segment in self._segments.all)

    def segments(self) -> Sequence[Segment]:
        """The segments in offset order; the last is the active one."""
        return self._segments.all

    def read(
        self, offset: int, *, max_bytes: int, limit_offset: int, at_least_one: bool = True, wait: bool = True
    ) -> Span:
        """Whole batches from the one with `offset` on, of one segment, all below `limit_offset`; HOT.

        KafkaError(OFFSET_OUT_OF_RANGE) outside the log. With `at_least_one` the first batch comes even if too big.
        Without `wait` it is NotAtHand that comes where finding them needs the disk.
        """
        limit = min(limit_offset, self.log_end_offset)
        if self.fault is not None:
            limit = self._limit_of_broken(offset, limit)
        if not self.log_start_offset <= offset < limit:
            return self._read_nothing(offset)
        try:
            known = self._positions.get(offset)
            if known is not None and known[1] < known[0].size:
                segment, position = known
                base_offset = offset
            else:
                found = self._find(offset, wait=wait)
                if found is None:
                    return self._read_nothing(offset)
                segment, position, base_offset = found
            stop, end_offset = self._limit_position(segment, limit, wait=wait)
            if stop - position > max_bytes:
                stop, end_offset = self._cut(segment, position, stop, max_bytes, at_least_one=at_least_one, wait=wait)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
        if stop <= position:
            return self._read_nothing(offset)
        if end_offset <= offset:
            # A reader that went on there would read the same for ever.
            raise CorruptLog(f"{segment.path()}: the batches from {position} on end before offset {offset}")
        if stop < segment.size or segment is self._active:
            self._remember(end_offset, segment, stop)
        return Span(segment, position, stop - position, base_offset, end_offset)

    def _read_nothing(self, offset: int) -> Span:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.name} is not within {self.log_start_offset} to {self.log_end_offset}",
            )
        return Span(self._active, 0, 0, offset, offset)

    def _limit_of_broken(self, offset: int, limit: int) -> int:
        """In a broken log only what was flushed before can be trusted to be what the disk has."""
        if offset >= self.recovery_point:
            raise StorageFault(self.fault)
        return min(limit, self.recovery_point)

    def _find(self, offset: int, *, wait: bool) -> tuple[Segment, int, int] | None:
        """The first batch at or behind `offset`: compaction may have taken the one that held it, or all behind it."""
        for segment in self._segments.from_offset(offset):
            if segment.end_offset >= 0:
                self._keep_open(segment)
            if not wait and not segment.is_at_hand(offset):
                raise NotAtHand
            found = segment.find(offset)
            if found is not None:
                return segment, found[0], found[1]
        return None

    def _limit_position(self, segment: Segment, limit: int, *, wait: bool) -> tuple[int, int]:
        """Where reading in a segment must stop, and the offset there."""
        segment_end = segment.end_offset
        if segment_end < 0:
            segment_end = self.log_end_offset
        if limit >= segment_end:
            return segment.size, segment_end
        known = self._positions.get(limit)
        if known is not None and known[0] is segment:
            return known[1], limit
        if not wait and not segment.is_at_hand(limit):
            raise NotAtHand
        found = segment.find(limit)
        if found is None:
            return segment.size, limit
        # The limit may lie inside a batch, which is then not read; it is where reading goes on.
        stop, end_offset = found[0], min(limit, found[1])
        self._remember(end_offset, segment, stop)
        return stop, end_offset

    def _cut(
        self, segment: Segment, position: int, stop: int, max_bytes: int, *, at_least_one: bool, wait: bool
    ) -> tuple[int, int]:
        """Shorten a range to the whole batches that fit."""
        if not wait and not segment.has_cut_at_hand(position, max_bytes):
            raise NotAtHand
        cut, end_offset = segment.cut(position, stop, max_bytes)
        if cut > position or not at_least_one:
            return cut, end_offset
        header = segment.header_at(position)
        if header is None:
            raise CorruptLog(f"{segment.path()}: no batch at {position}")
        return position + header.size, header.last_offset + 1

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        """Keep a batch boundary: whoever read up to it will ask for it next."""
        positions = self._positions
        positions[offset] = (segment, position)
        if len(positions) > _POSITIONS_MAX:
            del positions[next(iter(positions))]

    def _keep_open(self, segment: Segment) -> None:
        """Let the segments that were not read for longest give up their descriptors and maps."""
        opened = self._open_segments
        if segment in opened:
            return
        opened.append(segment)
        if len(opened) > _OPEN_SEGMENTS_MAX:
            closed = opened.pop(0)
            self._positions = {key: value for key, value in self._positions.items() if value[0] is not closed}
            closed.release()

    def prefetch(self, offset: int, *, max_bytes: int, limit_offset: int) -> None:
        """Have the disk's part of such a read done, so that it can be had without waiting; blocking, any thread."""
        try:
            for segment in self._segments.from_offset(offset):
                if segment.prefetch(offset, max_bytes):
                    if segment.base_offset <= limit_offset < segment.end_offset:
                        segment.prefetch(limit_offset, max_bytes)
                    break
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
        self.aborted_transactions(offset, limit_offset)

    def aborted_transactions(
        self, start_offset: int, end_offset: int, *, wait: bool = True
    ) -> list[AbortedTransaction]:
        """The aborted transactions that touch [start, end), which a read_committed consumer must skip; HOT if none."""
        if not self._has_aborted:
            return []
        found: list[AbortedTransaction] = []
        try:
            for segment in self._segments.from_offset(start_offset):
                if segment.aborted.exists:
                    if not wait and not segment.aborted.is_at_hand:
                        raise NotAtHand
                    some, is_complete = segment.aborted.index.search(start_offset, end_offset)
                    found += some
                    if is_complete:
                        break
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
        return found

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int, int] | None:
        """Timestamp, offset and leader epoch of the first record that is not before a time; blocking, any thread."""
        try:
            return time_search.first_at(
                self._segments.all, timestamp_ms, self.log_start_offset, self.config.max_decompressed_bytes
            )
        except (OSError, CorruptBatch) as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem

    def offset_of_max_timestamp(self) -> tuple[int, int, int] | None:
        """Timestamp, offset and leader epoch of the latest record by its own time; blocking, any thread."""
        try:
            return time_search.latest(self._segments.all, self.log_start_offset, self.config.max_decompressed_bytes)
        except (OSError, CorruptBatch) as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
