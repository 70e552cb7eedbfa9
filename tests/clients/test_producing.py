"""What a topic's settings make of the records that clients send: sizes, times, keys, codecs, and how it says no."""

import time

import aiokafka
import confluent_kafka
import kafka
import pytest

from clients.libraries import (
    LIBRARIES,
    Aiokafka,
    Confluent,
    KafkaPython,
    Sent,
    confluent_consumer,
    confluent_poll,
    create_topic,
    records_of,
)
from headrace.records.batch import split_batches
from headrace.records.compression import CODEC_NAMES

pytestmark = pytest.mark.clients

NOT_LIMITED_BY_CLIENT = {
    Confluent: {"message.max.bytes": 10_000_000},
    KafkaPython: {"max_request_size": 10_000_000},
    Aiokafka: {"max_request_size": 10_000_000},
}

by_name = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)


def refusal(library, bootstrap, topic, sent, **settings):
    """The error code a library reports when the broker says no."""
    try:
        library.send(bootstrap, topic, sent, **settings)
    except confluent_kafka.KafkaException as error:
        return error.args[0].code()
    except (kafka.errors.KafkaError, aiokafka.errors.KafkaError) as error:
        return error.errno
    return 0


def end_of(cluster, topic, partition=0):
    """The log end offset: what was really appended."""
    return cluster.ask(lambda broker: broker.partitions.require(topic, partition).log.log_end_offset)


def stored_batches(wire, cluster, topic):
    """Headers of all batches of partition 0, as they are stored."""
    records = wire(cluster).fetch(topic, 0, max_bytes=1 << 24).records
    return [header for _, header in split_batches(memoryview(records))]


# --- size


@by_name
def test_message_near_the_limit(shared, topic, library):
    """Does a message just within max.message.bytes go through whole (R13)?"""
    create_topic(shared.bootstrap, topic)
    big = Sent(value=bytes(range(256)) * 4 * 1023, key=b"big")

    library.send(shared.bootstrap, topic, [big], **NOT_LIMITED_BY_CLIENT[library])

    for reader in LIBRARIES:
        assert reader.read(shared.bootstrap, topic, count=1) == [big.at(0)], reader.name


@by_name
def test_message_too_large(shared, topic, library):
    """Is a message beyond the topic's max.message.bytes refused by name, and nothing of it kept?"""
    create_topic(shared.bootstrap, topic, max_message_bytes="5000")
    code = refusal(library, shared.bootstrap, topic, [Sent(value=b"x" * 6000)], **NOT_LIMITED_BY_CLIENT[library])

    assert code == kafka.errors.MessageSizeTooLargeError.errno
    assert end_of(shared, topic) == 0


@by_name
def test_ten_megabytes_where_allowed(shared, topic, library):
    """Does a topic that allows it take a message larger than every buffer on its way?"""
    create_topic(shared.bootstrap, topic, max_message_bytes="9000000")
    big = Sent(value=b"0123456789abcdef" * 500_000)

    library.send(shared.bootstrap, topic, [big], **NOT_LIMITED_BY_CLIENT[library])

    assert Confluent.read(shared.bootstrap, topic, count=1, **{"fetch.message.max.bytes": 100_000}) == [big.at(0)]


# --- time


@by_name
def test_log_append_time(shared, topic, library):
    """Does a LogAppendTime topic give records the broker's time, and say so?"""
    create_topic(shared.bootstrap, topic, message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    library.send(shared.bootstrap, topic, records_of(5, timestamp_ms=12345))
    after_ms = time.time_ns() // 1_000_000
    consumer = confluent_consumer(shared.bootstrap)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    stamps = [message.timestamp() for message in confluent_poll(consumer, 5)]
    consumer.close()

    assert {kind for kind, _ in stamps} == {confluent_kafka.TIMESTAMP_LOG_APPEND_TIME}
    assert all(before_ms <= stamp <= after_ms for _, stamp in stamps)
    for reader in (KafkaPython, Aiokafka):
        assert [seen.timestamp_ms for seen in reader.read(shared.bootstrap, topic, count=5)] == [s for _, s in stamps]


@by_name
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("off_ms", [-7_200_000, 7_200_000])
def test_timestamp_bounds(shared, topic, library, codec, off_ms):
    """Are records from too long ago, or from the future, refused where the topic sets bounds?"""
    hour = "3600000"
    create_topic(shared.bootstrap, topic, message_timestamp_before_max_ms=hour, message_timestamp_after_max_ms=hour)
    now_ms = time.time_ns() // 1_000_000
    # One bad record: where a broker names several of a batch, clients say INVALID_RECORD for any reason (KIP-467).
    good, bad = records_of(2, timestamp_ms=now_ms), records_of(1, timestamp_ms=now_ms + off_ms)

    assert refusal(library, shared.bootstrap, topic, good, codec=codec) == 0
    assert refusal(library, shared.bootstrap, topic, bad, codec=codec) == kafka.errors.InvalidTimestampError.errno
    assert end_of(shared, topic) == 2


# --- keys


@by_name
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_compacted_topic_needs_keys(shared, topic, library, codec):
    """Is a record without a key refused by a compacted topic with INVALID_RECORD, and one with a key not?"""
    create_topic(shared.bootstrap, topic, cleanup_policy="compact")
    # aiokafka has no name for this error.
    invalid_record = -1 if library is Aiokafka else kafka.errors.InvalidRecordError.errno

    assert refusal(library, shared.bootstrap, topic, [Sent(value=b"v", key=b"k")], codec=codec) == 0
    assert refusal(library, shared.bootstrap, topic, [Sent(value=b"v")], codec=codec) == invalid_record
    assert refusal(library, shared.bootstrap, topic, [Sent(value=None, key=b"k")], codec=codec) == 0
    assert end_of(shared, topic) == 2


# --- codecs


@by_name
@pytest.mark.parametrize(("sent_as", "stored_as"), [("gzip", "zstd"), ("zstd", "uncompressed"), ("none", "lz4")])
def test_topic_codec(shared, wire, topic, library, sent_as, stored_as):
    """Does a topic with a compression.type of its own store that, whatever is sent, without a change to any record?"""
    create_topic(shared.bootstrap, topic, compression_type=stored_as)
    sent = records_of(60)

    assert library.send(shared.bootstrap, topic, sent, codec=sent_as, idempotent=True) == list(range(60))
    codecs = {CODEC_NAMES[header.codec] for header in stored_batches(wire, shared, topic)}
    assert codecs == {stored_as.replace("uncompressed", "none")}
    for reader in LIBRARIES:
        assert reader.read(shared.bootstrap, topic, count=60) == [r.at(offset) for offset, r in enumerate(sent)]


@by_name
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_producers_codec_is_kept(shared, wire, topic, library, codec):
    """Is a batch stored in the codec its producer chose, where the topic says nothing?"""
    library.send(shared.bootstrap, topic, [Sent(value=b"again and again " * 200)], codec=codec)

    stored = [CODEC_NAMES[header.codec] for header in stored_batches(wire, shared, topic)]
    assert stored == [codec]


# --- without waiting for the disk


@by_name
def test_topic_that_does_not_wait_for_the_disk(shared, topic, library):
    """With flush.on.acks.all=false, is everything acknowledged and readable at once all the same (R19)?"""
    create_topic(shared.bootstrap, topic, flush_on_acks_all="false")
    sent = records_of(100)

    assert library.send(shared.bootstrap, topic, sent, idempotent=True) == list(range(100))
    assert Confluent.read(shared.bootstrap, topic, count=100) == [r.at(offset) for offset, r in enumerate(sent)]
    flushed = shared.ask(lambda broker: broker.partitions.require(topic, 0).log.recovery_point)
    assert flushed == 0
