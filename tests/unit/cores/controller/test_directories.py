"""Log dirs of replicas."""

from uuid import UUID

import pytest

from controller_shell import ControllerShell, directories
from headrace.cores.controller.directories import DirectoryAssignment, assign_replicas_to_dirs, newly_offline
from headrace.cores.controller.placement import UNASSIGNED
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import RegisterBrokerRecord

DIRS = directories(2, 2)


@pytest.fixture
def cluster() -> ControllerShell:
    """A topic on 1 and on 2, which has two dirs, led by 2."""
    cluster = ControllerShell(brokers=1)
    cluster.register(2, dirs=2)
    cluster.beat(2)
    cluster.create("a", (2, 1))
    return cluster


def assign(cluster: ControllerShell, directory: UUID, **fields) -> ErrorCode:
    """Broker 2 says where its replica is."""
    topic_id = cluster.metadata.topics["a"].topic_id
    wanted = DirectoryAssignment(**{"directory": directory, "topic_id": topic_id, "partition": 0, **fields})
    epoch = cluster.metadata.brokers[2].broker_epoch
    (code,) = cluster.run(assign_replicas_to_dirs, broker_id=2, broker_epoch=epoch, wanted=[wanted])
    return code


def test_broker_says_where_its_replica_is(cluster):
    """Is a replica's directory noted, and nothing else changed?"""
    assert (UNASSIGNED, *directories(1)) == cluster.partition("a").directories

    assert ErrorCode.NONE == assign(cluster, DIRS[1])

    state = cluster.partition("a")
    assert ((DIRS[1], *directories(1)), 2, 0, 1) == (
        state.directories,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
    )
    before = cluster.next_offset
    assign(cluster, DIRS[1])
    assert before == cluster.next_offset


def test_replica_in_a_dir_that_is_gone_is_not_in_sync(cluster):
    """Does another lead if the broker names a directory it does not have any more?"""
    assert ErrorCode.NONE == assign(cluster, UUID(int=777_777))

    assert (1, (1,)) == (cluster.partition("a").leader, cluster.partition("a").isr)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic_id": UUID(int=5)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition": 3}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_unknown_partitions_are_told(cluster, fields, code):
    """Does each assignment have its own code?"""
    assert code == assign(cluster, DIRS[0], **fields)


def test_foreign_partition_is_told(cluster):
    """Is a partition that the broker has no replica of refused?"""
    cluster.create("b", (1,))

    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == assign(cluster, DIRS[0], topic_id=cluster.metadata.topics["b"].topic_id)


def test_stale_broker_is_refused(cluster):
    """Is the epoch of who says so checked?"""
    with pytest.raises(KafkaError) as refused:
        assign_replicas_to_dirs(cluster.metadata, broker_id=2, broker_epoch=0, wanted=[])
    assert ErrorCode.STALE_BROKER_EPOCH == refused.value.code


def test_only_known_dirs_can_be_lost():
    """Does a directory that was never there, or is known to be gone, mean nothing?"""
    assert {DIRS[0]} == newly_offline(RegisterBrokerRecord(log_dirs=DIRS), [DIRS[0], UUID(int=5000)])
