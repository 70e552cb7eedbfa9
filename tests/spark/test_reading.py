"""Topics read as tables: every column, option and codec, from Headrace and from Apache Kafka."""

import json
from datetime import UTC, datetime

import pytest

from headrace.client.records import TopicPartition

SECOND_MS = 1000


def values(frame):
    """The values in the order of their partitions and offsets."""
    return [bytes(row.value) for row in frame.orderBy("partition", "offset").collect()]


def test_columns(read, topics, topic):
    """Has each record the connector's columns, with nulls and headers as they were sent? (R31)"""
    topics.create(topic)
    sent = {"key": b"k", "value": b"v", "timestamp_ms": 1_700_000_000_123, "headers": [("h", b"1"), ("h", None)]}
    topics.send(topic, [sent, {"key": None, "value": None, "timestamp_ms": 1_700_000_000_124}])

    rows = read(topic, includeHeaders="true").orderBy("offset").collect()

    assert [
        (b"k", b"v", topic, 0, 0, 0, [("h", b"1"), ("h", None)]),
        (None, None, topic, 0, 1, 0, []),
    ] == [
        (
            row.key if row.key is None else bytes(row.key),
            row.value if row.value is None else bytes(row.value),
            row.topic,
            row.partition,
            row.offset,
            row.timestampType,
            [(one.key, None if one.value is None else bytes(one.value)) for one in row.headers or []],
        )
        for row in rows
    ]
    moment = datetime.fromtimestamp(1_700_000_000.123, UTC).astimezone().replace(tzinfo=None)
    assert moment == rows[0].timestamp


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(read, topics, topic, codec):
    """Are records of every codec read, over several Fetches?"""
    topics.create(topic)
    sent = [f"{number:05d}-{'x' * (number % 300)}".encode() for number in range(3000)]
    topics.send(topic, sent, compression_type=codec, linger_ms=5)

    assert sent == values(read(topic, more={"kafka.max.partition.fetch.bytes": "20000"}))


def test_partitions_fall_into_few_tasks(read, topics, topic):
    """Is little read by one task, and by more if they are asked for?"""
    topics.create(topic, 4)
    for partition in range(4):
        topics.send(topic, [b"%d" % number for number in range(100)], partition=partition)

    assert 1 == read(topic).rdd.getNumPartitions()
    assert 8 == read(topic, minPartitions=8).rdd.getNumPartitions()
    assert 12 == read(topic, maxRecordsPerPartition=40).rdd.getNumPartitions()
    assert 3 == read(topic, minPartitions=3, maxTasks=3).rdd.getNumPartitions()
    assert 400 == read(topic, minPartitions=8).distinct().count()


def test_offsets(read, topics, topic):
    """Do offsets as JSON, with marks, say where to begin and to end?"""
    topics.create(topic, 2)
    topics.send(topic, [b"a", b"b", b"c"], partition=0)
    topics.send(topic, [b"d", b"e", b"f"], partition=1)

    found = read(
        topic,
        startingOffsets=json.dumps({topic: {"0": 1, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": -1, "1": 2}}),
    )

    assert [b"b", b"c", b"d", b"e"] == values(found)


def test_times(read, topics, topic):
    """Do points in time say where to begin and to end, and what if no record is that young?"""
    topics.create(topic, 2)
    for partition in range(2):
        sent = [{"value": b"%d" % n, "timestamp_ms": 10_000 + SECOND_MS * n} for n in range(5)]
        topics.send(topic, sent, partition=partition)
    by_time = {topic: {"0": 12_000, "1": 13_500}}

    assert [b"2", b"3", b"4"] * 2 == values(read(topic, startingTimestamp=11_001))
    assert [b"2", b"3", b"4", b"4"] == values(read(topic, startingOffsetsByTimestamp=json.dumps(by_time)))
    assert [b"0", b"1"] * 2 == values(read(topic, endingTimestamp=12_000))
    assert [b"0", b"1", b"0", b"1", b"2", b"3"] == values(read(topic, endingOffsetsByTimestamp=json.dumps(by_time)))
    assert [] == values(read(topic, startingTimestamp=99_000, startingOffsetsByTimestampStrategy="latest"))
    with pytest.raises(Exception, match="has no record at or after startingTimestamp 99000"):
        values(read(topic, startingTimestamp=99_000))


def test_several_topics(read, topics, topic):
    """Are topics read by list, by pattern and by partition, and internal ones never by pattern?"""
    first, second = topics.create(f"{topic}.a", 2), topics.create(f"{topic}.b")
    topics.send(first, [b"1"], partition=0)
    topics.send(first, [b"2"], partition=1)
    topics.send(second, [b"3"])
    topics.admin.alter_group_offsets("makes-the-offsets-topic", {TopicPartition(first, 0): 1})

    assert 3 == read(f"{first},{second}").count()
    assert 3 == read(subscribePattern=f"{topic}\\..*").count()
    assert 0 == read(subscribePattern="__consumer.*").count()
    assert [b"2"] == values(read(assign=json.dumps({first: [1]})))


def test_transactions(read, topics, topic):
    """Are aborted records left out, unless all are asked for? Are the gaps that markers leave crossed?"""
    topics.create(topic)
    with topics.producer(transactional_id=topic) as producer:
        producer.init_transactions()
        for name, end in (("a", "commit"), ("b", "abort"), ("c", "commit"), ("d", "abort")):
            producer.begin_transaction()
            for number in range(3):
                producer.send(topic, f"{name}{number}".encode(), partition=0)
            producer.flush()
            getattr(producer, f"{end}_transaction")()
    committed = [b"a0", b"a1", b"a2", b"c0", b"c1", b"c2"]

    assert committed == values(read(topic))
    everything = read(topic, more={"kafka.isolation.level": "read_uncommitted"})
    assert sorted([*committed, b"b0", b"b1", b"b2", b"d0", b"d1", b"d2"]) == sorted(values(everything))


def test_open_transaction(read, topics, topic):
    """Is a transaction that is still open not read, nor what comes behind it?"""
    topics.create(topic)
    topics.send(topic, [b"before"])
    with topics.producer(transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0)
        producer.flush()
        topics.send(topic, [b"behind"])

        assert [b"before"] == values(read(topic))
        producer.commit_transaction()
    topics.wait_for_markers(topic)

    assert [b"before", b"open", b"behind"] == values(read(topic))


def test_compacted_topic(read, topics, topic):
    """Are the gaps crossed that compaction leaves?"""
    topics.create(topic, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    for number in range(20):
        topics.send(topic, [{"key": b"%d" % (key % 7), "value": b"%d.%d" % (number, key)} for key in range(50)])
    deadline = 200
    while len(found := values(read(topic))) > 500 and (deadline := deadline - 1):
        topics.send(topic, [{"key": b"new", "value": b"closes a segment"}])

    assert len(found) <= 500
    assert {b"19.%d" % number for number in range(43, 50)} <= set(found)


def test_just_the_columns_asked_for(read, topics, topic):
    """Does a schema choose the columns, and text instead of bytes?"""
    topics.create(topic)
    topics.send(topic, [{"key": b"k", "value": "grüße".encode()}])

    assert [(0,)] == read(topic, schema="offset bigint").collect()
    assert [(topic, "grüße", "k")] == read(topic, schema="topic string, value string, key string").collect()
    assert "grüße" == read(topic, valueFormat="string").first().value
    assert 1 == read(topic, schema="partition int").count()


def test_typed_json(read, topics, topic):
    """Are the fields of JSON values columns, and is a bad record a row of nulls with its text and the reason?"""
    topics.create(topic)
    topics.send(topic, [b'{"truck":"T-1","speed":81.5,"at":{"lat":1.5}}', b"{garbage", None, b'{"truck":"T-2"}'])
    schema = "truck string, speed double, at struct<lat: double>, _corrupt_record string, _error string, offset bigint"

    rows = read(topic, valueFormat="json", schema=schema).orderBy("offset").collect()

    assert [("T-1", 81.5, 1.5), (None, None, None), (None, None, None), ("T-2", None, None)] == [
        (row.truck, row.speed, row["at"].lat if row["at"] else None) for row in rows
    ]
    assert [None, "{garbage", None, None] == [row._corrupt_record for row in rows]
    assert [False, True, False, False] == [row._error is not None for row in rows]


def test_typed_avro(read, topics, topic):
    """Are the fields of Avro values columns?"""
    import io

    import fastavro

    schema = {
        "type": "record",
        "name": "Report",
        "fields": [{"name": "truck", "type": "string"}, {"name": "speed", "type": "double"}],
    }
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, {"truck": "T-1", "speed": 80.5})
    topics.create(topic)
    topics.send(topic, [out.getvalue(), b"\xff"])

    found = read(topic, valueFormat="avro", avroSchema=json.dumps(schema), schema="truck string, speed double")

    assert {("T-1", 80.5), (None, None)} == {tuple(row) for row in found.collect()}


def test_group_says_where_to_begin(read, topics, topic):
    """Does startingOffsets=group begin where a group stands, and at the beginning where it does not?"""
    topics.create(topic, 2)
    topics.send(topic, [b"a", b"b", b"c"], partition=0)
    topics.send(topic, [b"d", b"e"], partition=1)
    topics.admin.alter_group_offsets(f"{topic}-group", {TopicPartition(topic, 0): 2})

    assert [b"c", b"d", b"e"] == values(read(topic, startingOffsets="group", commitGroup=f"{topic}-group"))


def test_a_few_rows_of_many(read, topics, topic):
    """Can a reader stop in the middle, and is the connection good for the next one?"""
    topics.create(topic)
    topics.send(topic, [b"%06d" % number for number in range(5000)])
    small = {"kafka.max.partition.fetch.bytes": "1000"}

    assert 3 == len(read(topic, more=small).limit(3).collect())
    assert 5000 == read(topic, more=small).count()
