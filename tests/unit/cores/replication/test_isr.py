"""The in-sync replicas while they change."""

import pytest

from headrace.cores.replication.isr import InSyncReplicas, Reaction
from headrace.cores.replication.messages import AlterAnswer
from headrace.model.errors import ErrorCode


@pytest.fixture
def isr():
    """1 and 2 in sync, as of partition epoch 7."""
    return InSyncReplicas((1, 2), 7)


def propose(isr, *replicas):
    """Ask for other in-sync replicas, each of broker epoch 10."""
    isr.propose([(replica, 10) for replica in replicas], 5)
    return isr.pending


def test_who_comes_in_counts_at_once(isr):
    """Does a replica count from when it was asked for?"""
    request = propose(isr, 1, 2, 3)

    assert (request.leader_epoch, request.partition_epoch, request.isr) == (5, 7, ((1, 10), (2, 10), (3, 10)))
    assert isr.outgoing is request
    assert (isr.committed, isr.maximal) == ({1, 2}, {1, 2, 3})


def test_who_goes_counts_until_committed(isr):
    """Does a replica that shall go count until the controller has said so?"""
    propose(isr, 1)
    assert isr.maximal == {1, 2}

    assert isr.accepted(AlterAnswer(leader_epoch=5, partition_epoch=8, isr=(1,)))
    assert (isr.committed, isr.maximal, isr.partition_epoch, isr.pending) == ({1}, {1}, 8, None)


def test_one_at_a_time(isr):
    """Is a second change refused while one is under way?"""
    propose(isr, 1)
    with pytest.raises(AssertionError):
        propose(isr, 1, 2, 3)


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_refused_for_good(isr, error):
    """Is all as before when the controller says that it did not, and will not?"""
    propose(isr, 1, 2, 3)

    assert isr.refused(error) is Reaction.RESET
    assert (isr.committed, isr.maximal, isr.pending, isr.outgoing) == ({1, 2}, {1, 2}, None, None)


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_out_of_date(isr, error):
    """Does everyone count who may be in, until newer metadata comes, and is nothing sent before?"""
    request = propose(isr, 1, 2, 3)
    isr.outgoing = None

    assert isr.refused(error) is Reaction.AWAIT_METADATA
    assert (isr.maximal, isr.pending, isr.outgoing) == ({1, 2, 3}, request, None)
    isr.commit((1, 3), 9)
    assert (isr.committed, isr.maximal, isr.pending) == ({1, 3}, {1, 3}, None)


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_again(isr, error):
    """Is the same request sent again where nothing speaks against it?"""
    request = propose(isr, 1, 2, 3)
    isr.outgoing = None

    assert isr.refused(error) is Reaction.RETRY
    assert isr.outgoing is request
    assert isr.maximal == {1, 2, 3}


def test_the_same_state_twice(isr):
    """Does metadata that tells what is known already leave a change alone that was asked for since?"""
    request = propose(isr, 1, 2, 3)
    isr.commit((1, 2), 7)

    assert isr.pending is request
    assert isr.maximal == {1, 2, 3}


def test_an_old_answer(isr):
    """Is an answer dropped that is older than what the metadata told?"""
    isr.commit((1, 2, 3), 9)

    assert not isr.accepted(AlterAnswer(leader_epoch=5, partition_epoch=8, isr=(1,)))
    assert isr.committed == {1, 2, 3}
