"""A stream's planner, asked as Spark asks it, over a real broker and without a JVM."""

import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import LongType, StructField, StructType

from headrace import KafkaAdmin
from headrace.client.records import TopicPartition
from headrace.records.build import NewRecord, build_batch
from headrace.spark.offsets import DataLost
from headrace.spark.option_table import source_options
from headrace.spark.stream_reader import StreamReader

SCHEMA = StructType([StructField("offset", LongType())])
ALL = ReadAllAvailable()


@pytest.fixture
def stream(shared, wire, topic):
    """Makes readers of the test's topic, which has two partitions."""
    wire(shared).create_topic(topic, partitions=2)
    made = []

    def make(**options):
        given = {"kafka.bootstrap.servers": shared.bootstrap, "subscribe": topic, **options}
        made.append(StreamReader(SCHEMA, source_options(given, is_stream=True)))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def send(shared, wire, topic):
    """Sends so many records."""
    client = wire(shared)

    def send(count, partition=0):
        batch = build_batch([NewRecord(timestamp=1, value=b"v")] * count)
        assert 0 == client.produce(topic, bytes(batch), partition=partition).error_code

    return send


def offsets(reader, start, end):
    """What the tasks of a batch read."""
    tasks = reader.partitions(start, end)
    copies = pickle.loads(pickle.dumps((reader, tasks)))
    return sorted(
        number for task in copies[1] for batch in copies[0].read(task) for number in batch.column(0).to_pylist()
    )


def test_a_batch(stream, send, topic):
    """Is a batch what came since the last, read by a copy of the reader?"""
    reader = stream(startingOffsets="earliest")
    start = reader.initialOffset()
    send(5)
    end = reader.latestOffset(start, ALL)

    assert {topic: {"0": 0, "1": 0}} == start
    assert {topic: {"0": 5, "1": 0}} == end == reader.reportLatestOffset()
    assert [0, 1, 2, 3, 4] == offsets(reader, start, end)
    assert [] == reader.partitions(end, end)
    assert end == reader.latestOffset(end, ALL)


def test_limits(stream, send, topic):
    """Are the options' limits those that Spark is told, and what Spark says kept?"""
    send(10)
    reader = stream(startingOffsets="earliest", maxOffsetsPerTrigger="4")
    start = reader.initialOffset()

    assert ReadMaxRows(4) == reader.getDefaultReadLimit()
    assert ReadMinRows(3) == stream(minOffsetsPerTrigger="3").getDefaultReadLimit()
    assert ALL == stream().getDefaultReadLimit()
    assert {topic: {"0": 4, "1": 0}} == reader.latestOffset(start, ReadMaxRows(4))
    assert {topic: {"0": 10, "1": 0}} == reader.latestOffset(start, ALL)


def test_waiting_for_enough(stream, send):
    """Is a batch put off until enough came, except for the first one?"""
    reader = stream(startingOffsets="earliest", minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    limit = reader.getDefaultReadLimit()
    send(2)
    first = reader.latestOffset(reader.initialOffset(), limit)
    send(3)
    assert first == reader.latestOffset(first, limit)
    assert first != reader.latestOffset(first, ALL)
    send(2)
    assert first != reader.latestOffset(first, limit)


def test_latest_is_pinned(stream, send):
    """Is the first batch of a query that begins at the end empty, so that the checkpoint knows where that was?"""
    send(3)
    reader = stream()
    start = reader.initialOffset()
    send(2)

    assert start == reader.initialOffset() == reader.latestOffset(start, ALL)
    assert [3, 4] == offsets(reader, start, reader.latestOffset(start, ALL))


def test_available_now(stream, send, topic):
    """Is what comes after the trigger left for the next run?"""
    send(3)
    reader = stream(startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    send(4)
    end = reader.latestOffset(start, ALL)

    assert {topic: {"0": 3, "1": 0}} == end == reader.latestOffset(end, ALL)


def test_available_now_behind_its_target(stream, send):
    """Is a query that begins at an end which has moved since the trigger not led backward?"""
    reader = stream()
    reader.prepareForTriggerAvailableNow()
    send(2)
    start = reader.initialOffset()

    assert start == reader.latestOffset(start, ALL) == reader.latestOffset(start, ALL)


def test_group(stream, send, topic, shared):
    """Is the group told how far the query is, once what it asks next says so?"""
    reader = stream(startingOffsets="earliest", commitGroup=topic)
    send(3)
    with KafkaAdmin(bootstrap_servers=shared.bootstrap) as admin:
        end = reader.latestOffset(reader.initialOffset(), ALL)
        before = {place.partition: one.offset for place, one in admin.list_group_offsets(topic).items()}
        reader.latestOffset(end, ALL)
        after = {place.partition: one.offset for place, one in admin.list_group_offsets(topic).items()}
        send(1)
        reader.commit(reader.latestOffset(end, ALL))
        last = admin.list_group_offsets(topic)[TopicPartition(topic, 0)].offset

    assert ({0: 0, 1: 0}, {0: 3, 1: 0}, 4) == (before, after, last)


def test_losses(stream, send, topic):
    """Is an offset beyond the end a loss, and the partition read anew if that is allowed?"""
    send(3)
    start = {topic: {"0": 9, "1": 0}}
    with pytest.raises(DataLost, match=f"{topic}-0 ends at 3, but was read up to 9"):
        stream().latestOffset(start, ALL)
    reader = stream(failOnDataLoss="false")
    end = reader.latestOffset(start, ALL)

    assert {topic: {"0": 3, "1": 0}} == end
    assert [0, 1, 2] == offsets(reader, start, end)


def test_batch_of_a_topic_that_is_gone(stream, topic):
    """Is a batch of a checkpoint that names a topic which is gone a loss, or empty if that is allowed?"""
    end = {topic: {"0": 0, "1": 0}, f"{topic}.gone": {"0": 7}}
    with pytest.raises(DataLost, match=f"{topic}.gone-0 is gone before it was read"):
        stream().partitions({}, end)

    assert [] == stream(failOnDataLoss="false").partitions({}, end)
