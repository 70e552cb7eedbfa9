"""What a replica makes of news about leaders and epochs."""

import pytest
from tests.unit.cores.raft.conftest import endpoints

from headrace.cores.raft.messages import FetchRequest, FetchResponse
from headrace.cores.raft.news import Use, leader_error, take_in, take_in_response
from headrace.cores.raft.quorum_state import QuorumState
from headrace.model.errors import ErrorCode


@pytest.mark.parametrize(
    ("leader_id", "epoch", "known_endpoints", "role", "state"),
    [
        (-1, 4, (), "Unattached", QuorumState(5)),
        (-1, 6, (), "Unattached", QuorumState(6)),
        (1, 4, (), "Unattached", QuorumState(5)),
        (1, 5, (), "Follower", QuorumState(5, 1)),
        (1, 6, (), "Follower", QuorumState(6, 1)),
        (9, 6, (), "Unattached", QuorumState(6, 9)),
        (9, 6, endpoints(9), "Follower", QuorumState(6, 9)),
        (9, 5, (), "Unattached", QuorumState(5)),
    ],
)
def test_taking_in(bench, leader_id, epoch, known_endpoints, role, state):
    """Is a leader followed if it is news and can be reached, and a higher epoch taken over in any case?"""
    node = bench(state=QuorumState(5))
    take_in(node.raft.replica, leader_id=leader_id, epoch=epoch, endpoints=known_endpoints)

    assert (role, state) == (node.role, node.raft.replica.state)


def test_endpoints_that_come_late(bench):
    """Is a leader that could not be reached followed when somebody says where it is?"""
    node = bench(state=QuorumState(5, 9))
    assert "Unattached" == node.role
    take_in(node.raft.replica, leader_id=9, epoch=5, endpoints=endpoints(9))

    assert "Follower" == node.role


@pytest.mark.parametrize(
    ("response", "use"),
    [
        (FetchResponse(epoch=4), Use.DONE),
        (FetchResponse(epoch=4, error=ErrorCode.UNKNOWN_LEADER_EPOCH), Use.FAILED),
        (FetchResponse(epoch=5), Use.GO_ON),
        (FetchResponse(epoch=5, leader_id=1), Use.GO_ON),
        (FetchResponse(epoch=6), Use.DONE),
        (FetchResponse(epoch=6, error=ErrorCode.FENCED_LEADER_EPOCH), Use.DONE),
        (FetchResponse(epoch=5, error=ErrorCode.NOT_LEADER_OR_FOLLOWER), Use.FAILED),
        (FetchResponse(epoch=5, leader_id=1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER), Use.DONE),
        (FetchResponse(epoch=5, error=ErrorCode.UNKNOWN_SERVER_ERROR), Use.FAILED),
        (FetchResponse(epoch=5, error=ErrorCode.SNAPSHOT_NOT_FOUND), Use.GO_ON),
    ],
)
def test_what_a_response_is_good_for(bench, response, use):
    """Is a response used only in the epoch it was asked for in, and its sender left alone if it was of no use?"""
    assert use == take_in_response(bench(state=QuorumState(5)).raft.replica, response)


def test_who_serves_whom(bench):
    """Does only the leader of just this epoch serve?"""
    leader = bench().elect(1).raft.replica

    assert ErrorCode.NONE == leader_error(leader, 1)
    assert ErrorCode.FENCED_LEADER_EPOCH == leader_error(leader, 0)
    assert ErrorCode.UNKNOWN_LEADER_EPOCH == leader_error(leader, 2)
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == leader_error(bench().raft.replica, 0)


def test_a_leader_that_fails_is_left_alone(bench):
    """Is a leader that answers with an error asked again only after a pause?"""
    node = bench()
    fetch = node.follow(epoch=2)
    node.reply(fetch, FetchResponse(leader_id=1, epoch=2, error=ErrorCode.UNKNOWN_SERVER_ERROR))

    assert [] == node.sent()
    node.wait(20)
    assert 1 == len(node.sent(FetchRequest))
