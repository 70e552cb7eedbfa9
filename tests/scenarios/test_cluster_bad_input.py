"""What a cluster must refuse: each with Kafka's error, and with a sentence in the log of who refused it."""

import logging

import pytest

from caught_up import caught_up
from headrace.model.errors import ErrorCode
from headrace.testing import Cluster
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from wire_client import WireClient


@pytest.fixture(scope="module")
def cluster():
    """Three brokers with a topic that has two replicas."""
    with Cluster(brokers=3) as cluster:
        with WireClient(cluster.port) as client:
            create(client, "known", assigned=[(1, 2)])
        cluster.call(caught_up(cluster.brokers.values()))
        yield cluster


def create(client, name, *, factor=-1, assigned=()):
    """The answer to a wish for a topic."""
    placed = (CreatableReplicaAssignment(partition_index=i, broker_ids=tuple(ids)) for i, ids in enumerate(assigned))
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=factor, assignments=tuple(placed))
    return client.ask("CreateTopics", 7, CreateTopicsRequest(topics=(topic,))).topics[0]


def grow(client, *brokers):
    """The answer to a wish for one more partition, on these brokers."""
    placed = (CreatePartitionsAssignment(broker_ids=brokers),)
    topic = CreatePartitionsTopic(name="known", count=2, assignments=placed)
    return client.ask("CreatePartitions", 3, CreatePartitionsRequest(topics=(topic,), timeout_ms=30_000)).results[0]


def move(client, *brokers):
    """The answer to a wish to have the partition on these brokers."""
    topic = ReassignableTopic(name="known", partitions=(ReassignablePartition(partition_index=0, replicas=brokers),))
    answer = client.ask("AlterPartitionReassignments", 1, AlterPartitionReassignmentsRequest(topics=(topic,)))
    return answer.responses[0].partitions[0]


def pose(client, broker, epoch):
    """The answer to a fetch in a broker's name."""
    asked = FetchPartition(partition=0, partition_max_bytes=1_000, log_start_offset=0)
    topic_id = client.describe_topic("known").topic_id
    replica = ReplicaState(replica_id=broker, replica_epoch=epoch)
    topic = FetchTopic(topic_id=topic_id, partitions=(asked,))
    answer = client.ask("Fetch", 17, FetchRequest(max_bytes=1_000, replica_state=replica, topics=(topic,)))
    return answer if answer.error_code else answer.responses[0].partitions[0]


CASES = {
    "factor": (
        lambda client: create(client, "wide", factor=4),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "topic_refused topic=wide error=INVALID_REPLICATION_FACTOR reason=Unable to replicate the partition 4 time(s)",
    ),
    "assignment to nobody": (
        lambda client: create(client, "placed", assigned=[(1, 77)]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "topic_refused topic=placed error=INVALID_REPLICA_ASSIGNMENT reason=The manual partition assignment includes",
    ),
    "assignment twice to one": (
        lambda client: create(client, "twice", assigned=[(1, 1)]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "topic_refused topic=twice error=INVALID_REPLICA_ASSIGNMENT reason=",
    ),
    "growth onto nobody": (
        lambda client: grow(client, 1, 77),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partitions_refused topic=known error=INVALID_REPLICA_ASSIGNMENT reason=",
    ),
    "move to nobody": (
        lambda client: move(client, 1, 77),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "reassignment_refused partition=known-0 error=INVALID_REPLICA_ASSIGNMENT reason=",
    ),
    "fetch as nobody": (
        lambda client: pose(client, 77, 1),
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "replica_refused replica=77 peer=127.0.0.1 error=NOT_LEADER_OR_FOLLOWER reason=A client fetches as broker 77",
    ),
    "fetch as no replica": (
        lambda client: pose(client, 3, -1),
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        "replica_refused replica=3 peer=127.0.0.1 error=UNKNOWN_LEADER_EPOCH reason=Broker 3 is not known as a replica",
    ),
    "fetch as a replica of old": (
        lambda client: pose(client, 2, 0),
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "replica_refused replica=2 peer=127.0.0.1 error=NOT_LEADER_OR_FOLLOWER reason=Broker 2 has been restarted",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_and_told(cluster, caplog, case):
    """Is it refused with Kafka's error, and is a sentence of it in the log?"""
    caplog.set_level(logging.INFO, logger="headrace.broker.refusals")
    ask, code, line = CASES[case]
    # The leader of the topic is the one to pose at; everything else may be asked of anybody.
    with WireClient(int(cluster.address(1).rpartition(":")[2])) as client:
        answer = ask(client)

    assert code == answer.error_code
    # What brokers refuse each other meanwhile is not asked for here.
    told = [each.getMessage() for each in caplog.records]
    assert 1 == sum(each.startswith(line) for each in told), told
