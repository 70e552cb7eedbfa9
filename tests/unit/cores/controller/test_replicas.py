"""Changes of the ISR, as leaders ask for them."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from controller_shell import ControllerShell
from headrace.cores.controller import Reassignment, alter_partitions, alter_reassignments
from headrace.cores.metadata import PartitionState
from headrace.model.errors import ErrorCode, KafkaError


@pytest.fixture
def cluster() -> ControllerShell:
    """Three brokers and a topic on all of them, led by 1."""
    cluster = ControllerShell(brokers=4, elr=True)
    cluster.create("a", (1, 2, 3), min_insync_replicas="2")
    return cluster


def test_leader_shrinks_and_grows_its_isr(cluster):
    """Is the partition answered as it is now, its partition epoch raised and its leader epoch not?"""
    answer = cluster.alter(cluster.isr_change("a", 1, 3))

    assert ErrorCode.NONE == answer.error
    assert cluster.partition("a") == answer.state
    assert ((1, 3), 1, 0, 1) == (
        answer.state.isr,
        answer.state.leader,
        answer.state.leader_epoch,
        answer.state.partition_epoch,
    )
    assert (1, 2, 3) == cluster.alter(cluster.isr_change("a", 1, 2, 3)).state.isr


def test_change_to_what_is_already_so_is_answered_and_not_written(cluster):
    """Does a repeated request get its answer without a record?"""
    before = cluster.next_offset

    answer = cluster.alter(cluster.isr_change("a", 1, 2, 3))

    assert (ErrorCode.NONE, cluster.partition("a")) == (answer.error, answer.state)
    assert before == cluster.next_offset


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic_id": UUID(int=5)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": [(1, -1), (4, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, -1), (1, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": []}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(2, -1), (3, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 1, "isr": [(1, -1)]}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, -1), (2, 12345)]}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_wrong_changes_are_refused(cluster, fields, code):
    """Does each wrong change have Kafka's code, and change nothing?"""
    before = cluster.next_offset

    answer = cluster.alter(replace(cluster.isr_change("a", 1, 2), **fields), leader=1)

    assert (code, None) == (answer.error, answer.state)
    assert before == cluster.next_offset


def test_only_the_leader_may_ask(cluster):
    """Is a follower's request refused?"""
    assert ErrorCode.INVALID_REQUEST == cluster.alter(cluster.isr_change("a", 1, 2), leader=2).error


def test_request_of_a_stale_broker_is_refused_whole(cluster):
    """Is the epoch of who asks checked before anything else?"""
    with pytest.raises(KafkaError) as refused:
        cluster.run(alter_partitions, broker_id=1, broker_epoch=0, wanted=[cluster.isr_change("a", 1)])
    assert ErrorCode.STALE_BROKER_EPOCH == refused.value.code


def test_brokers_that_do_not_serve_do_not_join(cluster):
    """Are brokers that are fenced, stopping or not registered kept out of the ISR?"""
    cluster.silence(2)
    assert ErrorCode.INELIGIBLE_REPLICA == cluster.alter(cluster.isr_change("a", 1, 2)).error

    cluster.create("led-by-3", (3,))
    cluster.beat(3, wants_shutdown=True)
    assert not cluster.metadata.brokers[3].fenced
    assert ErrorCode.INELIGIBLE_REPLICA == cluster.alter(cluster.isr_change("a", 1, 3)).error

    epoch = cluster.metadata.brokers[2].broker_epoch
    change = cluster.isr_change("a", 1, isr=[(1, -1), (2, epoch)])
    cluster.unregister(2)
    assert ErrorCode.INELIGIBLE_REPLICA == cluster.alter(change).error


def test_second_change_of_one_request_sees_the_first(cluster):
    """Is a partition that is named twice changed once?"""
    change = cluster.isr_change("a", 1, 2)
    epoch = cluster.metadata.brokers[1].broker_epoch

    first, second = cluster.run(alter_partitions, broker_id=1, broker_epoch=epoch, wanted=[change, change])

    assert (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION) == (first.error, second.error)


def test_small_isr_leaves_eligible_replicas(cluster):
    """Does a shrink below min.insync.replicas keep who left eligible?"""
    state: PartitionState = cluster.alter(cluster.isr_change("a", 1)).state

    assert ((1,), (2, 3)) == (state.isr, state.elr)


def test_change_that_ends_the_leaders_reign_says_so(cluster):
    """Is the leader told to look for its successor when its change completes a reassignment without it?"""
    cluster.run(alter_reassignments, [Reassignment(topic="a", partition=0, replicas=(4, 2))])
    assert (1, 2, 3) == cluster.partition("a").isr

    answer = cluster.alter(cluster.isr_change("a", 1, 2, 3, 4))

    assert (ErrorCode.NEW_LEADER_ELECTED, None) == (answer.error, answer.state)
    assert (4, (4, 2), (2, 4)) == (
        cluster.partition("a").leader,
        cluster.partition("a").replicas,
        cluster.partition("a").isr,
    )
