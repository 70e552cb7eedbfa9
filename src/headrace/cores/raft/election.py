"""Elections: who may have a vote, and how votes are asked for and counted (KIP-595, KIP-996)."""

from __future__ import annotations

from headrace.cores.raft import leadership
from headrace.cores.raft.discovery import discover
from headrace.cores.raft.inputs import Token
from headrace.cores.raft.messages import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from headrace.cores.raft.news import reply, voter_error
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.states import (
    Candidate,
    Follower,
    Leader,
    Nominee,
    Prospective,
    Resigned,
    Unattached,
)
from headrace.model.errors import ErrorCode


def is_up_to_date(replica: Replica, request: VoteRequest) -> bool:
    """Whether a candidate's log has at least everything that may be committed here."""
    return (request.last_epoch, request.last_offset) >= (replica.log.last_epoch, replica.log.end_offset)


def can_grant(replica: Replica, request: VoteRequest) -> bool:
    """Whether a candidate of this epoch may have this replica's vote."""
    role = replica.role
    if request.pre_vote:
        content = isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched)
        return not content and is_up_to_date(replica, request)
    if replica.state.voted is not None:
        return request.candidate.answers_to(replica.state.voted)
    return replica.leader_id < 0 and is_up_to_date(replica, request)


def on_vote(replica: Replica, token: Token, request: VoteRequest) -> None:
    """Answer a request for a vote; what is granted is written down before it is said."""
    newest = request.epoch if request.pre_vote else request.epoch - 1
    if request.last_offset < 0 or not 0 <= request.last_epoch <= newest:
        replica.answer(token, reply(replica, VoteResponse, ErrorCode.INVALID_REQUEST))
        return
    error = voter_error(replica, epoch=request.epoch, sender=request.candidate.id)
    if error is ErrorCode.NONE:
        if request.epoch > replica.epoch:
            replica.become_unattached(request.epoch)
        if not replica.key.answers_to(request.voter):
            error = ErrorCode.INVALID_VOTER_KEY
    if error is not ErrorCode.NONE:
        replica.answer(token, reply(replica, VoteResponse, error))
        return
    granted = can_grant(replica, request)
    if granted and not request.pre_vote and replica.state.voted is None:
        replica.vote_for(request.candidate)
    replica.answer(
        token,
        VoteResponse(
            leader_id=replica.leader_id, epoch=replica.epoch, endpoints=replica.leader_endpoints, granted=granted
        ),
    )


def on_vote_answer(replica: Replica, sender: int, request: VoteRequest, response: VoteResponse) -> None:
    """Count a vote of the poll that is on."""
    role = replica.role
    if isinstance(role, Prospective | Candidate) and request.pre_vote == isinstance(role, Prospective):
        role.poll.record(sender, granted=response.granted)


def _ask_for_votes(replica: Replica, role: Nominee) -> int:
    """Send what can be sent; gives when to look again."""
    wake_ms = replica.next_election(role.election_ms)
    if role.poll.is_lost:
        return wake_ms
    for voter in role.poll.unrecorded():
        node_id = voter.key.id
        if replica.connections.is_ready(node_id, replica.now_ms):
            request = VoteRequest(
                cluster_id=replica.config.cluster_id,
                voter=voter.key,
                epoch=replica.epoch,
                candidate=replica.key,
                last_offset=replica.log.end_offset,
                last_epoch=replica.log.last_epoch,
                pre_vote=isinstance(role, Prospective),
            )
            replica.send(node_id, voter.endpoints, request)
        wake_ms = min(wake_ms, replica.connections.next_ms(node_id, replica.now_ms))
    return wake_ms


def poll_unattached(replica: Replica, role: Unattached) -> int:
    """Look for a leader, or stand for election when the time is up."""
    if replica.shutdown_ms is not None:
        return replica.next_election(role.election_ms)
    if replica.may_stand and replica.now_ms >= role.election_ms:
        replica.become_prospective()
        return replica.now_ms
    return min(role.election_ms, discover(replica))


def poll_prospective(replica: Replica, role: Prospective) -> int:
    """Go on as candidate if a majority would vote so, else go back."""
    if role.poll.is_won:
        replica.become_candidate()
        return replica.now_ms
    if replica.shutdown_ms is None and (role.poll.is_lost or replica.now_ms >= role.election_ms):
        if replica.leader_id >= 0 and role.endpoints:
            replica.become_follower(replica.epoch, replica.leader_id, role.endpoints)
        else:
            role.poll.rejected |= role.poll.voters.by_id.keys() - role.poll.granted  # Its clock starts anew.
            replica.become_unattached(replica.epoch, replica.leader_id)
        return replica.now_ms
    return _ask_for_votes(replica, role)


def poll_candidate(replica: Replica, role: Candidate) -> int:
    """Lead if a majority voted so; who lost waits out its time, which chance has made its own."""
    if role.poll.is_won:
        leadership.begin(replica, role.poll.granted)
        return replica.now_ms
    if replica.now_ms >= role.election_ms and replica.shutdown_ms is None:
        replica.become_prospective()
        return replica.now_ms
    return _ask_for_votes(replica, role)


def poll_resigned(replica: Replica, role: Resigned) -> int:
    """Tell the others that they should elect somebody, and after a while join in."""
    if replica.now_ms >= role.election_ms and replica.shutdown_ms is None:
        # The next epoch, so that no answer names this replica as the leader any more.
        replica.become_unattached(replica.epoch + 1)
        return replica.now_ms
    wake_ms = replica.next_election(role.election_ms)
    for node_id in sorted(role.unacknowledged):
        if replica.connections.is_ready(node_id, replica.now_ms):
            request = EndQuorumEpochRequest(
                cluster_id=replica.config.cluster_id,
                leader_id=replica.key.id,
                epoch=replica.epoch,
                preferred=role.preferred,
                endpoints=replica.config.endpoints,
            )
            replica.send(node_id, replica.log.voters.last.endpoints(node_id), request)
        wake_ms = min(wake_ms, replica.connections.next_ms(node_id, replica.now_ms))
    return wake_ms


def on_end_epoch_answer(
    replica: Replica, sender: int, request: EndQuorumEpochRequest, response: EndQuorumEpochResponse
) -> None:
    """Take down who knows of the resignation."""
    if isinstance(replica.role, Resigned):
        replica.role.unacknowledged.discard(sender)


def succession_delay(replica: Replica, request: EndQuorumEpochRequest) -> int:
    """How long a voter waits after a resignation: the first preferred not at all, each other twice as long."""
    longest_ms = replica.config.election_backoff_max_ms
    places = [place for place, key in enumerate(request.preferred) if replica.key.answers_to(key)]
    if not places:
        return longest_ms
    if places[0] == 0:
        return 0
    base_ms = longest_ms >> (len(request.preferred) - 1)
    return min(longest_ms, base_ms << (places[0] - 1))
