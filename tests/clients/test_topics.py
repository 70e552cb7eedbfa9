"""Topics as clients see them: found, created on the way, described, grown, deleted and made anew."""

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import NewPartitions

from clients.libraries import (
    DEADLINE_S,
    LIBRARIES,
    Aiokafka,
    Confluent,
    Deadline,
    KafkaPython,
    Sent,
    admin,
    create_topic,
    records_of,
)
from headrace.model.errors import ErrorCode
from headrace.testing import Cluster
from wire_client import one_fetch

pytestmark = pytest.mark.clients

by_name = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)


@pytest.fixture(scope="module")
def strict():
    """A broker that creates no topics by itself."""
    with Cluster({"auto.create.topics.enable": "false"}) as cluster:
        yield cluster


def delete_topic(bootstrap, name):
    client = admin(bootstrap)
    client.delete_topics([name])[name].result(DEADLINE_S)


def topic_id(bootstrap, name):
    """A topic's id, and the number of its partitions."""
    client = admin(bootstrap)
    described = client.describe_topics(TopicCollection([name]))[name].result(DEADLINE_S)
    return str(described.topic_id), len(described.partitions)


# --- finding the way


def test_bootstrap_tells_everything(shared, topic):
    """Does a client that knows one address learn the brokers, topics, partitions and leaders (R1)?"""
    create_topic(shared.bootstrap, topic, partitions=3)
    found = admin(shared.bootstrap).list_topics(timeout=DEADLINE_S)

    assert {(b.id, f"{b.host}:{b.port}") for b in found.brokers.values()} == {(1, shared.bootstrap)}
    assert found.controller_id == 1
    assert found.cluster_id == shared.broker.cluster_id
    partitions = found.topics[topic].partitions
    assert {n: (p.leader, p.replicas, p.isrs) for n, p in partitions.items()} == {n: (1, [1], [1]) for n in range(3)}


def test_describe_cluster(shared):
    """Do the libraries' cluster descriptions name the one broker and its cluster?"""
    client = admin(shared.bootstrap)
    described = client.describe_cluster().result(DEADLINE_S)
    python = kafka.KafkaAdminClient(bootstrap_servers=shared.bootstrap)
    also = python.describe_cluster()
    python.close()

    assert described.cluster_id == also["cluster_id"] == shared.broker.cluster_id
    assert [(node.id, node.port) for node in described.nodes] == [(1, shared.port)]
    assert described.controller.id == also["controller_id"] == 1
    assert [(broker["broker_id"], broker["port"]) for broker in also["brokers"]] == [(1, shared.port)]


# --- creation on the way


@by_name
def test_topic_comes_with_the_first_record(shared, topic, library):
    """Is a topic that nobody created there when somebody sends to it (R13)?"""
    library.send(shared.bootstrap, topic, [Sent(value=b"first")])

    assert [seen.value for seen in library.read(shared.bootstrap, topic, count=1)] == [b"first"]
    assert topic_id(shared.bootstrap, topic)[1] == 1


def test_created_topics_have_the_brokers_defaults():
    """Does a topic that comes by itself get num.partitions of them?"""
    with Cluster({"num.partitions": "4"}) as cluster:
        Confluent.send(cluster.bootstrap, "by-itself", records_of(2, partition=3))

        assert topic_id(cluster.bootstrap, "by-itself")[1] == 4


def refused_by_aiokafka(bootstrap, topic):
    """Send within a time that a connection and a question have too: on a busy machine it takes more than one try."""
    deadline = Deadline()
    while True:
        try:
            return Aiokafka.send(bootstrap, topic, records_of(1), request_timeout_ms=300)
        except (aiokafka.errors.KafkaConnectionError, aiokafka.errors.RequestTimedOutError):
            deadline.check("it does not get through to the broker")


def test_no_creation_where_it_is_off(strict, topic):
    """With auto.create.topics.enable=false, is an unknown topic unknown to every library, and stays so?"""
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        Confluent.send(strict.bootstrap, topic, records_of(1), **{"topic.metadata.propagation.max.ms": 1})
    assert caught.value.args[0].code() in {
        confluent_kafka.KafkaError._UNKNOWN_TOPIC,
        confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    with pytest.raises(kafka.errors.KafkaTimeoutError):
        KafkaPython.send(strict.bootstrap, topic, records_of(1), max_block_ms=200)
    with pytest.raises(aiokafka.errors.UnknownTopicOrPartitionError):
        refused_by_aiokafka(strict.bootstrap, topic)
    assert topic not in strict.ask(lambda broker: broker.metadata.topics)


def test_unknown_topic_described(strict, topic):
    """Is a description of a topic that is not there an error with the right name?"""
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        topic_id(strict.bootstrap, topic)

    assert caught.value.args[0].code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART


@by_name
def test_unknown_partition(shared, topic, library):
    """Is a record for a partition that the topic does not have refused rather than put elsewhere?"""
    create_topic(shared.bootstrap, topic, partitions=2)
    # Where a library looks at the metadata first, it is the library that refuses.
    with pytest.raises((confluent_kafka.KafkaException, AssertionError, ValueError, kafka.errors.KafkaError)):
        library.send(shared.bootstrap, topic, records_of(1, partition=2))

    for index in range(2):
        assert shared.ask(lambda broker, i=index: broker.partitions.require(topic, i).log.log_end_offset) == 0


# --- growing


def test_more_partitions_while_in_use(shared, topic):
    """Can a topic get more partitions without losing a record of those it has (R13)?"""
    create_topic(shared.bootstrap, topic, partitions=2)
    Confluent.send(shared.bootstrap, topic, records_of(5, partition=1))
    client = admin(shared.bootstrap)
    client.create_partitions([NewPartitions(topic, 5)])[topic].result(DEADLINE_S)
    Confluent.send(shared.bootstrap, topic, records_of(3, partition=4))

    assert topic_id(shared.bootstrap, topic)[1] == 5
    assert Confluent.read(shared.bootstrap, topic, 1, count=5) == [
        r.at(n) for n, r in enumerate(records_of(5, partition=1))
    ]
    assert Confluent.read(shared.bootstrap, topic, 4, count=3) == [
        r.at(n) for n, r in enumerate(records_of(3, partition=4))
    ]


# --- deleting and making anew


@by_name
def test_deleted_and_made_anew(shared, topic, library):
    """Over and over under one name, is each topic a new one that shows nothing of the one before (R16)?"""
    ids = set()
    for life in range(4):
        create_topic(shared.bootstrap, topic, partitions=1 + life)
        ids.add(topic_id(shared.bootstrap, topic))
        sent = [Sent(value=f"life {life}, record {n}".encode()) for n in range(3 + life)]

        assert library.send(shared.bootstrap, topic, sent) == list(range(3 + life))
        assert Confluent.read(shared.bootstrap, topic, count=3 + life) == [r.at(n) for n, r in enumerate(sent)]
        delete_topic(shared.bootstrap, topic)
    assert len(ids) == 4
    assert {partitions for _, partitions in ids} == {1, 2, 3, 4}


def test_waiting_fetch_of_a_deleted_topic(shared, wire, topic, until_parked):
    """Is a fetch that waits in a topic answered at once when the topic is deleted, and an error?"""
    create_topic(shared.bootstrap, topic)
    client = wire(shared)
    waiting = client.send("Fetch", 12, one_fetch(topic, 0, max_wait_ms=300_000))
    until_parked(shared, topic)
    delete_topic(shared.bootstrap, topic)
    (answered,) = client.receive("Fetch", 12, waiting).responses

    assert [p.error_code for p in answered.partitions] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
