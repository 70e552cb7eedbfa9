"""Headrace's clients against Apache Kafka itself; with credentials in test_headrace_credentials.py."""

import asyncio

import pytest

from clients.libraries import DEADLINE_S
from clients.quick_groups import QUICK_GROUPS
from headrace import (
    AsyncKafkaConsumer,
    AsyncKafkaProducer,
    KafkaAdmin,
    KafkaConsumer,
    KafkaProducer,
    NewTopic,
    TopicPartition,
)
from headrace.client.partitioners import partition_of
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]


def started(directory, settings):
    """Apache Kafka, running; skipped where there is no Java."""
    try:
        peer = KafkaPeer(directory, settings=settings)
        peer.format()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    peer.start()
    return peer


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """Apache Kafka as it comes."""
    one = started(tmp_path_factory.mktemp("peer") / "broker", QUICK_GROUPS)
    yield one
    one.remove()


def test_round_trip(peer, topic, group):
    """Do producer, transactions, group and admin work with Apache Kafka as they do with Headrace?"""
    with KafkaAdmin(bootstrap_servers=peer.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 5, 1)])
        with KafkaProducer(bootstrap_servers=peer.bootstrap, transactional_id=group, key_serializer="str") as producer:
            with producer.transaction():
                sent = [producer.send(topic, b"%d" % n, key=f"key {n}", headers=[("h", b"1")]) for n in range(20)]
            placed = [one.get(DEADLINE_S).partition for one in sent]
        with KafkaConsumer(
            topic,
            bootstrap_servers=peer.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            group_protocol="consumer",
        ) as consumer:
            seen = sorted(int(next(consumer).value) for _ in range(20))
            consumer.commit()
        committed = admin.list_group_offsets(group)
        ends = admin.list_offsets({TopicPartition(topic, n): "latest" for n in range(5)})

    assert [partition_of(b"key %d" % n, 5) for n in range(20)] == placed
    assert list(range(20)) == seen
    # The marker of the transaction takes an offset too, in the partitions it wrote to.
    assert 20 == sum(found.offset for found in committed.values()) - sum(
        found.offset == ends[place].offset for place, found in committed.items()
    )


def test_async_round_trip(peer, topic):
    """Do the asynchronous clients work with Apache Kafka?"""

    async def work():
        async with AsyncKafkaProducer(bootstrap_servers=peer.bootstrap, value_serializer="json") as producer:
            await producer.send_and_wait(topic, {"n": 1}, headers=[("h", b"1")])
        async with AsyncKafkaConsumer(
            topic, bootstrap_servers=peer.bootstrap, auto_offset_reset="earliest", value_deserializer="json"
        ) as consumer:
            return (await consumer.getone()).value

    assert {"n": 1} == asyncio.run(asyncio.wait_for(work(), DEADLINE_S))
