"""The door of the core: steps, waking, stopping."""

import inspect

import pytest
from tests.unit.cores.raft.conftest import key, voter_set

from headrace.cores.raft import inputs, outputs
from headrace.cores.raft.inputs import Resign, SendFailed, Shutdown, Tick
from headrace.cores.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from headrace.cores.raft.outputs import LeaderKnown, ShutdownComplete, Wake
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.states import NEVER, Poll, Unattached


def test_waking(bench):
    """Is the time to be woken told when it changes, and again when it has come?"""
    node = bench()
    assert node.wake_ms() > 0
    node.wait(1)
    assert [] == node.all(Wake)
    node.wait(1_000)
    assert node.wake_ms() > node.now_ms


def test_time_runs_forward(bench):
    """Is a clock that runs backwards noticed?"""
    node = bench()
    node.wait(10)
    node.now_ms = 5
    with pytest.raises(AssertionError):
        node.step(Tick())


def test_a_failed_send_is_tried_again(bench):
    """Is a request that could not be sent tried again after a pause, and a failure of an older one ignored?"""
    node = bench()
    node.wait(1_000)
    send = node.sent(VoteRequest)[0]
    node.step(SendFailed(send.to, send.correlation - 77))
    node.wait(20)
    assert [] == node.sent(VoteRequest)
    node.step(SendFailed(send.to, send.correlation))
    node.wait(20)

    assert [send.to] == [again.to for again in node.sent(VoteRequest)]


def test_the_leader_is_told_once(bench):
    """Does the shell hear of each leader and epoch, once?"""
    node = bench()
    assert [(-1, 0)] == [(known.leader_id, known.epoch) for known in node.all(LeaderKnown)]
    node.follow(leader_id=1, epoch=2)
    assert [(1, 2)] == [(known.leader_id, known.epoch) for known in node.all(LeaderKnown)]
    node.wait(2_000)
    assert "Prospective" == node.role
    assert [] == node.all(LeaderKnown)


def test_a_follower_stops_at_once(bench):
    """May a replica that leads nothing stop at once, and does it start no election while it stops?"""
    node = bench()
    node.follow()
    node.step(Shutdown(1_000))
    assert 1 == len(node.all(ShutdownComplete))
    node.wait(60_000)
    assert "Follower" == node.role


def test_a_leader_hands_over(bench):
    """Does a leader that is to stop resign, and wait until the others know, or until its time is over?"""
    node = bench().elect(1)
    node.step(Shutdown(1_000))
    assert ("Resigned", []) == (node.role, node.all(ShutdownComplete))
    first, second = node.sent(EndQuorumEpochRequest)
    node.reply(first, EndQuorumEpochResponse(leader_id=0, epoch=1))
    assert [] == node.all(ShutdownComplete)
    node.reply(second, EndQuorumEpochResponse(leader_id=0, epoch=1))
    assert 1 == len(node.all(ShutdownComplete))

    node = bench().elect(1)
    node.step(Shutdown(1_000))
    node.wait(999)
    assert [] == node.all(ShutdownComplete)
    node.wait(1)
    assert 1 == len(node.all(ShutdownComplete))


def test_a_new_leader_relieves_the_old(bench):
    """Need a leader that is to stop tell nobody more once somebody else leads?"""
    node = bench().elect(1)
    node.step(Shutdown(1_000))
    node.ask(BeginQuorumEpochRequest(leader_id=1, epoch=2))

    assert 1 == len(node.all(ShutdownComplete))


def test_a_leader_waits_for_nobody_who_is_gone(bench):
    """Does a leader that is to stop try twice to tell the others, and then go, when all of them stop with it?"""
    node = bench().elect(1)
    node.step(Shutdown(5_000))
    for send in node.sent(EndQuorumEpochRequest):
        node.step(SendFailed(send.to, send.correlation))
    assert [] == node.all(ShutdownComplete)
    node.wait(20)
    for send in node.sent(EndQuorumEpochRequest):
        assert [] == node.all(ShutdownComplete)
        node.step(SendFailed(send.to, send.correlation))
    assert 1 == len(node.all(ShutdownComplete))


def test_a_candidate_stops_at_once(bench):
    """May a replica that has asked for votes stop without waiting for them?"""
    node = bench()
    node.wait(1_000)
    node.reply(node.sent(VoteRequest)[0], VoteResponse(granted=True))
    assert "Candidate" == node.role
    node.step(Shutdown(5_000))

    assert 1 == len(node.all(ShutdownComplete))


def test_the_first_election_comes_soon(bench):
    """Does a voter that starts without a leader ask soon whether it would be elected, and not wait as if one died?"""
    node = bench(election_timeout_ms=1_000)
    node.wait(99)
    assert "Unattached" == node.role
    node.wait(1)
    assert "Prospective" == node.role


def test_a_leader_of_before_asks_for_an_election(bench):
    """Does a leader that starts again ask the others to stand at once, one after the other?"""
    node = bench(state=QuorumState(3, leader_id=0, voted=key(0)))
    wishes = node.sent(EndQuorumEpochRequest)

    assert "Resigned" == node.role
    assert [(1, (key(1), key(2))), (2, (key(1), key(2)))] == [(one.to, one.request.preferred) for one in wishes]


def test_the_only_voter_stops_at_once(bench):
    """Need a quorum of one wait for nobody when it stops?"""
    node = bench(voters=(0,))
    node.step(Shutdown(1_000))

    assert 1 == len(node.all(ShutdownComplete))


def test_a_stopping_candidate_sleeps(bench):
    """Is a candidate that is stopping not woken for an election it will not hold?"""
    node = bench()
    node.wait(1_000)
    node.reply(node.sent(VoteRequest)[0], VoteResponse(granted=True))
    assert "Candidate" == node.role
    node.step(Shutdown(5_000))
    node.wait(2_000)

    assert node.raft._wake_ms > node.now_ms


def test_resigning_what_one_does_not_lead(bench):
    """Does a wish to resign do nothing to a replica that does not lead?"""
    node = bench()
    node.step(Resign(0))

    assert isinstance(node.raft.replica.role, Unattached)


def test_polls():
    """Is each voter counted once, and is a poll lost as soon as it cannot be won?"""
    poll = Poll(voter_set(0, 1, 2, 3, 4), own_id=0)
    poll.record(1, granted=True)
    poll.record(1, granted=False)
    poll.record(9, granted=True)
    assert (False, False) == (poll.is_won, poll.is_lost)
    for voter in (2, 3, 4):
        poll.record(voter, granted=False)
    assert (False, True) == (poll.is_won, poll.is_lost)
    poll.record(2, granted=True)
    assert poll.is_won
    assert [] == poll.unrecorded()
    assert not Poll(voter_set(1, 2), own_id=0).granted


def test_every_output_is_in_the_list():
    """Do the unions of inputs and outputs name each of their kinds, so that a shell can be checked against them?"""
    for module, union in ((inputs, inputs.Input), (outputs, outputs.Output)):
        kinds = {kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__}
        parts = {"LeaderChange", "KRaftVersion", "Voters", "Proposed"}

        assert {kind.__name__ for kind in kinds} - parts == {kind.__name__ for kind in union.__args__}


def test_never_is_far_away():
    """Is a time that does not come later than any clock?"""
    assert NEVER > 10**15
    assert Replica.__slots__
