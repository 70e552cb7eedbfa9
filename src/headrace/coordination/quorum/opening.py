"""Opening a replica: what is on its disk, put right after a crash, and told to the core; blocking, for a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.coordination.quorum.quorum_state_file import read_quorum_state
from headrace.cores.raft.log_mirror import EMPTY, LogMirror, OffsetAndEpoch
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.voters import BOOTSTRAP_OFFSET, VoterHistory, VoterSet
from headrace.model.errors import StorageFault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.coordination.quorum.applier import Applier
    from headrace.coordination.quorum.metadata_log import MetadataLog
    from headrace.coordination.quorum.snapshot_file import SnapshotFiles
    from headrace.storage.files import Files


class Opened(Struct, frozen=True):
    """What a replica wakes up with."""

    mirror: LogMirror
    state: QuorumState


def open_replica(
    files: Files,
    directory: str,
    *,
    log: MetadataLog,
    snapshots: SnapshotFiles,
    applier: Applier,
    static_voters: VoterSet | None,
) -> Opened:
    """Bring log, snapshots and image in line; the image gets the newest snapshot: no more is surely committed."""
    snapshots.clear()
    log.make_safe()
    kept = _agree(log, snapshots, snapshots.ids())
    state = read_quorum_state(files, directory)
    outline = log.outline()
    history = [*_first_voters(log, snapshots, kept), *outline.voters]
    mirror = LogMirror(
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        epochs=outline.epochs,
        snapshots=kept,
        voters=VoterHistory(static_voters, history),
    )
    if kept and kept[-1] != EMPTY:
        applier.begin_from(kept[-1], snapshots.read(kept[-1]))
        log.committed(kept[-1].offset)
    return Opened(mirror, state)


def _agree(log: MetadataLog, snapshots: SnapshotFiles, found: Sequence[OffsetAndEpoch]) -> list[OffsetAndEpoch]:
    """Let the log start at a snapshot if it does not start at 0; gives the snapshots that are still of use."""
    if found and _ranks_above(found[-1], log):
        # The crash came between keeping a snapshot of the leader's and emptying the log.
        log.begin_again_now(found[-1].offset)
    kept = [one for one in found if one.offset >= log.start_offset]
    for old in found:
        if old not in kept:
            snapshots.remove(old)
    if log.start_offset > 0:
        if not kept:
            raise StorageFault(f"{log.log.path} starts at {log.start_offset}, and no snapshot covers what was before")
        if kept[0].offset > log.start_offset:
            log.raise_start_now(kept[0].offset)
    return kept


def _ranks_above(snapshot_id: OffsetAndEpoch, log: MetadataLog) -> bool:
    if log.start_offset == log.end_offset == snapshot_id.offset:
        return False
    return snapshot_id.rank > (max(log.log.latest_epoch, 0), log.end_offset)


def _first_voters(
    log: MetadataLog, snapshots: SnapshotFiles, kept: Sequence[OffsetAndEpoch]
) -> list[tuple[int, VoterSet]]:
    """The voters as of the start of the log, if a snapshot there names them; later ones are in the log itself."""
    if not kept or (kept[0] != EMPTY and kept[0].offset != log.start_offset):
        return []
    voters = snapshots.head(kept[0]).voters
    if voters is None:
        return []
    return [(BOOTSTRAP_OFFSET if kept[0] == EMPTY else kept[0].offset - 1, voters)]
