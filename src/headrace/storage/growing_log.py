"""A log that grows: appends, segments that roll, the leader epochs noted on the way, and what is to be flushed.

One writer, the owner. What a log gives up again is in log.py.
"""

from collections.abc import Sequence
from threading import Lock
from zlib import crc32

from headrace.model.errors import StorageFault
from headrace.model.log_config import LogConfig
from headrace.model.producers import ProducerEntry
from headrace.records.batch import PLACE, BatchHeader
from headrace.records.control import AbortedTransaction
from headrace.storage import recovery
from headrace.storage.corruption import CorruptLog, Finding
from headrace.storage.files import Files, passes
from headrace.storage.flush_job import FlushJob
from headrace.storage.offset_index import RELATIVE_OFFSET_MAX
from headrace.storage.producer_journal import ProducerJournal
from headrace.storage.readable_log import ReadableLog
from headrace.storage.segment import Segment
from headrace.storage.segment_list import SegmentList

_NEVER = 2**63 - 1
_UNKNOWN = -1
"""A roll time still to be looked up; as a number it makes the next append do so."""


class GrowingLog(ReadableLog):
    """The part of a partition's log that adds to it."""

    __slots__ = (
        "_directory_synced",
        "_dirty",
        "_epochs",
        "_epochs_mark",
        "_epochs_written",
        "_generation",
        "_last_offset_max",
        "_name_changes",
        "_names_synced",
        "_producers",
        "_roll_after_ms",
        "_snapshots",
        "_structure",
        "cuts",
        "deleted",
        "files",
        "findings",
    )

    def __init__(
        self, files: Files, path: str, config: LogConfig, producers: ProducerJournal, loaded: recovery.Loaded
    ) -> None:
        self.files = files
        super().__init__(
            path,
            config,
            start_offset=loaded.log_start_offset,
            end_offset=loaded.log_end_offset,
            recovery_point=loaded.recovery_point,
        )
        self.findings: list[Finding] = loaded.findings
        """Harm to flushed data that recovery met; empty in a sound log."""
        self.cuts: list[Finding] = loaded.cuts
        """What recovery cut off because it was never flushed and is not whole."""
        self.deleted = False
        self._producers = producers
        self._epochs = loaded.epochs
        self._epochs_written = loaded.epochs_written
        self._epochs_mark = (-1, -1)
        self._snapshots = loaded.snapshots
        self._dirty: list[Segment] = loaded.dirty
        self._directory_synced = False
        self._name_changes = 1
        self._names_synced = 0
        self._generation = 0
        self._structure = Lock()
        """Held while the list of segments or a segment's name changes: the owner rolls, a thread cleans."""
        self._set_segments(SegmentList(loaded.segments))

    def configure(self, config: LogConfig) -> None:
        """Take over a topic's settings, which count from the next append on."""
        self.config = config
        for segment in self._segments.all:
            segment.configure(config)
        self._roll_after_ms = _UNKNOWN

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch the log knows, -1 if none."""
        return self._epochs.latest

    @property
    def generation(self) -> int:
        """Another number whenever the log was truncated."""
        return self._generation

    def producers(self) -> list[ProducerEntry]:
        """What is remembered of the log's producers just now."""
        return self._producers.entries()

    @property
    def first_unstable_offset(self) -> int:
        """From here on a transaction may still be undone; beyond every offset if there is none."""
        return self._producers.first_unstable_offset

    # Appending

    def append(self, batch: memoryview, header: BatchHeader, *, leader_epoch: int, now_ms: int) -> int:
        """Append one checked batch at the end of the log as its leader, and answer its base offset; HOT.

        The batch gets its offsets and epoch in place. StorageFault leaves the log as it was; if the disk has failed,
        and is not just full, the log takes nothing more.
        """
        base_offset = self.log_end_offset
        PLACE.pack_into(batch, 0, base_offset, header[1], leader_epoch)
        self._write(batch, base_offset + header[6], header[8], now_ms)
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, base_offset)
        return base_offset

    def _fits(self, headers: Sequence[BatchHeader]) -> bool:
        """Whether batches surely go into the active segment, all of them."""
        segment = self._active
        return (
            0 < segment.size <= self.config.segment_bytes - sum(header.size for header in headers)
            and max(header.max_timestamp for header in headers) <= self._roll_after_ms
            and headers[-1].last_offset <= self._last_offset_max
            and segment.can_index(len(headers))
        )

    def _write_run(self, batches: memoryview, headers: Sequence[BatchHeader]) -> None:
        """Write batches with one call, as if they had come one by one; none of them may need a new segment."""
        self._refuse_if_broken()
        segment = self._active
        try:
            segment.append_run(batches, headers)
        except CorruptLog as problem:
            raise self._break(str(problem)) from problem
        except OSError as problem:
            raise self._failed(f"{segment.path()}: {problem}", problem) from problem
        self.log_end_offset = headers[-1].last_offset + 1

    def note_aborted(self, transaction: AbortedTransaction) -> None:
        """Index a transaction whose abort marker was just appended."""
        self._active.aborted.note(transaction)
        self._has_aborted = True

    def _write(self, batch: memoryview, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Roll if need be and write; HOT."""
        segment = self._active
        size = len(batch)
        position = segment.size
        if (
            position + size > self.config.segment_bytes
            or max_timestamp > self._roll_after_ms
            or last_offset > self._last_offset_max
            or segment.index_full
        ) and self._must_roll(size, last_offset, max_timestamp):
            self.roll(now_ms)
            segment = self._active
            position = 0
        if self.fault is not None:
            raise StorageFault(self.fault)
        try:
            segment.append(batch, last_offset, max_timestamp)
        except CorruptLog as problem:
            raise self._break(str(problem)) from problem
        except OSError as problem:
            raise self._failed(f"{segment.path()}: {problem}", problem) from problem
        self.log_end_offset = last_offset + 1
        if position == 0:
            self._roll_after_ms = _UNKNOWN

    def _must_roll(self, size: int, last_offset: int, max_timestamp: int) -> bool:
        """Whether a batch must go to a new segment, now that it looks like it."""
        if self._active.size == 0:
            return False
        if self._roll_after_ms == _UNKNOWN:
            self._set_roll_time()
        return (
            self._active.size + size > self.config.segment_bytes
            or max_timestamp > self._roll_after_ms
            or last_offset > self._last_offset_max
            or self._active.index_full
        )

    def roll(self, now_ms: int) -> None:
        """Close the active segment to appends and begin a new one at the log end offset; nothing if it is empty."""
        self._refuse_if_broken()
        old, end = self._active, self.log_end_offset
        if old.size == 0:
            return
        try:
            old.seal()
            self._snapshots.write(end, self._producers.entries(), sync=False, recovery_point=self.recovery_point)
            # Last, because from here on nothing can fail and leave an empty segment where the old one grows over it.
            new = Segment.create(self.files, self.path, end, now_ms=now_ms)
        except OSError as problem:
            raise self._failed(f"{self.path}: cannot roll at {end}: {problem}", problem) from problem
        with self._structure:
            self._dirty.append(old)
            self._name_changes += 1
            self._set_segments(SegmentList((*self._segments.all, new)))
        self._keep_open(old)

    def rest(self) -> bool:
        """Told now and then: give back the room that was made for what did not come; whether there was any."""
        try:
            return self.fault is None and self._active.rest()
        except OSError:
            # The room stays, and is asked about again. Whether the disk is well, the next write or flush will tell.
            return False

    def roll_if_due(self, now_ms: int) -> bool:
        """Roll a segment that has been the active one for segment.ms, though nothing comes in to roll it."""
        active = self._active
        if active.size == 0 or now_ms - active.created_ms < self.config.segment_ms - self._jitter_ms(active):
            return False
        self.roll(now_ms)
        return True

    def _set_segments(self, segments: SegmentList) -> None:
        """Take a new row of segments into use."""
        self._segments = segments
        *rest, self._active = segments.all
        self._has_aborted = any(segment.aborted.exists for segment in segments.all)
        for segment, following in zip(rest, segments.all[1:], strict=True):
            segment.end_offset = following.base_offset
        self._active.end_offset = -1
        self._active.configure(self.config)
        self._last_offset_max = self._active.base_offset + RELATIVE_OFFSET_MAX
        self._roll_after_ms = _UNKNOWN

    def _set_roll_time(self) -> None:
        """From the first batch's timestamp on, a batch that is segment.ms later goes to a new segment."""
        try:
            first_ms = self._active.first_timestamp()
        except OSError as problem:
            raise self._failed(f"{self._active.path()}: {problem}", problem) from problem
        due_ms = first_ms + self.config.segment_ms - self._jitter_ms(self._active)
        self._roll_after_ms = due_ms if first_ms >= 0 else _NEVER

    def _jitter_ms(self, segment: Segment) -> int:
        """A share of segment.jitter.ms that is each segment's own, so that not all partitions roll at once."""
        jitter_ms = self.config.segment_jitter_ms
        return crc32(f"{self.name}/{segment.base_offset}".encode()) % jitter_ms if jitter_ms > 0 else 0

    def _refuse_if_broken(self) -> None:
        if self.fault is not None:
            raise StorageFault(self.fault)

    def _failed(self, reason: str, problem: OSError) -> StorageFault:
        """A write found no room, and may be tried again; or the disk has failed."""
        return StorageFault(reason) if passes(problem) else self._break(reason)

    def _break(self, reason: str) -> StorageFault:
        """Take nothing more from now on; any thread."""
        self.fault = self.fault or reason
        return StorageFault(reason)

    # Leader epochs

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Let a leader epoch begin (on becoming leader, before anything is appended)."""
        self._epochs.assign(epoch, start_offset)

    def forget_unwritten_epochs(self) -> None:
        """Drop epochs that begin at the log end: they wrote nothing, and would claim what another leader sends."""
        self._epochs.truncate_from_end(self.log_end_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The greatest known epoch not above the asked one, and where it ends; (-1, -1) if that cannot be told."""
        return self._epochs.end_offset(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch that wrote an offset, -1 if unknown."""
        return self._epochs.epoch_at(offset)

    # Flushing

    def flush_job(self) -> FlushJob | None:
        """Everything not yet on the disk as of now, or None if that is nothing."""
        self._refuse_if_broken()
        epochs = self._unwritten_epochs()
        if self.recovery_point == self.log_end_offset and not self._dirty and epochs is None:
            return None
        return FlushJob(
            self.files,
            self.path,
            self._break,
            rolled=list(self._dirty),
            active=self._active,
            end_offset=self.log_end_offset,
            epochs=epochs,
            epochs_mark=self._epochs.mark(self.log_end_offset),
            names=self._name_changes if self._name_changes != self._names_synced else 0,
            with_parent=not self._directory_synced,
            generation=self._generation,
        )

    def flushed(self, job: FlushJob) -> None:
        """Take note of a job that ran: the recovery point moves up to where it flushed."""
        if job.generation != self._generation:
            return  # Truncated meanwhile: what the job flushed may not be what the log holds now.
        done = set(job.rolled)
        self._dirty = [segment for segment in self._dirty if segment not in done]
        if job.epochs is not None:
            self._epochs_written = job.epochs
            self._epochs_mark = job.epochs_mark
        if job.names:
            self._names_synced = job.names
        self._directory_synced = True
        self.recovery_point = max(self.recovery_point, job.end_offset)
        if job.active is self._active:
            self._remember(job.end_offset, job.active, job.active_bytes)

    def _unwritten_epochs(self) -> list[tuple[int, int]] | None:
        """The epochs to write down, or None if the file has them; one that has written nothing yet can wait."""
        mark = self._epochs.mark(self.log_end_offset)
        if mark == self._epochs_mark:
            return None
        entries = self._epochs.entries()[: mark[1]]
        if entries == self._epochs_written:
            self._epochs_mark = mark
            return None
        return entries

    def _flush_now(self) -> None:
        job = self.flush_job()
        if job is not None:
            job.run()
            self.flushed(job)
