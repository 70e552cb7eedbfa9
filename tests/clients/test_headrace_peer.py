"""Headrace's clients against Apache Kafka itself, with and without credentials."""

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
    NotAuthenticated,
    TopicPartition,
)
from headrace.client.partitioners import partition_of
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

SASL = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        "username=alice password=secret user_alice=secret;"
    ),
}
CREDENTIALS = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "alice"}


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


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Apache Kafka that wants to know who is there."""
    one = started(tmp_path_factory.mktemp("guarded") / "broker", {**QUICK_GROUPS, **SASL})
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


def test_credentials(guarded, topic, monkeypatch, tmp_path):
    """Are credentials taken from arguments, a file and the environment, by every client?"""
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security."
        'plain.PlainLoginModule required username="alice" password="secret";\n'
    )
    with KafkaProducer(bootstrap_servers=guarded.bootstrap, **CREDENTIALS, sasl_plain_password="secret") as producer:
        producer.send(topic, b"x").get(DEADLINE_S)
    with KafkaAdmin(bootstrap_servers=guarded.bootstrap, config_file=file) as admin:
        assert topic in admin.list_topics()
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", guarded.bootstrap)
    monkeypatch.setenv("HEADRACE_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("HEADRACE_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("HEADRACE_SASL_USERNAME", "alice")
    monkeypatch.setenv("HEADRACE_SASL_PASSWORD", "secret")
    with KafkaConsumer(topic, auto_offset_reset="earliest") as consumer:
        assert b"x" == next(consumer).value


@pytest.mark.parametrize("kind", [KafkaProducer, KafkaConsumer, KafkaAdmin])
def test_wrong_password(guarded, kind):
    """Is a wrong password said to be wrong, long before the time for finding a broker is up?"""
    with pytest.raises(NotAuthenticated, match=r"(?i)authenticat"):
        kind(
            bootstrap_servers=guarded.bootstrap, **CREDENTIALS, sasl_plain_password="wrong", bootstrap_timeout_ms=60_000
        )
