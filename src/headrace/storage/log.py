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

from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.model.log_config import LogConfig
from headrace.records.batch import BatchHeader
from headrace.storage import deletion, recovery, replacement, retention
from headrace.storage.batch_run import BatchRun, out_of_order
from headrace.storage.corruption import Finding
from headrace.storage.deletion import DeletedLog, DeletedSegment
from headrace.storage.files import Files
from headrace.storage.flush_job import FlushJob
from headrace.storage.growing_log import GrowingLog
from headrace.storage.producer_journal import ProducerJournal
from headrace.storage.segment import Segment
from headrace.storage.segment_list import SegmentList
from headrace.storage.span import Span

__all__ = ["DeletedLog", "DeletedSegment", "Finding", "FlushJob", "Log", "ProducerJournal", "Span"]


class Log(GrowingLog):
    """A partition's log on disk."""

    __slots__ = ()

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

    # Copying a leader

    def append_follower(self, batches: memoryview, now_ms: int) -> int:
        """Append batches as the leader numbered them, noting their producers; answers the new log end offset.

        Batches before one that is not sound are appended all the same; it is the error.
        """
        run = BatchRun(batches)
        headers = run.headers
        if headers and headers[0].base_offset < self.log_end_offset:
            self._begin_amid(headers[0])
        if len(headers) > 1 and self._fits(headers):
            self._write_run(batches, headers)
            for header, view in zip(headers, run.views, strict=True):
                self._note(header, view)
        else:
            for header, view in zip(headers, run.views, strict=True):
                self._write(view, header.last_offset, header.max_timestamp, now_ms)
                self._note(header, view)
        if run.fault is not None:
            raise run.fault
        return self.log_end_offset

    def _note(self, header: BatchHeader, view: memoryview) -> None:
        """Take in what a leader's batch says besides its records."""
        if header.leader_epoch > self._epochs.latest:
            self._epochs.assign(header.leader_epoch, header.base_offset)
        aborted = self._producers.replay(header, view)
        if aborted is not None:
            self.note_aborted(aborted)

    def _begin_amid(self, header: BatchHeader) -> None:
        """Let an empty log begin where a batch does that contains its start.

        The leader's log starts amid this batch since records were deleted, and sends it whole.
        """
        if self.log_end_offset != self.log_start_offset or header.last_offset < self.log_end_offset:
            raise out_of_order(header, self.log_end_offset)
        self.truncate_fully(header.base_offset)

    # Giving up data

    def delete_old_segments(self, now_ms: int) -> list[DeletedSegment]:
        """Take out what retention no longer asks for; files are renamed at once, `remove` them later in a thread."""
        self._refuse_if_broken()
        try:
            doomed = retention.expired(
                self._segments.all,
                self.config,
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
                segment.configure(self.config)
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

    def succeed(self, other: "Log", producers: ProducerJournal) -> None:
        """Go on in the place of a log of which this is a whole copy, with the producers that it has."""
        assert self.log_end_offset == other.log_end_offset, "only a whole copy takes a log's place"
        self._producers = producers
        if other.latest_epoch > self.latest_epoch:
            # It has begun, and written nothing yet that could have been copied.
            self._epochs.assign(other.latest_epoch, self.log_end_offset)
        self.high_watermark = max(self.high_watermark, other.high_watermark)
        if other.log_start_offset > self.log_start_offset:
            self._move_start(other.log_start_offset)

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

    def delete(self, ending: str = deletion.DELETE_DIRECTORY) -> DeletedLog:
        """Rename the directory out of the way (`name.<32 hex>-delete`); `remove` it later in a thread."""
        self.fault = self.fault or f"{self.path} is deleted"
        self.deleted = True
        try:
            target = deletion.mark_directory(self.files, self.path, ending)
        except OSError as problem:
            raise StorageFault(f"{self.path}: {problem}") from problem
        for segment in self._segments.all:
            segment.directory = target
        self.path = target
        return DeletedLog(self.files, target)
