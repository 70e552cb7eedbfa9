"""Snapshots: fetching one from the leader, handing one out, and letting the log go that one covers (KIP-630)."""

from __future__ import annotations

from headrace.cores.raft.following import heard_leader
from headrace.cores.raft.inputs import CleanBefore, SnapshotLoaded, SnapshotWritten, Token
from headrace.cores.raft.leadership import heard_voter
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.messages import FetchSnapshotRequest, FetchSnapshotResponse
from headrace.cores.raft.news import leader_error, reply
from headrace.cores.raft.outputs import LoadSnapshot, RaiseLogStart, WriteSnapshotPiece
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.states import Follower, Leader
from headrace.model.errors import ErrorCode


def on_fetch_snapshot(replica: Replica, token: Token, request: FetchSnapshotRequest) -> None:
    """Hand out a piece of a snapshot; the shell knows its size and refuses positions behind its end."""
    error = leader_error(replica, request.epoch)
    role = replica.role
    if error is ErrorCode.NONE and request.position < 0:
        error = ErrorCode.POSITION_OUT_OF_RANGE
    elif error is ErrorCode.NONE and (
        request.snapshot_id not in replica.log.snapshots or request.snapshot_id == OffsetAndEpoch(0, 0)
    ):
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        replica.answer(token, reply(replica, FetchSnapshotResponse, error))
        return
    heard_voter(replica, role, request.replica)
    response = FetchSnapshotResponse(
        leader_id=replica.leader_id,
        epoch=replica.epoch,
        endpoints=replica.leader_endpoints,
        snapshot_id=request.snapshot_id,
        position=request.position,
    )
    replica.answer(token, response, read_from=request.position)


def on_fetch_snapshot_answer(
    replica: Replica, sender: int, request: FetchSnapshotRequest, response: FetchSnapshotResponse
) -> None:
    """Keep a piece; with the last one the log starts again behind the snapshot."""
    role = replica.role
    if not isinstance(role, Follower) or role.snapshot_id is None or role.snapshot_id != request.snapshot_id:
        return
    wanted = response.snapshot_id == role.snapshot_id and response.position == role.position
    length = len(response.data)
    if response.error is not ErrorCode.NONE or not wanted or not 0 < length <= response.size - role.position:
        role.snapshot_id = None  # It is gone, or not what was asked for: begin with a fetch again.
    else:
        replica.emit(WriteSnapshotPiece(role.snapshot_id, role.position, response.data))
        role.position += length
        if role.position == response.size:
            replica.emit(LoadSnapshot(role.snapshot_id))
            role.loading = True
    heard_leader(replica, role)


def on_loaded(replica: Replica, loaded: SnapshotLoaded) -> None:
    """Go on from a snapshot that came from the leader; all of it is committed."""
    role = replica.role
    assert isinstance(role, Follower)
    assert role.loading, "loading is followed by nothing else"
    replica.log.reset_to(loaded.snapshot_id, loaded.voters)
    role.snapshot_id, role.position, role.loading = None, 0, False
    replica.move_high_watermark(loaded.snapshot_id.offset)


def on_written(replica: Replica, written: SnapshotWritten) -> None:
    """Take down a snapshot of committed records that the state machine wrote."""
    snapshot_id = written.snapshot_id
    if snapshot_id.offset <= replica.log.start_offset:
        return
    assert snapshot_id.offset <= replica.high_watermark, "only committed records are in a snapshot"
    assert snapshot_id.epoch == replica.log.epoch_before(snapshot_id.offset), "a snapshot's epoch is its last record's"
    replica.log.add_snapshot(snapshot_id)


def on_clean(replica: Replica, clean: CleanBefore) -> None:
    """Let go of what a snapshot covers."""
    snapshot_id = clean.snapshot_id
    if snapshot_id in replica.log.snapshots and snapshot_id.offset > replica.log.start_offset:
        replica.log.raise_start(snapshot_id)
        replica.emit(RaiseLogStart(snapshot_id))
