"""What a broker still knows after it was stopped and started again: everything."""

from concurrent.futures import ThreadPoolExecutor

import confluent_kafka
import pytest
from confluent_kafka.admin import ConfigResource, OffsetSpec

from clients.libraries import (
    DEADLINE_S,
    LIBRARIES,
    Aiokafka,
    Confluent,
    KafkaPython,
    Sent,
    admin,
    confluent_consumer,
    confluent_poll,
    confluent_seen,
    create_topic,
    records_of,
)
from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch

QUICK_TO_RECONNECT = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 10}
SMALL_BATCHES = {
    Confluent: {"batch.num.messages": 10, "linger.ms": 0, "log_level": 0, **QUICK_TO_RECONNECT},
    KafkaPython: {"batch_size": 500, "linger_ms": 0, "reconnect_backoff_ms": 10, "retry_backoff_ms": 10},
    Aiokafka: {"max_batch_size": 500, "retry_backoff_ms": 10},
}


def one_record(value: bytes, producer=(-1, -1), sequence: int = -1) -> bytearray:
    """A batch of one, from an idempotent producer where one is given."""
    return build_batch(
        [NewRecord(timestamp=1_700_000_000_000, value=value)],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
    )


@pytest.mark.clients
def test_data_and_offsets_survive(cluster, topic):
    """After a restart, is every record where it was, in every partition, and do offsets go on from there (R14, R15)?"""
    create_topic(cluster.bootstrap, topic, partitions=3)
    sent = {index: records_of(10 + index, partition=index) for index in range(3)}
    for index, records in sent.items():
        LIBRARIES[index].send(cluster.bootstrap, topic, records)
    for _ in range(2):
        cluster.restart()
        for index, records in sent.items():
            expected = [r.at(offset) for offset, r in enumerate(records)]
            assert Confluent.read(cluster.bootstrap, topic, index, count=len(records)) == expected
    for index, records in sent.items():
        more = Sent(value=b"after", partition=index)
        assert Confluent.send(cluster.bootstrap, topic, [more]) == [len(records)]


def _lasting(broker):
    """What a restart must not change: epochs are not among it, as every process of a broker leads anew."""
    topics = {
        topic.name: (topic.topic_id, [state.replicas for state in topic.partitions])
        for topic in broker.metadata.topics.values()
    }
    return broker.cluster_id, topics


@pytest.mark.clients
def test_topics_and_settings_survive(cluster, topic):
    """After a restart, are the topics the same, with their ids, partitions and settings (R11, R13)?"""
    create_topic(cluster.bootstrap, topic, partitions=5, retention_ms="12345", max_message_bytes="2000")
    create_topic(cluster.bootstrap, "gone")
    client = admin(cluster.bootstrap)
    client.delete_topics(["gone"])["gone"].result(DEADLINE_S)
    before = cluster.ask(_lasting)

    cluster.restart()

    assert cluster.ask(_lasting) == before
    assert list(before[1]) == [topic]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    client = admin(cluster.bootstrap)
    configs = client.describe_configs([resource])[resource].result(DEADLINE_S)
    assert (configs["retention.ms"].value, configs["max.message.bytes"].value) == ("12345", "2000")
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        Confluent.send(cluster.bootstrap, topic, [Sent(value=b"x" * 3000)])
    assert caught.value.args[0].code() == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.clients
def test_producer_and_consumer_live_through_restarts(cluster, topic):
    """Do an idempotent producer and a consumer go on over restarts, with nothing lost and nothing twice (R21)?"""
    create_topic(cluster.bootstrap, topic)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.num.messages": 20,
            "log_level": 0,
            **QUICK_TO_RECONNECT,
        }
    )
    consumer = confluent_consumer(cluster.bootstrap, **QUICK_TO_RECONNECT, log_level=0)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    delivered = []
    for round_number in range(4):
        for number in range(200):
            producer.produce(
                topic,
                value=f"{round_number}/{number}".encode(),
                partition=0,
                on_delivery=lambda error, message: delivered.append(error or (message.offset(), message.value())),
            )
            producer.poll(0)
        if round_number < 3:
            cluster.restart()
    assert producer.flush(DEADLINE_S) == 0
    expected = [f"{r}/{n}".encode() for r in range(4) for n in range(200)]
    seen = [(s.offset, s.value) for s in map(confluent_seen, confluent_poll(consumer, 800))]
    consumer.close()

    assert delivered == list(enumerate(expected))
    assert seen == list(enumerate(expected))


@pytest.mark.clients
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_sending_through_a_restart(cluster, topic, library):
    """Does every library's idempotent producer get everything across a restart in its midst, once and in order?"""
    create_topic(cluster.bootstrap, topic)
    sent = records_of(1000)
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(library.send, cluster.bootstrap, topic, sent, idempotent=True, **SMALL_BATCHES[library])
        while cluster.ask(lambda broker: broker.partitions.require(topic, 0).log.log_end_offset) < 100:
            assert not sending.done()
        cluster.restart()

        assert sending.result(DEADLINE_S) == list(range(1000))
    assert Confluent.read(cluster.bootstrap, topic, count=1000) == [r.at(offset) for offset, r in enumerate(sent)]


def test_producers_are_remembered(cluster, wire, topic):
    """After a restart, is a batch sent again answered with its old offset, and a gap still a gap?"""
    client = wire(cluster)
    client.create_topic(topic)
    producer = client.new_producer_id()
    offsets = [client.produce(topic, one_record(b"%d" % n, producer, sequence=n)).base_offset for n in range(8)]

    cluster.restart()
    client = wire(cluster)

    assert offsets == list(range(8))
    assert client.produce(topic, one_record(b"7", producer, sequence=7)).base_offset == 7
    assert client.produce(topic, one_record(b"3", producer, sequence=3)).base_offset == 3
    again = client.produce(topic, one_record(b"9", producer, sequence=9))
    assert again.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.produce(topic, one_record(b"8", producer, sequence=8)).base_offset == 8
    assert client.new_producer_id()[0] > producer[0]


@pytest.mark.clients
def test_deleted_records_stay_deleted(cluster, topic):
    """After a restart, does a log still begin where DeleteRecords put its start?"""
    create_topic(cluster.bootstrap, topic)
    Confluent.send(cluster.bootstrap, topic, records_of(10))
    place = confluent_kafka.TopicPartition(topic, 0, 6)
    client = admin(cluster.bootstrap)
    client.delete_records([place])[place].result(DEADLINE_S)

    cluster.restart()

    client = admin(cluster.bootstrap)
    found = client.list_offsets({place: OffsetSpec.earliest()})[place].result(DEADLINE_S)
    assert found.offset == 6
    assert [s.offset for s in Confluent.read(cluster.bootstrap, topic, offset=6, count=4)] == [6, 7, 8, 9]


def test_unflushed_records_survive_a_clean_stop(cluster, wire, topic):
    """Is what a topic did not wait to flush on disk after a clean stop (R19)?"""
    client = wire(cluster)
    client.create_topic(topic, flush_on_acks_all="false")
    for number in range(5):
        client.produce(topic, one_record(b"%d" % number), acks=1)
    assert cluster.ask(lambda broker: broker.partitions.require(topic, 0).log.recovery_point) == 0

    cluster.restart()

    log = cluster.ask(lambda broker: broker.partitions.require(topic, 0).log)
    assert (log.recovery_point, log.log_end_offset, log.findings) == (5, 5, [])


def test_a_directory_per_partition(cluster, wire, topic):
    """Does every partition have its directory with segment and indexes, in Kafka's names (R15)?"""
    client = wire(cluster)
    client.create_topic(topic, partitions=2)
    client.produce(topic, one_record(b"v"), partition=1)

    for index in range(2):
        names = {path.name for path in (cluster.directory / f"{topic}-{index}").iterdir()}
        assert names >= {"00000000000000000000.log", "partition.metadata"}
    assert (cluster.directory / f"{topic}-1" / "00000000000000000000.log").stat().st_size > 0
    assert (cluster.directory / "meta.properties").exists()
