"""Reading by assignment: from any offset, from any time, many partitions at once, and waiting for what is not there."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import aiokafka
import confluent_kafka
import kafka
import pytest

from clients.libraries import (
    DEADLINE_S,
    LIBRARIES,
    Aiokafka,
    Confluent,
    Deadline,
    KafkaPython,
    confluent_consumer,
    confluent_poll,
    confluent_seen,
    create_topic,
    records_of,
)
from headrace.records.build import NewRecord, build_batch

pytestmark = pytest.mark.clients

START_MS = 1_700_000_000_000

by_name = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)


def fill_with_batches(client, topic, sizes, *, codec="none", timestamp=lambda index: START_MS + 10 * index):
    """Batches of the given numbers of records, each record telling its own offset; gives all timestamps."""
    timestamps = []
    for size in sizes:
        records = []
        for _ in range(size):
            timestamps.append(timestamp(len(timestamps)))
            records.append(NewRecord(timestamp=timestamps[-1], value=str(len(timestamps) - 1).encode()))
        assert client.produce(topic, build_batch(records, codec=codec)).error_code == 0
    return timestamps


# --- from any offset


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
@by_name
def test_from_every_offset(shared, wire, topic, library, codec):
    """Does a consumer that starts anywhere, in the middle of a batch too, get exactly what is from there on (R21)?"""
    create_topic(shared.bootstrap, topic)
    count = len(fill_with_batches(wire(shared), topic, [1, 2, 3, 10, 1, 4], codec=codec))
    # One consumer is enough for the library that is slow to connect; the others begin anew for each offset.
    for offset in range(count) if library is not KafkaPython else (0, 2, 8, 15, 16, 20):
        seen = library.read(shared.bootstrap, topic, offset=offset, count=count - offset)

        assert [(record.offset, int(record.value)) for record in seen] == [(n, n) for n in range(offset, count)]


def test_seeking_back_and_forth(shared, wire, topic):
    """Can one consumer jump about and always be right?"""
    create_topic(shared.bootstrap, topic)
    count = len(fill_with_batches(wire(shared), topic, [5] * 40))
    chance = random.Random(7)
    consumer = confluent_consumer(shared.bootstrap)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    confluent_poll(consumer, 1)
    for _ in range(15):
        offset = chance.randrange(count)
        consumer.seek(confluent_kafka.TopicPartition(topic, 0, offset))

        assert [confluent_seen(m).offset for m in confluent_poll(consumer, 1)] == [offset]
    consumer.close()


def test_beyond_the_end(shared, topic):
    """Is a consumer told that an offset is not there yet, and one at the end just kept waiting?"""
    create_topic(shared.bootstrap, topic)
    Confluent.send(shared.bootstrap, topic, records_of(3))

    with pytest.raises(confluent_kafka.KafkaException) as caught:
        Confluent.read(shared.bootstrap, topic, offset=4, count=1)
    assert caught.value.args[0].code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET
    with pytest.raises(kafka.errors.OffsetOutOfRangeError):
        KafkaPython.read(shared.bootstrap, topic, offset=4, count=1)
    with pytest.raises(aiokafka.errors.OffsetOutOfRangeError):
        Aiokafka.read(shared.bootstrap, topic, offset=4, count=1)


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_from_the_beginning_or_from_now(shared, topic, reset):
    """Does a consumer without a position start at the first record, or after the last, as it asks (R21)?"""
    create_topic(shared.bootstrap, topic)
    Confluent.send(shared.bootstrap, topic, records_of(5))
    start = {"earliest": confluent_kafka.OFFSET_BEGINNING, "latest": confluent_kafka.OFFSET_END}[reset]
    consumer = confluent_consumer(shared.bootstrap)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, start)])
    if reset == "latest":
        # "Now" is when the consumer has looked up its place; its first fetch, which tells the end, comes after that.
        deadline = Deadline()
        while consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), cached=True)[1] != 5:
            assert consumer.poll(0.05) is None
            deadline.check("the consumer found its place")
    Confluent.send(shared.bootstrap, topic, records_of(5))

    expected = 0 if reset == "earliest" else 5
    assert [m.offset() for m in confluent_poll(consumer, 10 - expected)] == list(range(expected, 10))
    consumer.close()


# --- from any time


def first_at_or_after(timestamps, wanted):
    """What a lookup must answer: the offset of the first record, in offset order, that is not older."""
    return next((offset for offset, timestamp in enumerate(timestamps) if timestamp >= wanted), None)


def wanted_times(timestamps):
    """Every interesting time: each record's own, just around it, and outside all."""
    return sorted({t + d for t in timestamps for d in (-1, 0, 1)} | {0, max(timestamps) + 1_000_000})


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_from_every_timestamp(shared, wire, topic, codec):
    """Is the first record at or after any time found, also where times are out of order and records compressed?"""
    create_topic(shared.bootstrap, topic)
    chance = random.Random(11)
    timestamps = fill_with_batches(
        wire(shared), topic, [1, 4, 9, 2], codec=codec, timestamp=lambda _: START_MS + chance.randrange(500)
    )
    consumer = confluent_consumer(shared.bootstrap)
    for wanted in wanted_times(timestamps):
        (found,) = consumer.offsets_for_times([confluent_kafka.TopicPartition(topic, 0, wanted)], DEADLINE_S)
        expected = first_at_or_after(timestamps, wanted)

        assert found.offset == (confluent_kafka.OFFSET_END if expected is None else expected), wanted
    consumer.close()


def test_from_a_timestamp_with_kafka_python(shared, wire, topic):
    """Do offset and timestamp of a lookup reach kafka-python as they are in the log?"""
    create_topic(shared.bootstrap, topic)
    timestamps = fill_with_batches(wire(shared), topic, [3, 3, 3])
    place = kafka.TopicPartition(topic, 0)
    consumer = kafka.KafkaConsumer(bootstrap_servers=shared.bootstrap, enable_auto_commit=False)
    for wanted in wanted_times(timestamps):
        found = consumer.offsets_for_times({place: wanted})[place]
        expected = first_at_or_after(timestamps, wanted)

        assert (found and (found.offset, found.timestamp)) == (
            None if expected is None else (expected, timestamps[expected])
        )
    consumer.close()


def test_from_a_timestamp_with_aiokafka(shared, wire, topic):
    """Do offset and timestamp of a lookup reach aiokafka as they are in the log?"""
    create_topic(shared.bootstrap, topic)
    timestamps = fill_with_batches(wire(shared), topic, [3, 3, 3])
    place = aiokafka.TopicPartition(topic, 0)

    async def look_up():
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=shared.bootstrap, enable_auto_commit=False)
        await consumer.start()
        try:
            return {wanted: (await consumer.offsets_for_times({place: wanted}))[place] for wanted in times}
        finally:
            await consumer.stop()

    times = wanted_times(timestamps)
    for wanted, found in asyncio.run(look_up()).items():
        expected = first_at_or_after(timestamps, wanted)

        assert (found and (found.offset, found.timestamp)) == (
            None if expected is None else (expected, timestamps[expected])
        )


# --- many partitions


@pytest.mark.parametrize("partitions", [20, 100])
def test_all_partitions_at_once(shared, topic, partitions):
    """Does one consumer of all partitions get everything, each partition in its own order (R14, R21)?"""
    create_topic(shared.bootstrap, topic, partitions=partitions)
    sent = {index: records_of(20, partition=index) for index in range(partitions)}
    Confluent.send(shared.bootstrap, topic, [record for records in sent.values() for record in records])
    consumer = confluent_consumer(shared.bootstrap)
    consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(partitions)])
    seen = {index: [] for index in range(partitions)}
    for message in confluent_poll(consumer, 20 * partitions):
        seen[message.partition()].append(confluent_seen(message))
    consumer.close()

    assert seen == {index: [r.at(offset) for offset, r in enumerate(records)] for index, records in sent.items()}


def test_small_fetches_starve_nobody(shared, topic):
    """With room for one batch per fetch, do all partitions get their turn?"""
    create_topic(shared.bootstrap, topic, partitions=6)
    for index in range(6):
        Confluent.send(shared.bootstrap, topic, records_of(200, partition=index, size=200), **{"linger.ms": 0})
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=shared.bootstrap, enable_auto_commit=False, fetch_max_bytes=100, max_partition_fetch_bytes=100
    )
    places = [kafka.TopicPartition(topic, index) for index in range(6)]
    consumer.assign(places)
    consumer.seek_to_beginning()
    deadline = Deadline()
    counts = dict.fromkeys(places, 0)
    while min(counts.values()) < 200:
        for place, records in consumer.poll(timeout_ms=200).items():
            assert [record.offset for record in records] == list(range(counts[place], counts[place] + len(records)))
            counts[place] += len(records)
        deadline.check(str(counts))
    consumer.close()


def test_session_with_partitions_coming_and_going(shared, topic):
    """Over a fetch session that changes with every poll, is nothing missed and nothing seen twice?"""
    create_topic(shared.bootstrap, topic, partitions=5)
    places = [kafka.TopicPartition(topic, index) for index in range(5)]
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=shared.bootstrap, enable_auto_commit=False, fetch_max_wait_ms=20, auto_offset_reset="earliest"
    )
    producer = kafka.KafkaProducer(bootstrap_servers=shared.bootstrap)
    chance = random.Random(3)
    produced = dict.fromkeys(places, 0)
    position = dict.fromkeys(places, 0)
    for _ in range(25):
        followed = chance.sample(places, chance.randint(1, 5))
        for place in chance.sample(places, 3):
            value = str(produced[place]).encode()
            producer.send(topic, value=value, partition=place.partition).get(DEADLINE_S)
            produced[place] += 1
        consumer.assign(followed)
        for place in followed:
            consumer.seek(place, position[place])
        deadline = Deadline()
        while any(position[place] < produced[place] for place in followed):
            for place, records in consumer.poll(timeout_ms=100).items():
                for record in records:
                    assert (record.offset, int(record.value)) == (position[place], position[place])
                    position[place] += 1
            deadline.check(f"{position} of {produced}")
    consumer.close()
    producer.close()


# --- several readers, and none


def test_independent_consumers(shared, topic):
    """Do several consumers of one topic, at their own places and paces, each get all of it (R24)?"""
    create_topic(shared.bootstrap, topic)
    sent = records_of(100)
    Confluent.send(shared.bootstrap, topic, sent)
    consumers = [confluent_consumer(shared.bootstrap) for _ in range(3)]
    for consumer in consumers:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    seen = [[], [], []]
    for turn in range(10):
        for number, consumer in enumerate(consumers):
            if turn * (number + 1) % 3 != 1:
                seen[number] += [confluent_seen(m) for m in confluent_poll(consumer, 10 - number)]
    for number, consumer in enumerate(consumers):
        seen[number] += [confluent_seen(m) for m in confluent_poll(consumer, 100 - len(seen[number]))]
        consumer.close()

    assert seen == [[r.at(offset) for offset, r in enumerate(sent)]] * 3


def test_absent_consumer_loses_nothing(shared, topic):
    """Does a consumer that comes after all producers have gone find everything they left (R35)?"""
    for round_number in range(4):
        LIBRARIES[round_number % 3].send(shared.bootstrap, topic, records_of(10))

    expected = [record.at(offset) for offset, record in enumerate(records_of(10) * 4)]
    for library in LIBRARIES:
        assert library.read(shared.bootstrap, topic, count=40) == expected


# --- waiting


@by_name
def test_waiting_consumer_gets_what_comes(shared, topic, library, until_parked):
    """Does a consumer that waits at the end of the log get records when they are produced, not when its wait ends?"""
    create_topic(shared.bootstrap, topic)
    Confluent.send(shared.bootstrap, topic, records_of(2))
    # Longer than the deadline below: what arrives was not found by asking again.
    patient = {
        "confluent-kafka": {"fetch.wait.max.ms": 30_000},
        "kafka-python": {"fetch_max_wait_ms": 25_000},
        "aiokafka": {"fetch_max_wait_ms": 25_000},
    }[library.name]
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(library.read, shared.bootstrap, topic, offset=2, count=3, **patient)
        until_parked(shared, topic)
        Confluent.send(shared.bootstrap, topic, records_of(3))

        assert [record.offset for record in reading.result(15)] == [2, 3, 4]
