"""Elections, seen from one replica."""

import pytest
from tests.unit.cores.raft.conftest import endpoints, key, voter_set

from headrace.cores.raft.election import succession_delay
from headrace.cores.raft.inputs import Answered
from headrace.cores.raft.log_mirror import LogMirror
from headrace.cores.raft.messages import EndQuorumEpochRequest, FetchResponse, VoteRequest, VoteResponse
from headrace.cores.raft.outputs import Answer, AppendControl, BecameLeader, LeaderChange, Persist, Send
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.voters import ReplicaKey, VoterHistory
from headrace.model.errors import ErrorCode


def vote(candidate=1, epoch=1, last_offset=0, last_epoch=0, **more):
    return VoteRequest(epoch=epoch, candidate=key(candidate), last_offset=last_offset, last_epoch=last_epoch, **more)


def log_of(*epochs, voters=(0, 1, 2)):
    log = LogMirror(voters=VoterHistory(voter_set(*voters)))
    for epoch in epochs:
        log.append(1, epoch)
    log.flushed(log.end_offset, 0)
    return log


def test_a_vote_is_written_down_first(bench):
    """Is a vote safe before anybody hears of it, and given once in an epoch?"""
    node = bench()
    granted = node.ask(vote(candidate=1, epoch=3))
    order = [type(output) for output in node.outputs if isinstance(output, Persist | Answer)]

    assert (True, ErrorCode.NONE, 3) == (granted.granted, granted.error, granted.epoch)
    assert [Persist, Persist, Answer] == order
    assert QuorumState(3, -1, key(1)) == node.all(Persist)[-1].state
    assert not node.ask(vote(candidate=2, epoch=3)).granted
    assert node.ask(vote(candidate=1, epoch=3)).granted
    assert node.ask(vote(candidate=2, epoch=4)).granted


@pytest.mark.parametrize(
    ("last_epoch", "last_offset", "granted"),
    [(2, 4, True), (2, 3, True), (2, 2, False), (1, 9, False), (3, 1, True)],
)
def test_the_log_must_be_up_to_date(bench, last_epoch, last_offset, granted):
    """Is a vote refused to a candidate whose log may lack committed records?"""
    node = bench(log=log_of(1, 2, 2))

    assert granted == node.ask(vote(epoch=5, last_offset=last_offset, last_epoch=last_epoch)).granted
    pre_vote = vote(epoch=5, last_offset=last_offset, last_epoch=last_epoch, pre_vote=True, candidate=2)
    assert granted == node.ask(pre_vote).granted


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(epoch=5, last_offset=-1), ErrorCode.INVALID_REQUEST),
        (vote(epoch=5, last_epoch=5), ErrorCode.INVALID_REQUEST),
        (vote(epoch=5, last_epoch=-1), ErrorCode.INVALID_REQUEST),
        (vote(epoch=6, candidate=-3), ErrorCode.INVALID_REQUEST),
        (vote(epoch=5, voter=key(1)), ErrorCode.INVALID_VOTER_KEY),
        (vote(epoch=5, voter=key(0, generation=1)), ErrorCode.INVALID_VOTER_KEY),
        (vote(epoch=5, cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_refusals(bench, request_, error):
    """Does a bad request get Kafka's code, and no vote?"""
    node = bench(state=QuorumState(5))
    response = node.ask(request_)

    assert (error, False) == (response.error, response.granted)
    assert node.raft.replica.state.voted is None


def test_no_vote_where_a_leader_is_known(bench):
    """Is a vote refused in an epoch that has a leader, and a pre-vote once that leader was heard?"""
    node = bench()
    fetch = node.follow(leader_id=1, epoch=2)

    assert not node.ask(vote(candidate=2, epoch=2)).granted
    assert node.ask(vote(candidate=2, epoch=2, pre_vote=True)).granted
    node.reply(fetch, FetchResponse(leader_id=1, epoch=2))
    assert not node.ask(vote(candidate=2, epoch=2, pre_vote=True)).granted
    assert not bench().elect(1).ask(vote(candidate=2, epoch=1, pre_vote=True)).granted


def test_from_silence_to_leadership(bench):
    """Does a voter that hears nothing ask first, then stand in the next epoch, then lead with a record of its own?"""
    node = bench()
    assert "Unattached" == node.role
    node.wait(1_000)
    asked = node.sent(VoteRequest)
    assert ("Prospective", 0, [True, True]) == (node.role, node.raft.epoch, [send.request.pre_vote for send in asked])
    assert [] == node.all(Persist)

    node.reply(asked[0], VoteResponse(granted=True))
    stood = node.sent(VoteRequest)
    assert ("Candidate", 1, [False, False]) == (node.role, node.raft.epoch, [send.request.pre_vote for send in stood])
    kinds = [type(output) for output in node.outputs]
    assert kinds.index(Persist) < kinds.index(Send)

    node.reply(stood[1], VoteResponse(epoch=1, granted=True))
    kinds = [type(output) for output in node.outputs]
    assert "Leader" == node.role
    assert kinds.index(Persist) < kinds.index(BecameLeader) < kinds.index(AppendControl)
    assert QuorumState(1, 0, key(0)) == node.all(Persist)[0].state
    assert (LeaderChange(0, (0, 1, 2), (0, 2)),) == node.all(AppendControl)[0].records


def test_a_lost_pre_vote_changes_nothing(bench):
    """Does a prospective that is refused go back to where it was, in the same epoch?"""
    node = bench()
    node.wait(1_000)
    for send in node.sent(VoteRequest):
        node.reply(send, VoteResponse(granted=False))

    assert ("Unattached", 0) == (node.role, node.raft.epoch)
    follower = bench()
    follower.follow(leader_id=1, epoch=2)
    follower.wait(2_000)
    assert "Prospective" == follower.role
    for send in follower.sent(VoteRequest):
        follower.reply(send, VoteResponse(leader_id=1, epoch=2, granted=False))
    assert ("Follower", 1, 2) == (follower.role, follower.raft.leader_id, follower.raft.epoch)


def test_votes_of_another_poll_do_not_count(bench):
    """Is a late or repeated answer no vote?"""
    node = bench(voters=(0, 1, 2, 3, 4))
    node.wait(1_000)
    first, *_ = node.sent(VoteRequest)
    for _ in range(3):
        node.reply(first, VoteResponse(granted=True))

    assert "Prospective" == node.role
    node.step(Answered(2, 999, VoteResponse(granted=True)))
    assert "Prospective" == node.role


def test_a_candidate_whose_time_is_up_asks_again(bench):
    """Does a candidate that nobody answers go back to asking, and not to ever higher epochs?"""
    node = bench()
    node.wait(1_000)
    node.reply(node.sent(VoteRequest)[0], VoteResponse(granted=True))
    node.wait(1_000)

    assert ("Prospective", 1) == (node.role, node.raft.epoch)


def test_the_only_voter_leads_at_once(bench):
    """Does a quorum of one wait for nobody, after any kind of stop?"""
    for state in (QuorumState(), QuorumState(3, 0, key(0)), QuorumState(3, -1, key(0)), QuorumState(3, 7)):
        node = bench(voters=(0,), state=state)

        assert "Leader" == node.role
        assert node.raft.epoch > state.epoch


@pytest.mark.parametrize(
    ("state", "role"),
    [
        (QuorumState(4), "Unattached"),
        (QuorumState(4, 0), "Resigned"),
        (QuorumState(4, 1), "Follower"),
        (QuorumState(4, 9), "Unattached"),
        (QuorumState(4, -1, key(0)), "Unattached"),
        (QuorumState(4, -1, key(1)), "Unattached"),
    ],
)
def test_roles_after_a_restart(bench, state, role):
    """Does a replica take up a role that cannot break what it promised?"""
    node = bench(state=state)

    assert (role, 4) == (node.role, node.raft.epoch)
    assert not node.ask(vote(candidate=2, epoch=4)).granted or state == QuorumState(4)


def test_state_older_than_the_log(bench):
    """Is the epoch taken from the log where the file is behind it, and written down?"""
    node = bench(log=log_of(1, 6), state=QuorumState(2, 1))

    assert 6 == node.raft.epoch
    assert [QuorumState(6)] == [persist.state for persist in node.all(Persist)]


def test_a_resigned_leader_never_returns_to_its_epoch(bench):
    """Does a leader that restarts tell the others, and go on in another epoch?"""
    node = bench(state=QuorumState(4, 0, key(0)))

    assert [1, 2] == [send.to for send in node.sent(EndQuorumEpochRequest)]
    node.wait(1_000)
    assert ("Prospective", 5) == (node.role, node.raft.epoch)


def test_a_resigned_leader_that_was_removed_goes_on(bench):
    """Does a leader that restarts and is no voter any more look for the new leader after a while?"""
    node = bench(voters=(1, 2), state=QuorumState(4, 0, key(0)))

    assert "Resigned" == node.role
    node.wait(5_000)
    assert "Unattached" == node.role


@pytest.mark.parametrize(
    ("preferred", "delay_ms"),
    [((0, 1, 2), 0), ((1, 0, 2), 250), ((1, 2, 0), 500), ((1, 2), 1000), ((), 1000)],
)
def test_the_order_of_succession(bench, preferred, delay_ms):
    """Do voters wait the longer, the later they are named by a leader that resigns?"""
    request = EndQuorumEpochRequest(leader_id=3, epoch=1, preferred=tuple(key(node) for node in preferred))

    assert delay_ms == succession_delay(bench().raft.replica, request)


def test_observers_do_not_stand(bench):
    """Does a replica that is no voter look for a leader and never stand?"""
    node = bench(me=7)
    for _ in range(20):
        node.wait(5_000)

        assert "Unattached" == node.role


def test_a_removed_voter_may_be_needed(bench):
    """Does the only one that knows of its own uncommitted removal stand, for the votes of those that remain?"""
    history = VoterHistory(None, [(-1, voter_set(0, 1)), (0, voter_set(1))])
    log = LogMirror(end_offset=1, epochs=[(1, 0)], voters=history)
    node = bench(log=log, state=QuorumState(2))
    node.wait(1_000)

    assert ("Prospective", [1]) == (node.role, [send.to for send in node.sent(VoteRequest)])
    assert ReplicaKey(1, key(1).directory_id) == node.sent(VoteRequest)[0].request.voter
    assert endpoints(1) == node.sent(VoteRequest)[0].endpoints
