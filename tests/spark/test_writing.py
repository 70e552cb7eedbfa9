"""Tables and streams written to topics: every column, once or at least once, to Headrace and to Apache Kafka."""

import time

import pytest

from headrace.client.partitioners import partition_of
from spark.committed import read_committed

EVERY_COLUMN = (
    "binary(key) AS key",
    "value",
    "partition",
    "timestamp_millis(ms) AS timestamp",
    "transform(headers, h -> struct(h AS key, binary(upper(h)) AS value)) AS headers",
)


@pytest.fixture
def write(broker):
    """Writes a table; options are given as keywords, those with dots in a dictionary."""

    def start(frame, topic=None, more=None, **options):
        given = {"kafka.bootstrap.servers": broker.bootstrap, **({"topic": topic} if topic else {}), **options}
        given |= more or {}
        writer = frame.write.format("headrace").options(**{name: str(value) for name, value in given.items()})
        writer.mode("append").save()

    return start


@pytest.fixture
def copy(spark, broker, tmp_path):
    """Runs a query from one topic to another until all is copied; again with the same name, it goes on."""

    def run(source, target, name="copy", change=lambda frame: frame.select("key", "value"), mode="append", **options):
        reader = spark.readStream.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap)
        reading = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "400"}
        given = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "checkpointLocation": str(tmp_path / name),
            **({"topic": target} if target else {}),
            **options,
        }
        writer = change(reader.options(**reading).load()).writeStream.format("headrace").outputMode(mode)
        query = writer.options(**given).trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    return run


def values(broker, topic, partitions=1):
    return [int(seen.value) for seen in read_committed(broker.bootstrap, topic, partitions)]


def send(topics, topic, numbers, partitions=3):
    keyed = [{"key": b"k%d" % (number % 20), "value": b"%d" % number} for number in numbers]
    topics.send(topic, keyed, partition=None)


def check_copy(broker, topic, count, partitions=3):
    """Every number once, those of a key in order."""
    seen = read_committed(broker.bootstrap, topic, partitions, at_least=count)
    last = {}
    for one in seen:
        assert last.get(one.key, -1) < int(one.value)
        last[one.key] = int(one.value)
    assert sorted(int(one.value) for one in seen) == list(range(count))


# --- tables


@pytest.mark.parametrize("exactly_once", ["false", "true"])
def test_every_column(spark, broker, topics, topic, write, exactly_once):
    """Is each column in the record as it was in the row, nulls too, and keys where Java's producer puts them? (R31)"""
    topics.create(topic, 3)
    frame = spark.createDataFrame(
        [("a", "1", None, 1_700_000_000_123, ["x", "y"]), (None, None, 2, -5, None), ("b", "", 0, None, [])],
        "key string, value string, partition int, ms bigint, headers array<string>",
    )
    write(frame.selectExpr(*EVERY_COLUMN), topic, exactlyOnce=exactly_once)

    found = {one.key: one for one in read_committed(broker.bootstrap, topic, 3)}
    assert len(found) == 3
    assert (partition_of(b"a", 3), b"1", 1_700_000_000_123) == (
        found[b"a"].partition,
        found[b"a"].value,
        found[b"a"].timestamp_ms,
    )
    assert [("x", b"X"), ("y", b"Y")] == found[b"a"].headers
    assert (2, None, []) == (found[None].partition, found[None].value, found[None].headers)
    assert (0, b"", []) == (found[b"b"].partition, found[b"b"].value, found[b"b"].headers)
    assert found[b"b"].timestamp_ms > 1_700_000_000_123


def test_the_row_names_its_topic(spark, broker, topics, topic, write):
    """Does each row go to the topic it names, unless the option names one for all?"""
    names = [topics.create(f"{topic}-{letter}") for letter in "abc"]
    frame = spark.range(30).selectExpr(f"concat('{topic}-', if(id % 3 = 0, 'a', 'b')) topic", "string(id) value")
    write(frame)
    write(frame, names[2])

    assert list(range(0, 30, 3)) == sorted(values(broker, names[0]))
    assert [number for number in range(30) if number % 3] == sorted(values(broker, names[1]))
    assert list(range(30)) == sorted(values(broker, names[2]))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(spark, broker, topics, topic, write, codec):
    """Are rows compressed with every codec, and read by others?"""
    topics.create(topic, 3)
    frame = spark.range(0, 5000, 1, 1).selectExpr("string(id % 50) key", "string(id) value")
    write(frame, topic, more={"kafka.compression.type": codec, "kafka.batch.size": "8000"})

    check_copy(broker, topic, 5000)


def test_what_was_read_can_be_written(read, broker, topics, topic, write):
    """Can a table be written as it was read, with the columns that mean nothing to a sink?"""
    source, target = topics.create(f"{topic}-in", 3), topics.create(f"{topic}-out", 3)
    send(topics, source, range(100))
    write(read(source, includeHeaders="true"), target)

    check_copy(broker, target, 100)


def test_a_table_is_written_whole_or_not(spark, broker, topics, topic, write):
    """With exactlyOnce, is nothing seen of a table when one of its tasks fails, and nobody kept waiting?"""
    topics.create(topic)
    frame = spark.range(0, 1000, 1, 4).selectExpr("string(if(id = 999, raise_error('broken'), id)) value")

    with pytest.raises(Exception, match="broken"):
        write(frame, topic, exactlyOnce="true")
    assert [] == values(broker, topic)

    write(spark.range(5).selectExpr("string(id) value"), topic)
    assert list(range(5)) == sorted(values(broker, topic))


# --- streams


@pytest.mark.parametrize("exactly_once", ["false", "true"])
def test_topic_to_topic(broker, topics, topic, copy, exactly_once):
    """Is a topic copied in several batches, each key in order, and goes a second run on where the first ended? (R31)"""
    source, target = topics.create(f"{topic}-in", 3), topics.create(f"{topic}-out", 3)
    send(topics, source, range(1000))
    assert len(copy(source, target, exactlyOnce=exactly_once).recentProgress) >= 3
    send(topics, source, range(1000, 1500))
    copy(source, target, exactlyOnce=exactly_once)

    check_copy(broker, target, 1500)


def test_streams_name_topics_too(broker, topics, topic, copy):
    """With exactlyOnce and a topic in every row: are all topics written in the same transactions?"""
    source = topics.create(f"{topic}-in", 3)
    names = [topics.create(f"{topic}-{number}") for number in range(2)]
    send(topics, source, range(1000))
    copy(
        source,
        None,
        change=lambda frame: frame.selectExpr(
            f"concat('{topic}-', int(string(value)) % 2) topic", "key", "value", "int(0) partition"
        ),
        exactlyOnce="true",
    )

    assert list(range(0, 1000, 2)) == sorted(values(broker, names[0]))
    assert list(range(1, 1000, 2)) == sorted(values(broker, names[1]))


def test_aggregates(broker, topics, topic, copy):
    """Are the results of an aggregation written with every batch, with a shuffle between?"""
    source, target = topics.create(f"{topic}-in", 3), topics.create(f"{topic}-out")
    send(topics, source, range(1000))
    copy(
        source,
        target,
        change=lambda frame: frame.groupBy("key").count().selectExpr("key", "string(count) value"),
        mode="complete",
        exactlyOnce="true",
    )

    last = {one.key: int(one.value) for one in read_committed(broker.bootstrap, target, 1)}
    assert dict.fromkeys([b"k%d" % number for number in range(20)], 50) == last


def test_a_restart_of_the_broker(spark, broker, topics, topic, tmp_path):
    """Does a stream that is being written go on when the broker restarts?"""
    source, target = topics.create(f"{topic}-in", 3), topics.create(f"{topic}-out", 3)
    send(topics, source, range(1000))
    reader = spark.readStream.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap)
    frame = reader.options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="100").load()
    writer = frame.select("key", "value").writeStream.format("headrace").option("topic", target)
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("exactlyOnce", "true")
    query = writer.option("checkpointLocation", str(tmp_path / "restart")).start()
    try:
        while not query.recentProgress:
            query.awaitTermination(0.05)
        broker.restart()
        query.processAllAvailable()
    finally:
        query.stop()

    check_copy(broker, target, 1000)


def test_a_query_has_one_group_per_task(broker, topics, topic, copy):
    """Can one see how far a query is: the next batch of the query, and of each of its tasks, as groups' offsets?"""
    source, target = topics.create(f"{topic}-in", 3), topics.create(f"{topic}-out", 3)
    send(topics, source, range(1000))
    query = copy(source, target, exactlyOnce="true", transactionalIdPrefix="mine")
    name = f"mine-{query.id}"
    batches = max(progress.batchId for progress in query.recentProgress if progress.numInputRows) + 1

    assert [batches] == list(topics.committed(name).values())
    deadline = time.monotonic() + 20
    # A task's own comes with its transaction, whose markers are written after it is committed.
    while [batches] != (found := list(topics.committed(f"{name}-0").values())):
        assert time.monotonic() < deadline, found


@pytest.mark.parametrize("prefix", ["", "mine"])
def test_each_batch_by_hand(spark, broker, topics, topic, tmp_path, prefix):
    """In foreachBatch, mode update: is a batch that fails after its write not written twice? (R31)"""
    source, target = topics.create(f"{topic}-in", 3), topics.create(f"{topic}-out")
    send(topics, source, range(1000))
    given = {"kafka.bootstrap.servers": broker.bootstrap, "topic": target, "exactlyOnce": "true"}
    if prefix:
        given["transactionalIdPrefix"] = prefix
    fail_in = {1}

    def write(frame, number):
        frame.selectExpr("key", "string(count) value").write.format("headrace").options(**given).mode("append").save()
        if number in fail_in:
            fail_in.discard(number)
            raise RuntimeError("told to fail")

    def run():
        reader = spark.readStream.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap)
        frame = reader.options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="400").load()
        writer = frame.groupBy("key").count().writeStream.foreachBatch(write).outputMode("update")
        writer = writer.option("checkpointLocation", str(tmp_path / "by-hand"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="told to fail" if prefix else "foreachBatch needs a transactionalIdPrefix"):
        run()
    if prefix:
        run()
        seen = [(one.key, one.value) for one in read_committed(broker.bootstrap, target, 1)]
        assert len(seen) == len(set(seen)) == 60
        assert dict.fromkeys([b"k%d" % number for number in range(20)], b"50") == dict(seen)
