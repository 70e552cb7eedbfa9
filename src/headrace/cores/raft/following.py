"""Following: hearing of a leader, fetching from it, and truncating what it does not have."""

from __future__ import annotations

from headrace.cores.raft.discovery import discover, fetch_request
from headrace.cores.raft.election import succession_delay
from headrace.cores.raft.inputs import Token
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.messages import (
    Batch,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    UpdateVoterRequest,
)
from headrace.cores.raft.news import reply, take_in, voter_error
from headrace.cores.raft.outputs import AppendRecords, Halt, TruncateLog
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.states import NEVER, Follower
from headrace.cores.raft.voters import Voter
from headrace.model.errors import ErrorCode

_FAILURES_TO_DOUBT = 3
"""One may be an old connection, two a leader that starts again at that moment."""


def on_begin_epoch(replica: Replica, token: Token, request: BeginQuorumEpochRequest) -> None:
    """Hear of a new leader."""
    error = voter_error(replica, epoch=request.epoch, sender=request.leader_id)
    if error is ErrorCode.NONE:
        take_in(replica, leader_id=request.leader_id, epoch=request.epoch, endpoints=request.endpoints)
        if not replica.key.answers_to(request.voter):
            error = ErrorCode.INVALID_VOTER_KEY
    replica.answer(token, reply(replica, BeginQuorumEpochResponse, error))


def on_end_epoch(replica: Replica, token: Token, request: EndQuorumEpochRequest) -> None:
    """Hear that the leader resigned: stand for election, in the order it wished for."""
    error = voter_error(replica, epoch=request.epoch, sender=request.leader_id)
    if error is ErrorCode.NONE:
        take_in(replica, leader_id=request.leader_id, epoch=request.epoch, endpoints=request.endpoints)
        role = replica.role
        if isinstance(role, Follower) and replica.leader_id == request.leader_id:
            role.fetch_deadline_ms = replica.now_ms + succession_delay(replica, request)
            role.has_fetched = False  # Its leader is gone, so others may ask whether they would win.
    replica.answer(token, reply(replica, EndQuorumEpochResponse, error))


def poll_follower(replica: Replica, role: Follower) -> int:
    """Fetch, as a voter until the leader has been silent for too long, as an observer from whoever knows it."""
    now_ms = replica.now_ms
    if replica.may_stand:
        if now_ms >= role.fetch_deadline_ms and replica.shutdown_ms is None:
            replica.become_prospective()
            return now_ms
        if now_ms >= role.update_voter_ms and _correct_endpoints(replica, role):
            role.update_voter_ms = now_ms + replica.config.fetch_timeout_ms
        update_ms = role.update_voter_ms if role.update_voter_ms > now_ms else NEVER
        return min(replica.next_election(role.fetch_deadline_ms), update_ms, _fetch(replica, role))
    if now_ms >= role.fetch_deadline_ms or replica.connections.is_waiting(replica.leader_id, now_ms):
        return discover(replica)
    return min(role.fetch_deadline_ms, _fetch(replica, role))


def _fetch(replica: Replica, role: Follower) -> int:
    """Ask the leader for more; gives when to look again."""
    if role.loading or not replica.log.is_flushed:
        return NEVER  # Their end is told, and then this is done again.
    leader_id = replica.leader_id
    if replica.connections.is_ready(leader_id, replica.now_ms):
        request: FetchRequest | FetchSnapshotRequest
        if role.snapshot_id is None:
            request = fetch_request(replica, replica.config.fetch_wait_max_ms)
        else:
            request = FetchSnapshotRequest(
                cluster_id=replica.config.cluster_id,
                replica=replica.key,
                epoch=replica.epoch,
                snapshot_id=role.snapshot_id,
                position=role.position,
                max_bytes=replica.config.snapshot_bytes_max,
            )
        replica.send(leader_id, role.endpoints, request)
    return replica.connections.next_ms(leader_id, replica.now_ms)


def _correct_endpoints(replica: Replica, role: Follower) -> bool:
    """Have the voter set say where this voter listens, if it is wrong about that; False if that must wait."""
    voters = replica.log.voters
    wanted = Voter(replica.key, replica.config.endpoints)
    known = voters.last.by_id.get(replica.key.id)
    if not voters.kraft_version or not wanted.endpoints or known in {None, wanted}:
        return True
    if not replica.connections.is_ready(replica.leader_id, replica.now_ms):
        return False  # A fetch is under way; when it is answered this goes first.
    request = UpdateVoterRequest(
        cluster_id=replica.config.cluster_id,
        voter=wanted.key,
        epoch=replica.epoch,
        endpoints=wanted.endpoints,
        kraft_versions=wanted.kraft_versions,
    )
    replica.send(replica.leader_id, role.endpoints, request)
    return True


def on_fetch_answer(replica: Replica, sender: int, request: FetchRequest, response: FetchResponse) -> None:
    """Take over what the leader has, or give up what it has not."""
    role = replica.role
    if not isinstance(role, Follower) or request.fetch_offset != replica.log.end_offset:
        return
    if response.diverging is not None:
        used = _truncate(replica, response.diverging)
    elif response.snapshot_id is not None:
        used = _want_snapshot(replica, role, response.snapshot_id)
    else:
        used = take_over(replica, response)
    if not used:
        replica.connections.failed(sender, replica.now_ms)  # The same answer would come again at once.
    heard_leader(replica, role)


def heard_leader(replica: Replica, role: Follower) -> None:
    """The leader is alive."""
    role.has_fetched = True
    role.failures = 0
    role.fetch_deadline_ms = replica.now_ms + replica.config.fetch_timeout_ms


def missed_leader(replica: Replica, role: Follower) -> None:
    """The leader could not be reached: after some tries it is doubted, long before it would be for its silence.

    A process that died refuses connections. If it is only we who cannot reach it, the others refuse us their votes.
    """
    role.failures += 1
    if role.failures == _FAILURES_TO_DOUBT:
        soon_ms = replica.now_ms + replica.chance(0, replica.config.election_timeout_ms // 10)
        role.fetch_deadline_ms = min(role.fetch_deadline_ms, soon_ms)
        role.has_fetched = False  # Others may ask whether they would win.


def _want_snapshot(replica: Replica, role: Follower, snapshot_id: OffsetAndEpoch) -> bool:
    """Begin to fetch a snapshot, if it has more than the log."""
    if snapshot_id.rank <= replica.log.end.rank or snapshot_id.offset < replica.high_watermark:
        return False
    role.snapshot_id, role.position = snapshot_id, 0
    return True


def _truncate(replica: Replica, diverging: OffsetAndEpoch) -> bool:
    """Cut off what the leader does not have: by epoch only, and never what is committed."""
    point = replica.log.truncation_point(diverging)
    if point < replica.high_watermark:
        replica.emit(Halt(f"The leader has no committed records from {point} on."))
        return False
    if point >= replica.log.end_offset:
        return False
    replica.log.truncate_to(point)
    replica.emit(TruncateLog(point))
    if not replica.log.is_flushed:
        replica.want_flush()  # The flush that was under way does not count any more.
    return True


def are_next(replica: Replica, batches: tuple[Batch, ...]) -> bool:
    """Whether batches follow the log and each other, in offsets and epochs."""
    offset, epoch = replica.log.end_offset, replica.log.last_epoch
    for batch in batches:
        if batch.base_offset != offset or batch.count < 1 or not epoch <= batch.epoch <= replica.epoch:
            return False
        offset, epoch = offset + batch.count, batch.epoch
    return True


def take_over(replica: Replica, response: FetchResponse) -> bool:
    """Append what the leader sent, and learn how much of the log is committed; False if it does not fit."""
    batches = response.batches
    if batches:
        if not are_next(replica, batches):
            return False
        for batch in batches:
            replica.log.append(batch.count, batch.epoch)
            if batch.voters is not None:
                replica.log.voters.add(batch.base_offset + batch.count - 1, batch.voters)
        replica.emit(AppendRecords(batches))
        replica.want_flush()
    replica.move_high_watermark(min(response.high_watermark, replica.log.end_offset))
    return True
