"""The log cleaner: keeps of a compacted log the last value of each key.

A log has a clean head and a dirty tail, with the mark between them in `cleaner-offset-checkpoint`. A round reads as
much of the tail as the offset map holds, then rewrites everything up to there, small segments put together, and moves
the mark. What it may not touch: the active segment, what is not flushed or above the high watermark, what an open
transaction may yet take back, what is younger than min.compaction.lag.ms.

Who does what. The owner of the logs calls `pick`, lets a thread take one group after the other out of `clean`, and
calls `apply` on each before it asks for the next:

    plan = cleaner.pick(logs, now_ms)
    for group in cleaner.clean(plan):           # each step blocks for long: in a thread
        for segment in cleaner.apply(group):    # some renames and directory flushes
            segment.remove()                    # later, in a thread

One group at a time, because a second copy of the whole log might not fit on the disk. A crash anywhere leaves each
group either old or new (see replacement.py) and the mark too low at worst: then some of the work is done again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct, field

from headrace.model.errors import StorageFault
from headrace.model.log_config import LogConfig
from headrace.records.batch import BatchHeader, read_header
from headrace.records.compression import Bytes
from headrace.storage.cleaned_transactions import CleanedTransactions
from headrace.storage.compaction import Compaction, filler
from headrace.storage.deletion import DeletedSegment
from headrace.storage.file_names import CLEANED
from headrace.storage.files import Files, write_all
from headrace.storage.log import Log
from headrace.storage.offset_checkpoint import CLEANER_OFFSETS, note_offset, read_offsets
from headrace.storage.offset_index import RELATIVE_OFFSET_MAX
from headrace.storage.offset_map import OffsetMap
from headrace.storage.recovery import SEGMENT_BYTES_MAX
from headrace.storage.segment import Segment
from headrace.storage.time_index import ENTRY_BYTES as INDEX_ENTRY_BYTES

RETRY_MS = 5 * 60_000
"""How long a log is left alone after its cleaning failed."""

_WRITE_BYTES = 256 * 1024
"""Collected before a write: batches can be tiny."""
_BREATH_SECONDS = 0.0001
"""Long enough for the event loop to take the interpreter; less, and this thread would have it back first."""
_BATCH_WORK = 8
"""A batch by itself takes as long as this many records."""
_BREATH_WORK = 256
"""Records between two breaths, about a millisecond."""


class CleaningStopped(StorageFault):
    """The log went away or changed under the cleaner, or it was told to stop; nothing is lost but work."""


class CleanerLimits(Struct, frozen=True, kw_only=True):
    """How much the cleaner may take: Kafka's log.cleaner.dedupe.buffer.size and its companions."""

    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    dedupe_load_factor: float = 0.9
    io_bytes_per_second: float = float("inf")


class CleaningPlan(Struct, frozen=True, kw_only=True):
    """A log worth cleaning, and everything its cleaning needs to know, as of one moment on the owner's loop."""

    log: Log
    config: LogConfig
    segments: tuple[Segment, ...]
    """From the start of the log to the last one that may be touched."""
    first_dirty_offset: int
    end_offset: int
    dirty_ratio: float
    last_offsets: dict[int, int]
    last_epochs: dict[int, int]
    now_ms: int


class CleaningStatistics(Struct, kw_only=True):
    """What a round did, for whoever reports it."""

    end_offset: int = -1
    """Clean up to here; -1 until the round is through."""
    keys: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    unreadable_batches: int = 0


class CleanedGroup(Struct, kw_only=True):
    """Segments and the one that shall take their place."""

    log: Log
    new: Segment
    old: tuple[Segment, ...]
    tried: bool = False
    applied: bool = False


class _Pace(Struct):
    """Keeps the cleaner below its rate, and lets the event loop in between."""

    sleep: Callable[[float], None]
    bytes_per_second: float
    stopped: bool = False
    owed_seconds: float = 0.0
    work: int = 0

    def did(self, *, size: int, records: int = 0) -> None:
        """Note bytes moved and records looked at, and rest when it is time to."""
        self.owed_seconds += size / self.bytes_per_second
        self.work += records + _BATCH_WORK
        if self.work >= _BREATH_WORK:
            self.breathe()

    def breathe(self) -> None:
        """Let others run, for as long as the bytes moved so far are ahead of the rate."""
        if self.stopped:
            raise CleaningStopped("the cleaner was told to stop")
        self.sleep(max(self.owed_seconds, _BREATH_SECONDS))
        self.owed_seconds, self.work = 0.0, 0


class Cleaner:
    """The cleaner of one log directory; cleans one log at a time."""

    __slots__ = (
        "_busy",
        "_files",
        "_known",
        "_limits",
        "_not_before_ms",
        "_offsets",
        "_pace",
        "_path",
        "statistics",
    )

    def __init__(
        self, files: Files, directory: str, *, sleep: Callable[[float], None], limits: CleanerLimits | None = None
    ) -> None:
        """Blocking: reads the checkpoint; one that cannot be read means that everything is dirty."""
        self._files = files
        self._path = f"{directory}/{CLEANER_OFFSETS}"
        self._limits = limits or CleanerLimits()
        self._pace = _Pace(sleep, self._limits.io_bytes_per_second)
        self._not_before_ms: dict[str, int] = {}
        self._busy: str | None = None
        self._known: dict[str, Log] = {}
        """The logs as of the last `pick`."""
        self.statistics = CleaningStatistics()
        """Of the round at hand, or the last one."""
        try:
            self._offsets = read_offsets(files, self._path)
        except StorageFault:
            self._offsets = {}

    def first_dirty_offset(self, log: Log) -> int:
        """Where a log's dirty tail begins; a mark outside the log says nothing."""
        offset = self._offsets.get(log.name, log.log_start_offset)
        return offset if log.log_start_offset <= offset <= log.log_end_offset else log.log_start_offset

    def truncated(self, name: str, offset: int) -> None:
        """A log was cut: what grows there again is dirty."""
        if self._offsets.get(name, -1) > offset:
            self._offsets[name] = offset

    def stop(self) -> None:
        """Have a cleaning in a thread give up soon; for good."""
        self._pace.stopped = True

    # Choosing

    def pick(self, logs: Iterable[Log], now_ms: int) -> CleaningPlan | None:
        """The dirtiest of the compacted logs that are dirty enough, or None."""
        known = {log.name: log for log in logs}
        # What was said of a log that is gone must not be believed of the next one of its name.
        self._offsets = {
            name: offset
            for name, offset in self._offsets.items()
            if name in known and self._known.get(name, known[name]) is known[name]
        }
        self._known = known
        best: CleaningPlan | None = None
        for log in known.values():
            config = log.config
            if not config.cleanup_compact or log.name == self._busy or log.fault is not None:
                continue
            if now_ms < self._not_before_ms.get(log.name, now_ms):
                continue
            try:
                plan = self._plan(log, config, now_ms)
            except OSError:
                # A timestamp could not be read; whoever reads the log's data will say so aloud.
                self._not_before_ms[log.name] = now_ms + RETRY_MS
                continue
            if plan is not None and (best is None or plan.dirty_ratio > best.dirty_ratio):
                best = plan
        return best

    def _plan(self, log: Log, config: LogConfig, now_ms: int) -> CleaningPlan | None:
        """A log's cleaning if it is due."""
        first_dirty = self.first_dirty_offset(log)
        segments = log.segments()
        if segments[-1].base_offset <= first_dirty:
            return None
        producers = log.producers()
        limit = min(log.high_watermark, log.recovery_point, log.first_unstable_offset)
        touched = _cleanable(segments, first_dirty, limit, now_ms - max(config.min_compaction_lag_ms, 0), config)
        dirty = [segment for segment in touched if segment.end_offset > first_dirty]
        dirty_bytes = sum(segment.size for segment in dirty)
        if not dirty_bytes:
            return None
        ratio = dirty_bytes / sum(segment.size for segment in touched)
        if ratio <= config.min_cleanable_dirty_ratio and not _is_overdue(dirty, config, now_ms):
            return None
        return CleaningPlan(
            log=log,
            config=config,
            segments=tuple(touched),
            first_dirty_offset=first_dirty,
            end_offset=touched[-1].end_offset,
            dirty_ratio=ratio,
            last_offsets={p.producer_id: p.batches[-1].last_offset for p in producers if p.batches},
            last_epochs={p.producer_id: p.producer_epoch for p in producers if not p.batches},
            now_ms=now_ms,
        )

    # Cleaning

    def clean(self, plan: CleaningPlan) -> Iterator[CleanedGroup]:
        """The groups of a plan, each to be applied before the next is asked for; blocking.

        When all are applied the checkpoint is written. StorageFault if something fails; the log itself is never harmed.
        """
        assert self._busy is None, "one log at a time"
        self._busy = plan.log.name
        self.statistics = CleaningStatistics()
        try:
            yield from self._clean(plan)
        except (OSError, StorageFault) as problem:
            self._not_before_ms[plan.log.name] = plan.now_ms + RETRY_MS
            if isinstance(problem, FileNotFoundError):
                raise CleaningStopped(f"{plan.log.path}: a segment went away: {problem}") from problem
            if isinstance(problem, OSError):
                raise StorageFault(f"{plan.log.path}: cannot clean: {problem}") from problem
            raise
        finally:
            self._busy = None

    def apply(self, group: CleanedGroup) -> list[DeletedSegment]:
        """Put a cleaned group in its place; answers the old segments, to be removed later. None if the log changed."""
        group.tried = True
        deleted = group.log.replace_segments([group.new], group.old)
        group.applied = bool(deleted)
        return deleted

    def _clean(self, plan: CleaningPlan) -> Iterator[CleanedGroup]:
        compaction = self._map(plan)
        if compaction.end_offset <= plan.first_dirty_offset:
            raise CleaningStopped(f"{plan.log.path}: the dedupe buffer does not hold one batch's keys")
        touched = [segment for segment in plan.segments if segment.base_offset < compaction.end_offset]
        for old in _groups(touched, plan.config):
            group = CleanedGroup(log=plan.log, new=self._rewrite(plan, old, compaction), old=old)
            self._count(compaction)
            try:
                yield group
            finally:
                # Once it was tried, its names are the log's business: they may be all that is left of the data.
                if not group.tried:
                    group.new.remove()
            if not group.applied:
                raise CleaningStopped(f"{plan.log.path}: the log changed while it was cleaned")
        self.statistics.end_offset = compaction.end_offset
        self._offsets[plan.log.name] = compaction.end_offset
        if not plan.log.deleted:
            note_offset(self._files, self._path, plan.log.name, compaction.end_offset)

    def _map(self, plan: CleaningPlan) -> Compaction:
        """Learn the last offset of each key in the dirty tail, as far as there is room."""
        first_dirty = plan.first_dirty_offset
        offsets = OffsetMap(
            max_bytes=self._limits.dedupe_buffer_bytes,
            load_factor=self._limits.dedupe_load_factor,
            keys_max=plan.end_offset - first_dirty,
        )
        compaction = Compaction(
            offsets=offsets,
            end_offset=first_dirty,
            last_offsets=plan.last_offsets,
            last_epochs=plan.last_epochs,
            transactions=_transactions(plan, plan.segments[0].base_offset),
            now_ms=plan.now_ms,
            delete_retention_ms=plan.config.delete_retention_ms,
            max_decompressed_bytes=plan.config.max_decompressed_bytes,
            breathe=self._pace.breathe,
        )
        transactions = _transactions(plan, first_dirty)
        for segment in plan.segments:
            if segment.end_offset <= first_dirty:
                continue
            for header, batch in self._read(segment):
                if header.last_offset < first_dirty:
                    continue
                if not compaction.map_batch(header, batch, first_dirty, transactions):
                    return compaction
                compaction.end_offset = header.next_offset
            compaction.end_offset = segment.end_offset
        return compaction

    def _read(self, segment: Segment) -> Iterator[tuple[BatchHeader, memoryview]]:
        """A segment's batches at the allowed pace, through a descriptor of our own: the log may close its own."""
        reader = Segment(
            segment.files, segment.directory, segment.base_offset, size=segment.size, suffix=segment.suffix
        )
        for _, header, batch in reader.batches():
            self.statistics.bytes_read += header.size
            yield header, batch
            self._pace.did(size=header.size, records=header.record_count)

    def _rewrite(self, plan: CleaningPlan, old: Sequence[Segment], compaction: Compaction) -> Segment:
        """One new segment with what is left of the old ones, sealed and flushed under its .cleaned name."""
        log = plan.log
        new = Segment.create(log.files, log.path, old[0].base_offset, now_ms=plan.now_ms, suffix=CLEANED)
        new.configure(plan.config)
        try:
            writer = _Writer(new, sum(segment.size for segment in old))
            for segment in old:
                for header, batch in self._read(segment):
                    is_last = writer.unread_bytes == header.size
                    written = writer.add(compaction.compact(header, batch, is_last=is_last), batch)
                    self._pace.did(size=written)
                    if is_last and header.next_offset < old[-1].end_offset:
                        writer.add(filler(header, old[-1].end_offset), memoryview(b""))
            writer.flush()
            self.statistics.bytes_written += new.size
            for transaction in compaction.transactions.retained:
                new.aborted.note(transaction)
            compaction.transactions.retained.clear()
            new.seal()
            new.flush(with_indexes=True)
        except BaseException:
            new.remove()
            raise
        return new

    def _count(self, compaction: Compaction) -> None:
        self.statistics.keys = compaction.offsets.count
        self.statistics.records_read = compaction.records_read
        self.statistics.records_kept = compaction.records_kept
        self.statistics.unreadable_batches = compaction.unreadable_batches


class _Writer(Struct):
    """Collects batches for a new segment, writes them in big pieces and indexes each."""

    segment: Segment
    unread_bytes: int
    """What may yet come from the old segments; room is kept for it."""
    pending: list[Bytes] = field(default_factory=list)
    pending_bytes: int = 0

    def add(self, batch: Bytes | None, original: memoryview) -> int:
        """Take what is left of a batch, how many bytes; the original where a grown one would overfill the segment."""
        self.unread_bytes -= len(original)
        if batch is None:
            return 0
        size = self.segment.size + self.pending_bytes + len(batch)
        if len(batch) > len(original) and size + self.unread_bytes > SEGMENT_BYTES_MAX:
            batch = original
        self.pending.append(batch)
        self.pending_bytes += len(batch)
        if self.pending_bytes >= _WRITE_BYTES:
            self.flush()
        return len(batch)

    def flush(self) -> None:
        """Write what was collected."""
        segment = self.segment
        write_all(segment.file, b"".join(self.pending), segment.size)
        for batch in self.pending:
            header = read_header(batch)
            segment.note(segment.size, header)
            segment.size += header.size
        self.pending.clear()
        self.pending_bytes = 0


def _cleanable(
    segments: Sequence[Segment], first_dirty: int, limit: int, young_from_ms: int, config: LogConfig
) -> list[Segment]:
    """The segments from the log's start that may be touched: closed, below the limit, the dirty ones old enough."""
    touched = []
    for segment in segments[:-1]:
        if segment.end_offset > limit:
            break
        is_dirty = segment.end_offset > first_dirty
        if is_dirty and config.min_compaction_lag_ms > 0 and segment.max_timestamp()[0] > young_from_ms:
            break
        touched.append(segment)
    return touched


def _is_overdue(dirty: Iterable[Segment], config: LogConfig, now_ms: int) -> bool:
    """Whether something has been waiting for longer than max.compaction.lag.ms (KIP-354)."""
    until_ms = now_ms - max(config.max_compaction_lag_ms, 0)
    return until_ms > 0 and any(0 < segment.first_timestamp() < until_ms for segment in dirty)


def _groups(segments: Sequence[Segment], config: LogConfig) -> Iterator[tuple[Segment, ...]]:
    """Neighbours that together make at most one full segment, by bytes, index entries and offsets."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        size += segment.size
        index_bytes = size // max(config.index_interval_bytes, 1) * INDEX_ENTRY_BYTES
        if group and (
            size > config.segment_bytes
            or index_bytes > config.segment_index_bytes
            or segment.end_offset - 1 - group[0].base_offset > RELATIVE_OFFSET_MAX
        ):
            yield tuple(group)
            group, size = [], segment.size
        group.append(segment)
    if size:
        yield tuple(group)


def _transactions(plan: CleaningPlan, start_offset: int) -> CleanedTransactions:
    """The aborted transactions that a walk over the plan's segments may meet; blocking."""
    return CleanedTransactions(plan.log.aborted_transactions(start_offset, plan.end_offset))
