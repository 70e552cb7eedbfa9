"""Changing the voters, one at a time: a change must be committed before the next may begin (KIP-853).

Any majority of a voter set and any majority of the set with one more or one less have a voter in common. With two
changes at once that is not so, and two leaders could be elected.
"""

from __future__ import annotations

from headrace.cores.raft.appending import append_control
from headrace.cores.raft.config import CAUGHT_UP_WITHIN_MS
from headrace.cores.raft.inputs import Token
from headrace.cores.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    KRaftVersionsRequest,
    KRaftVersionsResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from headrace.cores.raft.news import leader_error, reply
from headrace.cores.raft.outputs import Voters
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.states import NEVER, Leader, VoterChange
from headrace.cores.raft.voters import Voter, VoterSet
from headrace.model.errors import ErrorCode


def refusal(replica: Replica, leader: Leader) -> ErrorCode:
    """Why the voters cannot be changed now; NONE if they can."""
    voters = replica.log.voters
    if leader.change is not None or not leader.is_ready:
        return ErrorCode.REQUEST_TIMED_OUT
    if not voters.kraft_version:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.REQUEST_TIMED_OUT if voters.last_offset >= replica.high_watermark else ErrorCode.NONE


def _append(replica: Replica, leader: Leader, voters: VoterSet) -> int:
    return append_control(replica, leader, (Voters(voters),))


def on_add(replica: Replica, token: Token, request: AddVoterRequest) -> None:
    """Begin to add a voter: first it is asked which versions it speaks."""
    role = replica.role
    error = leader_error(replica, replica.epoch)
    if error is ErrorCode.NONE and (request.voter.id < 0 or not request.endpoints):
        error = ErrorCode.INVALID_REQUEST
    if error is ErrorCode.NONE and isinstance(role, Leader):
        error = refusal(replica, role)
        if error is ErrorCode.NONE and request.voter.id in replica.log.voters.last.by_id:
            error = ErrorCode.DUPLICATE_VOTER
        elif error is ErrorCode.NONE and not replica.connections.is_ready(request.voter.id, replica.now_ms):
            error = ErrorCode.REQUEST_TIMED_OUT
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        replica.answer(token, reply(replica, AddVoterResponse, error))
        return
    role.change = VoterChange(
        token=token,
        voter=Voter(request.voter, request.endpoints),
        removes=False,
        deadline_ms=replica.now_ms + max(request.timeout_ms, 0),
        ack_when_committed=request.ack_when_committed,
    )
    replica.send(request.voter.id, request.endpoints, KRaftVersionsRequest(cluster_id=replica.config.cluster_id))


def on_versions_answer(
    replica: Replica, sender: int, request: KRaftVersionsRequest, response: KRaftVersionsResponse
) -> None:
    """Add the voter if it speaks our version and has all of the log."""
    role = replica.role
    if not isinstance(role, Leader) or role.change is None or role.change.voter.key.id != sender:
        return
    change = role.change
    if change.removes or change.offset >= 0:
        return
    low, high = response.kraft_versions
    if response.error is not ErrorCode.NONE:
        finish(replica, role, ErrorCode.REQUEST_TIMED_OUT)
    elif not low <= replica.log.voters.kraft_version <= high:
        finish(replica, role, ErrorCode.INVALID_REQUEST)
    elif not is_caught_up(replica, role, change):
        finish(replica, role, ErrorCode.REQUEST_TIMED_OUT)
    else:
        voters = replica.log.voters.last.add(Voter(change.voter.key, change.voter.endpoints, response.kraft_versions))
        assert voters is not None
        change.offset = _append(replica, role, voters)
        if not change.ack_when_committed:
            replica.answer(change.token, reply(replica, AddVoterResponse))


def is_caught_up(replica: Replica, leader: Leader, change: VoterChange) -> bool:
    """Whether the new voter has been at the end of the log, and lately."""
    progress = leader.observers.get(change.voter.key)
    since_ms = replica.now_ms - CAUGHT_UP_WITHIN_MS
    return progress is not None and progress.last_caught_up_ms >= 0 and progress.last_fetch_ms > since_ms


def on_remove(replica: Replica, token: Token, request: RemoveVoterRequest) -> None:
    """Remove a voter; it may be the leader, who goes on until that is committed, without a vote of its own."""
    role = replica.role
    error = leader_error(replica, replica.epoch)
    voters = None
    if isinstance(role, Leader) and (error := refusal(replica, role)) is ErrorCode.NONE:
        voters = replica.log.voters.last.remove(request.voter)
        error = ErrorCode.NONE if voters is not None else ErrorCode.VOTER_NOT_FOUND
    if voters is None or not isinstance(role, Leader):
        replica.answer(token, reply(replica, RemoveVoterResponse, error))
        return
    role.change = VoterChange(
        token=token,
        voter=Voter(request.voter),
        removes=True,
        deadline_ms=replica.now_ms + replica.config.request_timeout_ms,
        ack_when_committed=True,
    )
    role.change.offset = _append(replica, role, voters)


def on_update(replica: Replica, token: Token, request: UpdateVoterRequest) -> None:
    """Let a voter say where it listens; answered before it is committed."""
    role = replica.role
    error = leader_error(replica, request.epoch)
    if error is ErrorCode.NONE and isinstance(role, Leader):
        error = refusal(replica, role)
        low, high = request.kraft_versions
        if error is ErrorCode.NONE and (not low <= replica.log.voters.kraft_version <= high or not request.endpoints):
            error = ErrorCode.INVALID_REQUEST
        if error is ErrorCode.NONE:
            voters = replica.log.voters.last.update(Voter(request.voter, request.endpoints, request.kraft_versions))
            if voters is None:
                error = ErrorCode.VOTER_NOT_FOUND
            else:
                _append(replica, role, voters)
    replica.answer(token, reply(replica, UpdateVoterResponse, error))


def on_update_answer(replica: Replica, sender: int, request: UpdateVoterRequest, response: UpdateVoterResponse) -> None:
    """Nothing to do: the voter set in the log shows whether it helped, else it is tried again."""


def on_commit(replica: Replica, leader: Leader) -> None:
    """Answer who asked for a change that is committed now; a leader without a vote has done its duty."""
    change = leader.change
    if change is not None and 0 <= change.offset < replica.high_watermark:
        finish(replica, leader, ErrorCode.NONE)
    if not replica.is_voter and replica.log.voters.last_offset < replica.high_watermark:
        leader.resign = True


def finish(replica: Replica, leader: Leader, error: ErrorCode) -> None:
    """Answer who asked for the change that is on, if any."""
    change, leader.change = leader.change, None
    if change is None or (not change.ack_when_committed and change.offset >= 0):
        return
    replica.answer(change.token, reply(replica, RemoveVoterResponse if change.removes else AddVoterResponse, error))


def poll(replica: Replica, leader: Leader) -> int:
    """Give up waiting for a change whose time is over; what is in the log of it may still be committed."""
    change = leader.change
    if change is None:
        return NEVER
    if replica.now_ms >= change.deadline_ms:
        finish(replica, leader, ErrorCode.REQUEST_TIMED_OUT)
        return NEVER
    return change.deadline_ms
