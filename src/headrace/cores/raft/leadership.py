"""Leading: appending, answering fetches, and moving the high watermark.

The high watermark is the highest offset that a majority of the voters has flushed, the leader's own log counted like
any other; and it does not move before a record of the leader's own epoch is among them, since records of older epochs
that a majority has may still be lost to a later leader (Raft, 5.4.2).
"""

from __future__ import annotations

from headrace.cores.raft import voter_changes
from headrace.cores.raft.appending import append_control
from headrace.cores.raft.config import OBSERVER_SESSION_MS, OBSERVERS_MAX, PARKED_MAX
from headrace.cores.raft.inputs import Token
from headrace.cores.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    FetchRequest,
    FetchResponse,
    ReplicaStatus,
)
from headrace.cores.raft.news import leader_error, reply
from headrace.cores.raft.outputs import KRaftVersion, LeaderChange, LeadershipReady, Voters
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.serving import fetch_answer, known_high_watermark, serve, serve_parked
from headrace.cores.raft.states import Leader, Parked, Progress
from headrace.cores.raft.voters import BOOTSTRAP_OFFSET, ReplicaKey, Voter
from headrace.model.errors import ErrorCode


def begin(replica: Replica, granting: set[int]) -> None:
    """Begin an epoch with a record of its own, and with the voters if the log does not name them yet."""
    leader = replica.become_leader()
    voters = replica.log.voters
    change = LeaderChange(replica.key.id, tuple(voters.last.by_id), tuple(sorted(granting)))
    own = Voter(replica.key, replica.config.endpoints or voters.last.endpoints(replica.key.id))
    outdated = voters.last_offset == BOOTSTRAP_OFFSET or voters.last.by_id.get(replica.key.id) != own
    if voters.kraft_version and outdated and (updated := voters.last.update(own)) is not None:
        append_control(replica, leader, (change, KRaftVersion(voters.kraft_version), Voters(updated)))
    else:
        append_control(replica, leader, (change,))


# Fetches


def on_fetch(replica: Replica, token: Token, request: FetchRequest) -> None:
    """Answer a fetch, or let it wait for news."""
    if (
        request.max_wait_ms < 0
        or request.fetch_offset < 0
        or request.last_epoch < 0
        or request.last_epoch > max(request.epoch, 0)
    ):
        replica.answer(token, reply(replica, FetchResponse, ErrorCode.INVALID_REQUEST))
        return
    error = leader_error(replica, request.epoch)
    role = replica.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        replica.answer(token, reply(replica, FetchResponse, error))
        return
    verdict = replica.log.validate(request.fetch_offset, request.last_epoch)
    if verdict is not None:
        replica.answer(token, fetch_answer(replica, role, verdict))
        return
    progress = note_fetch(replica, role, request)
    old = role.parked.pop(request.replica, None)
    if old is not None:
        replica.answer(old.token, fetch_answer(replica, role))
    news = request.fetch_offset < replica.log.end_offset or known_high_watermark(replica, role) > request.high_watermark
    if news or request.max_wait_ms == 0 or progress is None or len(role.parked) >= PARKED_MAX:
        serve(replica, role, token, request)
    else:
        deadline_ms = replica.now_ms + request.max_wait_ms
        role.parked[request.replica] = Parked(token=token, request=request, deadline_ms=deadline_ms)


def note_fetch(replica: Replica, leader: Leader, request: FetchRequest) -> Progress | None:
    """Take down how far a replica is; None if it is not one."""
    key = request.replica
    if key.id < 0 or key.id == replica.key.id:
        return None
    progress = leader.voters.get(key.id)
    is_voter = progress is not None and key.answers_to(progress.key)
    if progress is None or not is_voter:
        if key not in leader.observers and len(leader.observers) >= OBSERVERS_MAX:
            del leader.observers[min(leader.observers, key=lambda one: leader.observers[one].last_fetch_ms)]
        progress = leader.observers.setdefault(key, Progress(key))
    progress.fetched(offset=request.fetch_offset, leader_end=replica.log.end_offset, now_ms=replica.now_ms)
    heard_voter(replica, leader, key)
    if is_voter:
        update_high_watermark(replica, leader)
    return progress


def heard_voter(replica: Replica, leader: Leader, key: ReplicaKey) -> None:
    """Keep leading as long as a majority is heard of."""
    progress = leader.voters.get(key.id)
    if progress is None or not key.answers_to(progress.key) or key.id == replica.key.id:
        return
    leader.fetched_voters.add(key.id)
    others = len(leader.voters) // 2 + 1 - (replica.key.id in leader.voters)
    if len(leader.fetched_voters) >= others:
        leader.fetched_voters.clear()
        leader.check_quorum_ms = replica.now_ms + replica.config.check_quorum_timeout_ms


# The high watermark


def majority_offset(replica: Replica, leader: Leader) -> int:
    """The highest offset that a majority of the voters has flushed."""
    own_id, flushed = replica.key.id, replica.log.flushed_offset
    offsets = [flushed if node_id == own_id else one.end_offset for node_id, one in leader.voters.items()]
    offsets.sort(reverse=True)
    return offsets[len(offsets) // 2]


def is_of_this_epoch(leader: Leader, offset: int) -> bool:
    """Whether a record of the leader's own epoch lies below an offset."""
    return offset > leader.epoch_start_offset


def update_high_watermark(replica: Replica, leader: Leader) -> None:
    """Move the high watermark if a majority has come further, and tell all who wait for it."""
    offset = majority_offset(replica, leader)
    if not is_of_this_epoch(leader, offset) or (leader.is_ready and offset <= replica.high_watermark):
        return
    replica.move_high_watermark(offset)
    if not leader.is_ready:
        leader.is_ready = True
        replica.emit(LeadershipReady(replica.epoch))
    voter_changes.on_commit(replica, leader)
    serve_parked(replica, leader)


# Staying the leader


def poll_leader(replica: Replica, leader: Leader) -> int:
    """Resign if it must be, present oneself to those who do not fetch, answer who waited long enough."""
    now_ms = replica.now_ms
    alone = leader.voters.keys() == {replica.key.id}
    if leader.resign or replica.shutdown_ms is not None or (now_ms >= leader.check_quorum_ms and not alone):
        replica.become_resigned(successors(replica, leader))
        return now_ms
    if now_ms >= leader.begin_epoch_ms:
        _present(replica, leader)
        leader.begin_epoch_ms = now_ms + replica.config.begin_epoch_interval_ms
    wake_ms = min(leader.begin_epoch_ms, serve_parked(replica, leader), voter_changes.poll(replica, leader))
    return wake_ms if alone else min(wake_ms, leader.check_quorum_ms)


def successors(replica: Replica, leader: Leader) -> tuple[ReplicaKey, ...]:
    """The other voters, the most up to date first."""
    others = [progress for progress in leader.voters.values() if progress.key.id != replica.key.id]
    return tuple(progress.key for progress in sorted(others, key=lambda one: (-one.end_offset, one.key.id)))


def _present(replica: Replica, leader: Leader) -> None:
    """Send BeginQuorumEpoch to the voters that have not fetched lately."""
    recently_ms = replica.now_ms - replica.config.begin_epoch_interval_ms
    for voter in replica.log.voters.last.by_id.values():
        node_id = voter.key.id
        progress = leader.voters[node_id]
        if node_id == replica.key.id or (progress.acknowledged and progress.last_fetch_ms > recently_ms):
            continue
        if replica.connections.is_ready(node_id, replica.now_ms):
            request = BeginQuorumEpochRequest(
                cluster_id=replica.config.cluster_id,
                voter=voter.key,
                leader_id=replica.key.id,
                epoch=replica.epoch,
                endpoints=replica.config.endpoints,
            )
            replica.send(node_id, voter.endpoints, request)


def on_begin_epoch_answer(
    replica: Replica, sender: int, request: BeginQuorumEpochRequest, response: BeginQuorumEpochResponse
) -> None:
    """Take down who knows that this replica leads."""
    role = replica.role
    if isinstance(role, Leader) and sender in role.voters:
        role.voters[sender].acknowledged = True


def abandon(replica: Replica, leader: Leader) -> None:
    """Let go of everybody who waits for a leader that is none any more."""
    for parked in leader.parked.values():
        replica.answer(parked.token, reply(replica, FetchResponse, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    leader.parked.clear()
    voter_changes.finish(replica, leader, ErrorCode.NOT_LEADER_OR_FOLLOWER)


# Telling


def on_describe(replica: Replica, token: Token, request: DescribeQuorumRequest) -> None:
    """Tell how far everybody is."""
    role = replica.role
    if not isinstance(role, Leader):
        replica.answer(token, reply(replica, DescribeQuorumResponse, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return
    since_ms = replica.now_ms - OBSERVER_SESSION_MS
    observers = [one for one in role.observers.values() if one.last_fetch_ms > since_ms]
    response = DescribeQuorumResponse(
        leader_id=replica.leader_id,
        epoch=replica.epoch,
        endpoints=replica.leader_endpoints,
        high_watermark=known_high_watermark(replica, role),
        voters=tuple(_status(replica, progress) for progress in role.voters.values()),
        observers=tuple(_status(replica, progress) for progress in observers),
    )
    replica.answer(token, response)


def _status(replica: Replica, progress: Progress) -> ReplicaStatus:
    endpoints = replica.log.voters.last.endpoints(progress.key.id)
    if progress.key.id == replica.key.id:
        return ReplicaStatus(progress.key, replica.log.end_offset, replica.now_ms, replica.now_ms, endpoints)
    return ReplicaStatus(
        progress.key, progress.end_offset, progress.last_fetch_ms, progress.last_caught_up_ms, endpoints
    )
