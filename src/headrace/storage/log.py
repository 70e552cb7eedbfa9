"""One partition's log: batches in offset order, over a row of segments.

The owner (an event loop) appends and reads; threads flush, search by time, clean and delete. All that is hot stays
within one segment and a few attributes. The segment list is replaced, never changed: a thread may walk the old one.

Three marks, in order:  log_start_offset <= recovery_point <= log_end_offset
    recovery_point   everything below is on the disk; only a finished flush moves it
    high_watermark   set by the owner, who alone knows the other replicas; retention never passes it

A write that fails leaves the log as it was (and it may be tried again when there is room). A flush that fails, or a
failed write that cannot be undone, breaks the log: from then on it takes nothing, and reads end at the recovery point.
"""

from collections.abc import Sequence
from threading import Lock
from zlib import crc32

from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.model.log_config import LogConfig
from headrace.model.producers import ProducerEntry
from headrace.records.batch import BatchHeader, CorruptBatch, check_batch, place, split_batches
from headrace.records.control import AbortedTransaction
from headrace.storage import deletion, recovery, replacement, retention
from headrace.storage.corruption import CorruptLog, Finding
from headrace.storage.deletion import DeletedLog, DeletedSegment
from headrace.storage.files import Files
from headrace.storage.flush_job import FlushJob
from headrace.storage.offset_index import RELATIVE_OFFSET_MAX
from headrace.storage.producer_journal import ProducerJournal
from headrace.storage.readable_log import ReadableLog
from headrace.storage.segment import Segment
from headrace.storage.segment_list import SegmentList
from headrace.storage.span import Span

__all__ = ["DeletedLog", "DeletedSegment", "Finding", "FlushJob", "Log", "ProducerJournal", "Span"]

_NEVER = 2**63 - 1
_UNKNOWN = -1
"""A roll time still to be looked up; as a number it makes the next append do so."""


class Log(ReadableLog):
    """A partition's log on disk."""

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

    @classmethod
    def open(
        cls,
        files: Files,
        path: str,
        *,
        config: LogConfig,
        now_ms: int,
        clean_shutdown: bool,
        recovery_point: int,
        log_start_offset: int,
        producers: ProducerJournal,
    ) -> "Log":
        """Open or create the log in a directory, recovering what an unclean stop left; blocking."""
        try:
            loaded = recovery.load(
                files,
                path,
                config=config,
                now_ms=now_ms,
                clean_shutdown=clean_shutdown,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                producers=producers,
            )
        except OSError as problem:
            raise StorageFault(f"{path}: {problem}") from problem
        return cls(files, path, config, producers, loaded)

    def __repr__(self) -> str:
        return f"Log({self.name!r}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def config(self) -> LogConfig:
        """The topic's settings; a new value counts from the next append on."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        for segment in self._segments.all:
            segment.configure(config)
        self._roll_after_ms = _UNKNOWN

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch the log knows, -1 if none."""
        return self._epochs.latest

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

        The batch gets its offsets and epoch in place. StorageFault leaves the log as it was.
        """
        base_offset = self.log_end_offset
        place(batch, header, base_offset, leader_epoch)
        self._write(batch, base_offset + header[6], header[8], now_ms)
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, base_offset)
        return base_offset

    def append_follower(self, batches: memoryview, now_ms: int) -> int:
        """Append batches as the leader numbered them, noting their producers; answers the new log end offset."""
        for position, header in split_batches(batches):
            view = batches[position : position + header.size]
            try:
                check_batch(view)
            except CorruptBatch as fault:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(fault)) from fault
            if header.base_offset < self.log_end_offset:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"a batch at {header.base_offset} cannot follow the log end offset {self.log_end_offset}",
                )
            self._write(view, header.last_offset, header.max_timestamp, now_ms)
            if header.leader_epoch > self._epochs.latest:
                self._epochs.assign(header.leader_epoch, header.base_offset)
            aborted = self._producers.replay(header, view)
            if aborted is not None:
                self.note_aborted(aborted)
        return self.log_end_offset

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
            position + size > self._config.segment_bytes
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
            raise StorageFault(f"{segment.path()}: {problem}") from problem
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
            self._active.size + size > self._config.segment_bytes
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
            raise StorageFault(f"{self.path}: cannot roll at {end}: {problem}") from problem
        with self._structure:
            self._dirty.append(old)
            self._name_changes += 1
            self._set_segments(SegmentList((*self._segments.all, new)))
        self._keep_open(old)

    def roll_if_due(self, now_ms: int) -> bool:
        """Roll a segment that has been the active one for segment.ms, though nothing comes in to roll it."""
        active = self._active
        if active.size == 0 or now_ms - active.created_ms < self._config.segment_ms - self._jitter_ms(active):
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
        self._active.configure(self._config)
        self._last_offset_max = self._active.base_offset + RELATIVE_OFFSET_MAX
        self._roll_after_ms = _UNKNOWN

    def _set_roll_time(self) -> None:
        """From the first batch's timestamp on, a batch that is segment.ms later goes to a new segment."""
        try:
            first_ms = self._active.first_timestamp()
        except OSError as problem:
            raise StorageFault(f"{self._active.path()}: {problem}") from problem
        due_ms = first_ms + self._config.segment_ms - self._jitter_ms(self._active)
        self._roll_after_ms = due_ms if first_ms >= 0 else _NEVER

    def _jitter_ms(self, segment: Segment) -> int:
        """A share of segment.jitter.ms that is each segment's own, so that not all partitions roll at once."""
        jitter_ms = self._config.segment_jitter_ms
        return crc32(f"{self.name}/{segment.base_offset}".encode()) % jitter_ms if jitter_ms > 0 else 0

    def _refuse_if_broken(self) -> None:
        if self.fault is not None:
            raise StorageFault(self.fault)

    def _break(self, reason: str) -> StorageFault:
        """Take nothing more from now on; any thread."""
        self.fault = self.fault or reason
        return StorageFault(reason)

    # Leader epochs

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Let a leader epoch begin (on becoming leader, before anything is appended)."""
        self._epochs.assign(epoch, start_offset)

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

    # Giving up data

    def delete_old_segments(self, now_ms: int) -> list[DeletedSegment]:
        """Take out what retention no longer asks for; files are renamed at once, `remove` them later in a thread."""
        self._refuse_if_broken()
        try:
            doomed = retention.expired(
                self._segments.all,
                self._config,
                now_ms=now_ms,
                log_start_offset=self.log_start_offset,
                limit_offset=min(self.high_watermark, self.log_end_offset),
                log_end_offset=self.log_end_offset,
            )
            if doomed and doomed[-1] is self._active:
                self.roll(now_ms)
            return self._take_out(doomed)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem

    def _take_out(self, doomed: Sequence[Segment]) -> list[DeletedSegment]:
        """Rename segments away from the front of the log and let it start behind them."""
        if not doomed:
            return []
        with self._structure:
            gone = set(doomed)
            self._set_segments(SegmentList(segment for segment in self._segments.all if segment not in gone))
            self._forget(gone)
            deleted = [deletion.mark(segment) for segment in doomed]
        self._move_start(max(self.log_start_offset, self._segments.all[0].base_offset))
        return deleted

    def _forget(self, gone: set[Segment]) -> None:
        """Drop every reference to segments that are no longer the log's."""
        self._dirty = [segment for segment in self._dirty if segment not in gone]
        self._open_segments = [segment for segment in self._open_segments if segment not in gone]
        # A new one, because the owner may be filling the old one while a thread calls this.
        self._positions = {}
        self._name_changes += 1

    def _move_start(self, offset: int) -> None:
        self.log_start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        self.high_watermark = max(self.high_watermark, offset)
        self._epochs.truncate_from_start(offset)

    def advance_start_offset(self, offset: int) -> None:
        """Let the log start later (DeleteRecords); the segments go with the next retention run.

        The owner writes the log start checkpoint, without which a restart may bring the records back.
        """
        if offset > self.high_watermark or offset < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"cannot delete records of {self.name} up to {offset}, the high watermark is {self.high_watermark}",
            )
        if offset > self.log_start_offset:
            self._move_start(offset)

    def lower_recovery_point(self, offset: int) -> None:
        """Take back that everything up to the recovery point is flushed, ahead of a truncation."""
        self.recovery_point = min(self.recovery_point, offset)
        self._generation += 1

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on; blocking.

        The recovery point falls with it. Its checkpoint must be on the disk *before* (see `LogDir.truncate`): recovery
        takes every batch below the checkpoint for flushed and does not accept that one is missing.
        """
        self._refuse_if_broken()
        if offset >= self.log_end_offset:
            return
        if offset <= self.log_start_offset:
            self.truncate_fully(offset)
            return
        try:
            with self._structure:
                keep = [segment for segment in self._segments.all if segment.base_offset < offset]
                found = keep[-1].find(offset)
                self._discard([segment for segment in self._segments.all if segment.base_offset >= offset])
                if found is not None:
                    keep[-1].truncate(found[0])
                keep[-1].aborted.cut(offset)
                self._set_segments(SegmentList(keep))
            self._settle(offset if found is None else min(offset, found[1]))
        except OSError as problem:
            raise self._break(f"{self.path}: cannot truncate to {offset}: {problem}") from problem

    def truncate_fully(self, start_offset: int) -> None:
        """Drop everything and begin again, empty, at an offset; blocking. Mind the checkpoint as with `truncate_to`."""
        self._refuse_if_broken()
        try:
            with self._structure:
                self._discard(self._segments.all)
                fresh = Segment.create(self.files, self.path, start_offset, now_ms=self._active.created_ms)
                self._set_segments(SegmentList([fresh]))
            self._epochs.clear()
            self._snapshots.remove_from(-1)
            self.log_start_offset = self.recovery_point = start_offset
            self._settle(start_offset)
        except OSError as problem:
            raise self._break(f"{self.path}: cannot begin again at {start_offset}: {problem}") from problem

    def _discard(self, segments: Sequence[Segment]) -> None:
        """Remove files at once, last first, so that a crash in between leaves no hole."""
        for segment in reversed(segments):
            segment.remove()
        self._forget(set(segments))

    def _settle(self, end_offset: int) -> None:
        """After a truncation, bring all that described the lost part in line, and make the names durable."""
        self.log_end_offset = end_offset
        self.recovery_point = min(self.recovery_point, end_offset)
        self.high_watermark = min(self.high_watermark, end_offset)
        self._generation += 1
        self._positions.clear()
        # A segment that is the active one again is not to be flushed with indexes that are not sealed.
        self._dirty = [segment for segment in self._dirty if segment is not self._active]
        self._epochs.truncate_from_end(end_offset)
        self._snapshots.remove_from(end_offset)
        recovery.replay_producers(self._segments.all, self._snapshots, self._producers, end_offset=end_offset)
        # A removed segment or snapshot that a power cut brought back would lie across what is appended from here on.
        self.files.fsync_dir(self.path)

    def replace_segments(self, new: Sequence[Segment], old: Sequence[Segment]) -> list[DeletedSegment]:
        """Put cleaned segments (suffix .cleaned, sealed and flushed) in the place of old ones; blocking, any thread.

        The new ones must begin and end at the offsets at which the old ones do: recovery takes a gap for lost data.
        """
        self._refuse_if_broken()
        try:
            return replacement.replace(self, new, old)
        except OSError as problem:
            raise self._break(f"{self.path}: cannot replace segments: {problem}") from problem

    def swap_in(self, new: Sequence[Segment], old: Sequence[Segment]) -> bool:
        """The moment of a replacement at which readers see the new segments; False if an old one has gone meanwhile."""
        with self._structure:
            current = self._segments.all
            gone = set(old)
            if not gone <= set(current[:-1]) or any(segment.end_offset > self.recovery_point for segment in gone):
                return False
            last = new[-1].find(old[-1].end_offset - 1)
            assert last is not None
            assert (new[0].base_offset, last[2] + 1) == (old[0].base_offset, old[-1].end_offset)
            rest = [segment for segment in current if segment not in gone]
            for segment in new:
                segment.configure(self._config)
            self._set_segments(SegmentList(sorted((*rest, *new), key=lambda segment: segment.base_offset)))
            self._forget(gone)
            return True

    def rename_segment(self, segment: Segment, suffix: str) -> bool:
        """Rename a segment's files unless retention took it out meanwhile; any thread."""
        with self._structure:
            if segment not in self._segments.all:
                return False
            segment.rename(suffix)
            return True

    # The end

    def write_producer_snapshot(self) -> None:
        """Write the producers as of the log end offset; blocking."""
        self._refuse_if_broken()
        try:
            self._snapshots.write(
                self.log_end_offset, self._producers.entries(), sync=True, recovery_point=self.recovery_point
            )
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem

    def close(self, now_ms: int) -> None:
        """Flush everything so that a clean restart need not look at the batches; blocking."""
        self._refuse_if_broken()
        try:
            self._active.seal()
            self._flush_now()
            if self._active.size and not self._active.indexes_flushed:
                self._active.flush(with_indexes=True)
            producers = self._producers.entries()
            if self.log_end_offset not in self._snapshots.offsets and (producers or self.size_bytes):
                self._snapshots.write(self.log_end_offset, producers, sync=True, recovery_point=self.recovery_point)
        except OSError as problem:
            raise self._break(f"{self.path}: cannot close: {problem}") from problem
        self._positions.clear()
        for segment in self._segments.all:
            segment.release()

    def delete(self) -> DeletedLog:
        """Rename the directory out of the way (`name.<32 hex>-delete`); `remove` it later in a thread."""
        self.fault = self.fault or f"{self.path} is deleted"
        self.deleted = True
        try:
            target = deletion.mark_directory(self.files, self.path)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
        for segment in self._segments.all:
            segment.directory = target
        self.path = target
        return DeletedLog(self.files, target)
