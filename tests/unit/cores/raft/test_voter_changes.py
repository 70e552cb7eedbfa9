"""Changing the voters."""

import pytest
from tests.unit.cores.raft.conftest import endpoints, key, voter_set

from headrace.cores.raft.inputs import Flushed
from headrace.cores.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    KRaftVersionsRequest,
    KRaftVersionsResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from headrace.cores.raft.outputs import AppendControl, KRaftVersion, LeaderChange, Voters
from headrace.cores.raft.states import Leader
from headrace.cores.raft.voters import Endpoint
from headrace.model.errors import ErrorCode


def add(node_id, **more):
    more.setdefault("endpoints", endpoints(node_id))
    return AddVoterRequest(voter=key(node_id), timeout_ms=1_000, **more)


@pytest.fixture
def ready(bench):
    """A leader of three with all of its log committed, and node 3 as an observer that has all of it."""
    node = bench(dynamic=True).elect(1)
    node.step(Flushed(node.log.end_offset, 0))
    node.fetch(1, 3, 1)
    node.fetch(3, 3, 1)
    assert node.raft.replica.role.is_ready
    return node


def commit(node, *followers):
    """Have everything flushed, by the leader and by some followers."""
    node.step(Flushed(node.log.end_offset, node.log.generation))
    for follower in followers:
        node.fetch(follower, node.log.end_offset, node.log.last_epoch)


def test_the_first_leader_writes_the_voters_down(bench):
    """Are the voters of the formatting written into the log by the first leader?"""
    node = bench(dynamic=True, voters=(0,))
    records = node.all(AppendControl)[0].records

    assert (LeaderChange(0, (0,), (0,)), KRaftVersion(1), Voters(voter_set(0))) == records
    assert 2 == node.log.voters.last_offset


def test_adding_a_voter(ready):
    """Is a new voter asked for its versions, counted at once, and told of when committed by the new majority?"""
    assert ready.ask(add(3)) is None
    (asked,) = ready.sent(KRaftVersionsRequest)
    assert (3, endpoints(3)) == (asked.to, asked.endpoints)
    ready.reply(asked, KRaftVersionsResponse(kraft_versions=(0, 1)))
    assert (Voters(voter_set(0, 1, 2, 3)),) == ready.all(AppendControl)[0].records
    commit(ready, 1)
    assert ready.response() is None, "two of four are no majority"
    ready.fetch(3, 4, 1)

    assert isinstance(ready.response(), AddVoterResponse)
    assert ErrorCode.NONE == ready.response().error


def test_one_change_at_a_time(ready):
    """Is a second change refused until the first is committed?"""
    ready.ask(RemoveVoterRequest(voter=key(2)), token="first")

    for request in (add(3), RemoveVoterRequest(voter=key(1))):
        assert ErrorCode.REQUEST_TIMED_OUT == ready.ask(request).error
    commit(ready, 1)
    assert ErrorCode.NONE == ready.response("first").error
    ready.ask(RemoveVoterRequest(voter=key(1)), token="second")
    assert voter_set(0) == ready.log.voters.last


def test_a_change_whose_time_is_over_still_counts(ready):
    """Does a change that nobody waits for any more still bar the next, as long as it is not committed?"""
    ready.ask(RemoveVoterRequest(voter=key(2)))
    ready.wait(2_000)
    assert ErrorCode.REQUEST_TIMED_OUT == ready.response().error

    assert ErrorCode.REQUEST_TIMED_OUT == ready.ask(RemoveVoterRequest(voter=key(1))).error
    assert voter_set(0, 1) == ready.log.voters.last


def test_refused_additions(ready, bench):
    """Does each bad addition get Kafka's code?"""
    assert ErrorCode.DUPLICATE_VOTER == ready.ask(add(1)).error
    assert ErrorCode.INVALID_REQUEST == ready.ask(add(3, endpoints=())).error
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == bench(dynamic=True).ask(add(3)).error
    assert ErrorCode.REQUEST_TIMED_OUT == bench(dynamic=True).elect(1).ask(add(3)).error
    static = bench(voters=(0,))
    static.flush()
    assert ErrorCode.UNSUPPORTED_VERSION == static.ask(add(3)).error


@pytest.mark.parametrize(
    ("node_id", "answer", "error"),
    [
        (3, KRaftVersionsResponse(kraft_versions=(0, 0)), ErrorCode.INVALID_REQUEST),
        (3, KRaftVersionsResponse(error=ErrorCode.UNSUPPORTED_VERSION), ErrorCode.REQUEST_TIMED_OUT),
        (4, KRaftVersionsResponse(kraft_versions=(0, 1)), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_replicas_that_cannot_vote(ready, node_id, answer, error):
    """Is one refused that does not speak the version, does not say, or has not got the log?"""
    ready.ask(add(node_id))
    ready.reply(ready.sent(KRaftVersionsRequest)[0], answer)

    assert error == ready.response().error
    assert voter_set(0, 1, 2) == ready.log.voters.last
    assert ready.raft.replica.role.change is None


def test_an_answer_before_the_commit(ready):
    """Is who does not want to wait for the commit answered as soon as the leader has the record?"""
    ready.ask(add(3, ack_when_committed=False))
    ready.reply(ready.sent(KRaftVersionsRequest)[0], KRaftVersionsResponse(kraft_versions=(0, 1)))
    assert ErrorCode.NONE == ready.response().error
    commit(ready, 1, 3)

    assert ready.response() is None
    assert ready.raft.replica.role.change is None


def test_a_leader_that_removes_itself(ready):
    """Does a leader without a vote commit its removal by the others, and then resign?"""
    ready.ask(RemoveVoterRequest(voter=key(0)))
    commit(ready, 1)
    assert isinstance(ready.raft.replica.role, Leader)
    commit(ready, 2)

    assert ErrorCode.NONE == ready.response().error
    assert "Resigned" == ready.role


def test_refused_removals(ready):
    """Is only a voter removed, by its directory too, and never the last?"""
    assert ErrorCode.VOTER_NOT_FOUND == ready.ask(RemoveVoterRequest(voter=key(3))).error
    assert ErrorCode.VOTER_NOT_FOUND == ready.ask(RemoveVoterRequest(voter=key(1, generation=1))).error


def test_updating_a_voter(ready):
    """Does a voter that listens elsewhere now get that written down, without waiting for the commit?"""
    elsewhere = (Endpoint("CONTROLLER", "elsewhere", 1),)
    request = UpdateVoterRequest(voter=key(1), epoch=1, endpoints=elsewhere)

    assert ErrorCode.NONE == ready.ask(request).error
    assert elsewhere == ready.log.voters.last.endpoints(1)
    assert ErrorCode.REQUEST_TIMED_OUT == ready.ask(request).error
    commit(ready, 1)
    for more, error in (
        ({"voter": key(3), "epoch": 1}, ErrorCode.VOTER_NOT_FOUND),
        ({"voter": key(1), "epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"voter": key(1), "epoch": 1, "kraft_versions": (0, 0)}, ErrorCode.INVALID_REQUEST),
    ):
        assert error == ready.ask(UpdateVoterRequest(endpoints=elsewhere, **more)).error


def test_the_second_voter_of_one_that_was_long_alone(bench):
    """Does a leader stay one that was alone for longer than a leader may hear from nobody, when it gets company?"""
    node = bench(dynamic=True, voters=(0,))
    node.flush()
    node.wait(60_000)
    node.fetch(3, node.log.end_offset, node.log.last_epoch)
    assert node.ask(add(3)) is None
    node.reply(node.sent(KRaftVersionsRequest)[0], KRaftVersionsResponse(kraft_versions=(0, 1)))
    assert (Voters(voter_set(0, 3)),) == node.all(AppendControl)[0].records
    node.wait(1)
    assert "Leader" == node.role
    node.wait(node.raft.replica.config.check_quorum_timeout_ms)

    assert "Resigned" == node.role, "the new one was never heard of again"
