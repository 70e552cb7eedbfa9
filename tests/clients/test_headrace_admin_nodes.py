"""Headrace's KafkaAdmin about log directories, controllers and transactions; Apache Kafka passes the same."""

import contextlib
import time

import pytest

from hanging import leave_hanging
from headrace import (
    ConfigResource,
    ConfigResourceType,
    ErrorCode,
    KafkaAdmin,
    KafkaError,
    KafkaProducer,
    NewTopic,
    TopicPartition,
)
from headrace.client.fault import ClientFault
from wire_client import WireClient

pytestmark = [pytest.mark.clients, pytest.mark.slow]
PRODUCER_ID = 4711


@pytest.fixture
def admin(broker):
    """An admin client."""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as one:
        yield one


@pytest.fixture
def open_transaction(broker, admin, topic, group):
    """A transactional id that has written a record and not said what shall become of it."""
    admin.create_topics([NewTopic(topic, 2, 1)])
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=group) as producer:
        producer.begin_transaction()
        producer.send(topic, b"perhaps", partition=1)
        producer.flush()
        yield group
        # A test may have ended it already.
        with contextlib.suppress(ClientFault):
            producer.abort_transaction()


def test_log_dirs(broker, admin, topic):
    """Do the log directories say what lies in them and how large it is?"""
    admin.create_topics([NewTopic(topic, 2, 1)])
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(topic, b"x" * 5000, partition=0).get(10)

    ((node_id, directories),) = admin.describe_log_dirs().items()
    (directory,) = directories
    sizes = {one.partition: one.size_bytes for one in directory.replicas if one.partition.topic == topic}
    assert [node_id] == [one.node_id for one in admin.describe_cluster().brokers]
    assert {TopicPartition(topic, 0), TopicPartition(topic, 1)} == set(sizes)
    assert sizes[TopicPartition(topic, 1)] == 0
    assert sizes[TopicPartition(topic, 0)] > 5000
    assert (None, True) == (directory.error, directory.total_bytes >= directory.usable_bytes > 0)


def test_quorum(admin):
    """Is the leader of the controllers one of the voters, and as far as its log goes?"""
    quorum = admin.describe_metadata_quorum()
    (leader,) = [one for one in quorum.voters if one.node_id == quorum.leader_id]

    assert leader.log_end_offset >= quorum.high_watermark > 0
    assert quorum.leader_epoch > 0
    assert leader.endpoints


def test_a_transaction_is_seen(admin, topic, open_transaction):
    """Is an open transaction listed, with what it has written to, and known in the partition?"""
    (listed,) = [one for one in admin.list_transactions(["Ongoing"]) if one.transactional_id == open_transaction]
    described = admin.describe_transaction(open_transaction)
    producers = admin.describe_producers([(topic, 0), (topic, 1)])

    assert (described.coordinator_id, described.producer_id) == (listed.coordinator_id, listed.producer_id)
    assert (TopicPartition(topic, 1),) == described.partitions
    assert 0 < described.started_ms <= time.time() * 1000
    assert [] == producers[topic, 0]
    (producer,) = producers[topic, 1]
    assert (listed.producer_id, 0) == (producer.producer_id, producer.transaction_start_offset)


def test_a_transaction_is_ended_by_force(admin, topic, open_transaction):
    """Does it end for its coordinator and in the partition?"""
    admin.force_terminate_transaction(open_transaction)

    described = admin.describe_transaction(open_transaction)
    assert ("Empty", None, ()) == (described.state, described.started_ms, described.partitions)
    assert [None] == [one.transaction_start_offset for one in admin.describe_producers([(topic, 1)])[topic, 1]]


@pytest.fixture
def unverified(admin):
    """While brokers believe producers which partitions belong to their transactions."""
    name = "transaction.partition.verification.enable"
    admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "", {name: "false"})])
    yield
    admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "", {name: None})])


@pytest.mark.usefixtures("unverified")
def test_what_hangs_is_found_and_aborted(broker, admin, topic, open_transaction):
    """Is a transaction found that no coordinator knows, and only that one, and is it gone when it was aborted?"""
    with WireClient(int(broker.bootstrap.rpartition(":")[2])) as wire:
        leave_hanging(wire, topic, 0, PRODUCER_ID)
    places = [(topic, 0), (topic, 1)]
    later_ms = int(time.time() * 1000) + 60_000
    (found,) = admin.find_hanging_transactions(places, now_ms=later_ms, silent_ms=1000)

    admin.abort_transaction(found)

    assert (TopicPartition(topic, 0), PRODUCER_ID) == (found.partition, found.producer.producer_id)
    assert [] == admin.find_hanging_transactions(places, now_ms=later_ms, silent_ms=1000)


def test_an_unknown_transactional_id(admin):
    """Is an id that nobody used an error with Kafka's name?"""
    with pytest.raises(KafkaError) as refused:
        admin.describe_transaction("nobody-ever")

    assert ErrorCode.TRANSACTIONAL_ID_NOT_FOUND == refused.value.code
