"""Opening a log: what is on the disk, what of it can be believed, and what must be derived again.

After a clean stop everything is believed after a look at the indexes. After an unclean one every batch from the segment
of the recovery point on is checked; the log ends at the first one that is not whole, which can only be one that was
never flushed. A batch below the recovery point was flushed and perhaps acknowledged, so it is never dropped: one with a
bad CRC stays and is reported as a finding, and where batches cannot even be walked the log does not open (CorruptLog).
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from msgspec import Struct

from headrace.model.log_config import LogConfig
from headrace.records.batch import BatchHeader, CorruptBatch, header_fault
from headrace.records.control import AbortedTransaction
from headrace.storage import file_names, replacement
from headrace.storage.corruption import CorruptLog, Finding
from headrace.storage.epoch_checkpoint import read_epochs
from headrace.storage.files import Files
from headrace.storage.leader_epochs import LeaderEpochs
from headrace.storage.producer_journal import ProducerJournal
from headrace.storage.producer_snapshot import ProducerSnapshots
from headrace.storage.segment import Segment

SEGMENT_BYTES_MAX = 2**31 - 1
"""Positions are four bytes in the index."""


class Loaded(Struct, kw_only=True):
    """A log's parts as recovery found or made them."""

    segments: list[Segment]
    epochs: LeaderEpochs
    epochs_written: list[tuple[int, int]] | None
    """The epochs as their file has them; None if it is useless."""
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    dirty: list[Segment]
    """Segments that are not known to be on the disk, the active one aside."""
    findings: list[Finding]
    cuts: list[Finding]
    """What was cut off the end: never flushed, and not whole."""


def load(
    files: Files,
    path: str,
    *,
    config: LogConfig,
    now_ms: int,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    producers: ProducerJournal,
) -> Loaded:
    """Read a partition's directory, making it if there is none."""
    is_new = files.stat(path) is None
    names = _list(files, path)
    segments = _find_segments(files, path, names, config)
    known_epochs = read_epochs(files, path) if "leader-epoch-checkpoint" in names else []
    epochs = LeaderEpochs(known_epochs or [])
    check = _Check(epochs, recovery_point)
    if clean_shutdown:
        recovery_point = end_offset = _end_offset(segments[-1]) if segments else log_start_offset
    else:
        end_offset = check.run(segments) if segments else log_start_offset
    if known_epochs is None:
        _rebuild_epochs(epochs, segments)
    snapshots = ProducerSnapshots(files, path, _snapshot_offsets(names))
    snapshots.remove_from(end_offset)
    if clean_shutdown and segments and end_offset < log_start_offset:
        # Only an unclean stop can lose the end of a log. The checkpoint is wrong, and not a reason to drop anything.
        raise CorruptLog(f"{path} ends at {end_offset}, before its start in the checkpoint, {log_start_offset}")
    if end_offset < log_start_offset or not segments:
        # What was left of the log lies wholly before its start, or there was nothing: it begins here, empty.
        _remove(segments)
        snapshots.remove_from(-1)
        epochs.clear()
        segments = [Segment.create(files, path, log_start_offset, now_ms=now_ms)]
        end_offset = log_start_offset
    start_offset = max(log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(start_offset)
    anonymous = set(check.checked) - check.with_producers
    stale = _stale_transaction_indexes(segments, check)
    replay_producers(segments, snapshots, producers, end_offset=end_offset, anonymous=anonymous, stale=stale)
    if not clean_shutdown and not is_new:
        # A file that was removed, here or before the stop, and that a power cut brought back would lie across what is
        # appended from here on.
        files.fsync_dir(path)
    segments[-1].created_ms = now_ms
    for segment in segments:
        segment.close_file()
    return Loaded(
        segments=segments,
        epochs=epochs,
        epochs_written=known_epochs,
        snapshots=snapshots,
        log_start_offset=start_offset,
        log_end_offset=end_offset,
        recovery_point=max(start_offset, min(recovery_point, end_offset)),
        dirty=[segment for segment in check.checked if segment in segments[:-1]],
        findings=check.findings,
        cuts=check.cuts,
    )


def _list(files: Files, path: str) -> set[str]:
    """The names in the directory, made if need be, once interrupted work is finished or undone."""
    try:
        names = files.listdir(path)
    except FileNotFoundError:
        files.mkdir(path)
        return set()
    for name in names:
        if name.endswith(file_names.TEMPORARY):
            files.unlink(f"{path}/{name}")
    if replacement.finish(files, path, names):
        names = files.listdir(path)
    return set(names)


def _find_segments(files: Files, path: str, names: set[str], config: LogConfig) -> list[Segment]:
    """The segments in offset order; index files without a log are removed."""
    parsed = [part for name in names if (part := file_names.parse_file_name(name)) is not None and not part.suffix]
    base_offsets = sorted(part.base_offset for part in parsed if part.kind == file_names.LOG)
    for part in parsed:
        if part.kind in file_names.SEGMENT_KINDS and part.base_offset not in base_offsets:
            files.unlink(f"{path}/{file_names.file_name(part.base_offset, part.kind)}")
    segments = []
    for base_offset in base_offsets:
        stat = files.stat(f"{path}/{file_names.file_name(base_offset, file_names.LOG)}")
        if stat is None or stat.is_dir or stat.size > SEGMENT_BYTES_MAX:
            raise CorruptLog(f"{path}: {file_names.file_name(base_offset, file_names.LOG)} cannot be a segment")
        segment = Segment(files, path, base_offset, size=stat.size)
        segment.configure(config)
        segment.aborted.exists = file_names.file_name(base_offset, file_names.TRANSACTION_INDEX) in names
        segments.append(segment)
    for segment, following in pairwise(segments):
        segment.end_offset = following.base_offset
    return segments


def _snapshot_offsets(names: set[str]) -> list[int]:
    parts = (file_names.parse_file_name(name) for name in names)
    return [part.base_offset for part in parts if part is not None and part.kind == file_names.SNAPSHOT]


def _end_offset(segment: Segment) -> int:
    """The offset behind the last batch of a segment that was closed cleanly."""
    if segment.size == 0:
        return segment.base_offset
    index = segment.offset_index
    end_offset = segment.base_offset
    for position, base_offset, last_offset, _ in segment.outlines(index.entry(-1)[1] if len(index) else 0):
        if base_offset < end_offset or not segment.can_hold(last_offset):
            raise CorruptLog(f"{segment.path()}: a batch at {position} cannot have the offset {base_offset}")
        end_offset = last_offset + 1
    return end_offset


def _rebuild_epochs(epochs: LeaderEpochs, segments: Sequence[Segment]) -> None:
    """Read the epochs off the batches, the file being useless."""
    epochs.clear()
    for segment in segments:
        for _, header in segment.headers():
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)


def _remove(segments: Sequence[Segment]) -> None:
    """Remove segments' files, the last first so that an interruption leaves no hole."""
    for segment in reversed(segments):
        segment.remove()


class _Check:
    """The walk over everything that an unclean stop may have harmed."""

    __slots__ = ("_epochs", "_recovery_point", "checked", "cuts", "findings", "with_producers", "with_transactions")

    def __init__(self, epochs: LeaderEpochs, recovery_point: int) -> None:
        self._epochs = epochs
        self._recovery_point = recovery_point
        self.findings: list[Finding] = []
        self.cuts: list[Finding] = []
        self.checked: list[Segment] = []
        self.with_producers: set[Segment] = set()
        """Those among the checked that an idempotent producer wrote to."""
        self.with_transactions: set[Segment] = set()

    def run(self, segments: list[Segment]) -> int:
        """Check from the recovery point's segment on, cut the log (and the list) where it breaks; where it ends."""
        # The one with the last flushed batch: it may have been the active one then, whose indexes a flush leaves alone.
        first = max((i for i, s in enumerate(segments) if s.base_offset < self._recovery_point), default=0)
        end_offset = segments[first].base_offset
        self._epochs.truncate_from_end(end_offset)
        for i in range(first, len(segments)):
            segment = segments[i]
            if segment.base_offset != end_offset:
                # Every segment begins where the one before it ended, so what was in between is lost. It was never
                # flushed, nor was anything behind it, and a log with a hole would claim to have what it has not.
                self._drop(segments, i)
                break
            end_offset, whole = self._check_segment(segment)
            self.checked.append(segment)
            if not whole:
                self._drop(segments, i + 1)
                break
        # The last file may have been cut, here or before the stop. Bytes that a power cut brought back would stand
        # behind what is appended now, and be taken for it.
        segments[-1].file.fdatasync()
        if end_offset < self._recovery_point:
            reason = f"everything below {self._recovery_point} was flushed, but the log ends here"
            self.findings.append(Finding(segments[-1].path(), segments[-1].size, end_offset, reason))
        return end_offset

    def _drop(self, segments: list[Segment], start: int) -> None:
        for segment in segments[start:]:
            if segment.size:
                reason = f"{segment.size} bytes lie behind the end of the log"
                self.cuts.append(Finding(segment.path(), 0, segment.base_offset, reason))
        _remove(segments[start:])
        del segments[start:]

    def _check_segment(self, segment: Segment) -> tuple[int, bool]:
        """Check each batch and index it anew; where the segment ends, and whether it came that far without a cut."""
        segment.reset_indexes()
        epochs = self._epochs
        offset, stop = segment.base_offset, 0
        fault: str | None = None
        try:
            for position, header, _, harm in segment.check_from():
                fault = harm or _misplaced(segment, header, offset)
                if fault is not None and not self._may_stay(segment, position, offset, header, fault):
                    break
                segment.note(position, header)
                if header.leader_epoch > epochs.latest:
                    epochs.assign(header.leader_epoch, header.base_offset)
                if header.producer_id >= 0:
                    self.with_producers.add(segment)
                    if header.is_transactional:
                        self.with_transactions.add(segment)
                offset, stop = header.last_offset + 1, position + header.size
        except CorruptLog as problem:
            # No telling where the next batch would be. Whatever was here was never flushed, or this is beyond us.
            if offset < self._recovery_point:
                raise
            fault = str(problem)
        if stop < segment.size and not self._cut(segment, stop, offset, fault):
            return offset, False
        if segment.end_offset >= 0:
            segment.seal()
        return offset, True

    def _cut(self, segment: Segment, stop: int, offset: int, fault: str | None) -> bool:
        """Let a segment end where its batches do; whether all that goes is room made for what did not come."""
        is_room = segment.is_blank(stop)
        if not is_room:
            self.cuts.append(Finding(segment.path(), stop, offset, f"{segment.size - stop} bytes: {fault}"))
        segment.end_at(stop)
        return is_room

    def _may_stay(self, segment: Segment, position: int, offset: int, header: BatchHeader, fault: str) -> bool:
        """Keep a harmed batch that was flushed, and report it; False lets the log end before one that was not."""
        if offset >= self._recovery_point:
            return False
        if header_fault(header) is not None or _misplaced(segment, header, offset) is not None:
            raise CorruptLog(f"{segment.path()}: flushed data at {position} cannot be read: {fault}")
        self.findings.append(Finding(segment.path(), position, offset, fault))
        return True


def _misplaced(segment: Segment, header: BatchHeader, offset: int) -> str | None:
    """Why a batch with a sane header cannot follow `offset`, or None if it can."""
    if header.base_offset < offset:
        return f"base offset {header.base_offset} lies before {offset}"
    if not segment.can_hold(header.last_offset):
        return f"base offset {header.base_offset} lies beyond what the segment can hold"
    return None


def replay_producers(
    segments: Sequence[Segment],
    snapshots: ProducerSnapshots,
    producers: ProducerJournal,
    *,
    end_offset: int,
    anonymous: AbstractSet[Segment] = frozenset(),
    stale: AbstractSet[Segment] = frozenset(),
) -> None:
    """Bring the producers to where the log ends: the newest snapshot, and the batches behind it.

    Segments that are known to hold no producer's batches are passed over. Those with a stale transaction index get a
    new one: who had a transaction open at their start must be known, so the replay begins before the first of them.
    """
    newest = snapshots.newest(min([end_offset, *(segment.base_offset for segment in stale)]))
    start_offset, entries = newest or (segments[0].base_offset, [])
    producers.load(entries)
    for segment in segments:
        if start_offset >= end_offset or 0 <= segment.end_offset <= start_offset or segment.size == 0:
            continue
        if segment in anonymous:
            continue
        for _, header, view in segment.batches(segment.position_before(start_offset)):
            if header.producer_id >= 0 and header.base_offset >= start_offset:
                aborted = _replay(producers, header, view)
                if aborted is not None and segment in stale:
                    segment.aborted.note(aborted)
    for segment in stale:
        segment.aborted.replace()


def _replay(producers: ProducerJournal, header: BatchHeader, view: memoryview) -> AbortedTransaction | None:
    """Replay a batch; a flushed marker that rotted is a finding already, and ends no transaction."""
    try:
        return producers.replay(header, view)
    except CorruptBatch:
        return None


def _stale_transaction_indexes(segments: Sequence[Segment], check: _Check) -> set[Segment]:
    """Segments whose transaction index must be made anew: all that were checked, and those whose file is no good."""
    stale = {
        segment
        for segment in segments
        if segment in check.with_transactions or (segment.aborted.exists and not segment.aborted.is_sound())
    }
    for segment in stale.union(check.checked):
        segment.aborted.reset()
        if segment not in stale:
            segment.aborted.replace()
    return stale
