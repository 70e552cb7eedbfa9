"""Topics read as streams: batches, limits, restarts and groups, from Headrace and from Apache Kafka."""

import json
from itertools import count

import pytest

from headrace.cli import consumer_groups
from headrace.client.records import TopicPartition

EARLIEST = {"startingOffsets": "earliest"}


def values(rows):
    return sorted(bytes(row.value) for row in rows)


def numbered(first, last):
    return [b"%06d" % number for number in range(first, last)]


def test_available_now_and_restart(stream, topics, topic):
    """Does availableNow read what is there in batches of the size asked for, and a restart go on behind it? (R31)"""
    topics.create(topic, 2)
    topics.send(topic, numbered(0, 60), partition=0)
    topics.send(topic, numbered(60, 80), partition=1)
    query = stream(topic, maxOffsetsPerTrigger=20, **EARLIEST)

    assert numbered(0, 80) == values(query.run())
    assert [20] * 4 == [len(rows) for _, rows in sorted(query.batches.items()) if rows]
    assert [] == query.run()

    topics.send(topic, numbered(80, 90), partition=1)
    assert numbered(80, 90) == values(query.run())


def test_failed_batch_comes_again(stream, topics, topic):
    """Is a batch that failed read again from the checkpoint, with the same records though more have come?"""
    topics.create(topic)
    topics.send(topic, numbered(0, 10))
    query = stream(topic, **EARLIEST)
    query.fail_in = {0}
    with pytest.raises(Exception, match="batch 0 was told to fail"):
        query.run()
    topics.send(topic, numbered(10, 15))

    assert numbered(0, 15) == values(query.run())
    assert [numbered(0, 10), numbered(10, 15)] == [values(rows) for _, rows in sorted(query.batches.items())]


def test_latest_is_where_the_query_first_began(stream, topics, topic):
    """Is nothing skipped if the first batch of a query that begins at the end fails?"""
    topics.create(topic)
    topics.send(topic, numbered(0, 5))
    query = stream(topic)
    assert [] == query.run()
    topics.send(topic, numbered(5, 8))
    query.fail_in = {1}
    with pytest.raises(Exception, match="batch 1 was told to fail"):
        query.run()
    topics.send(topic, numbered(8, 9))

    assert numbered(5, 9) == values(query.run())


def test_running_query(stream, topics, topic):
    """Does a query that runs see what is sent, and say how far behind it is?"""
    topics.create(topic)
    query = stream(topic, **EARLIEST)
    running = query.start()
    topics.send(topic, numbered(0, 5))
    query.wait_for(5)
    topics.send(topic, numbered(5, 10))
    query.wait_for(10)
    running.processAllAvailable()
    running.stop()

    assert numbered(0, 10) == values(query.rows())
    last = [one.sources[0] for one in query.progress() if one.numInputRows][-1]
    assert {topic: {"0": 10}} == json.loads(last.endOffset) == json.loads(last.latestOffset)


def test_new_topics_and_partitions(stream, topics, topic):
    """Does a query by pattern find topics and partitions that appear while it runs, from their beginning?"""
    first = topics.create(f"{topic}.a")
    topics.send(first, numbered(0, 3))
    query = stream(subscribePattern=f"{topic}\\..*", **EARLIEST)
    query.start()
    query.wait_for(3)

    second = topics.create(f"{topic}.b")
    topics.send(second, numbered(3, 5))
    query.wait_for(5)
    topics.admin.create_partitions({first: 2})
    topics.wait_for(first, 2)
    topics.send(first, numbered(5, 7), partition=1)

    rows = query.wait_for(7)
    assert numbered(0, 7) == values(rows)
    assert {(first, 0), (first, 1), (second, 0)} == {(row.topic, row.partition) for row in rows}


def test_broker_restart(stream, topics, topic, broker):
    """Does a running query survive that its broker restarts, and lose and repeat nothing?"""
    topics.create(topic, 3)
    for partition in range(3):
        topics.send(topic, numbered(100 * partition, 100 * partition + 50), partition=partition)
    query = stream(topic, maxOffsetsPerTrigger=30, **EARLIEST)
    query.start()
    query.wait_for(30)
    broker.restart()
    for partition in range(3):
        topics.send(topic, numbered(100 * partition + 50, 100 * partition + 60), partition=partition)

    rows = query.wait_for(180)
    assert [number for one in range(3) for number in numbered(100 * one, 100 * one + 60)] == values(rows)


def test_group_shows_progress(stream, topics, topic, broker, capsys):
    """Has the group no lag after availableNow, for whoever asks and for kafka-consumer-groups? (R31)"""
    group = f"{topic}-group"
    topics.create(topic, 2)
    topics.send(topic, numbered(0, 40), partition=0)
    topics.send(topic, numbered(40, 50), partition=1)
    query = stream(topic, commitGroup=group, maxOffsetsPerTrigger=10, **EARLIEST)
    query.run()

    assert {TopicPartition(topic, 0): 40, TopicPartition(topic, 1): 10} == topics.committed(group)
    arguments = ["--bootstrap-server", broker.bootstrap, "--describe", "--group", group]
    capsys.readouterr()
    assert 0 == consumer_groups.main(arguments, consumer_groups.TOOL.name)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if topic in line]
    assert [["0", "40", "40", "0"], ["1", "10", "10", "0"]] == sorted(line[2:6] for line in lines)

    topics.send(topic, numbered(50, 55), partition=1)
    other = stream(topic, commitGroup=group, startingOffsets="group")
    assert numbered(50, 55) == values(other.run())
    assert 15 == topics.committed(group)[TopicPartition(topic, 1)]


def test_group_that_cannot_be_committed(stream, topics, topic, broker):
    """Does a query go on though the group refuses its offsets, because it has members of its own?"""
    from headrace import KafkaConsumer

    topics.create(topic)
    topics.send(topic, numbered(0, 5))
    with KafkaConsumer(topic, bootstrap_servers=broker.bootstrap, group_id=f"{topic}-group") as member:
        while not member.assignment():
            member.poll(timeout_ms=100)

        assert numbered(0, 5) == values(stream(topic, commitGroup=f"{topic}-group", **EARLIEST).run())


def test_start_by_time(stream, topics, topic):
    """Does a stream begin at a point in time?"""
    topics.create(topic)
    sent = zip(numbered(0, 6), count(50_000, 1000), strict=False)
    topics.send(topic, [{"value": value, "timestamp_ms": when} for value, when in sent])

    assert numbered(3, 6) == values(stream(topic, startingTimestamp=53_000).run())
    query = stream(topic, startingTimestamp=99_000, startingOffsetsByTimestampStrategy="latest")
    assert [] == query.run()
    topics.send(topic, numbered(6, 7))
    assert numbered(6, 7) == values(query.run())


def test_least_offsets_per_trigger(stream, topics, topic):
    """Does a query with minOffsetsPerTrigger wait until enough has come?"""
    topics.create(topic)
    topics.send(topic, numbered(0, 2))
    query = stream(topic, minOffsetsPerTrigger=10, maxTriggerDelay="1h", **EARLIEST)
    query.start()
    query.wait_for(2)
    topics.send(topic, numbered(2, 6))
    topics.send(topic, numbered(6, 12))

    query.wait_for(12)
    assert [2, 10] == [len(rows) for _, rows in sorted(query.batches.items()) if rows]


def test_transactions(stream, topics, topic):
    """Are only committed records streamed, and does a batch end cleanly in the middle of markers?"""
    topics.create(topic)
    with topics.producer(transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(10):
            producer.begin_transaction()
            producer.send(topic, b"%06d" % number, partition=0)
            producer.flush()
            (producer.abort_transaction if number % 3 == 2 else producer.commit_transaction)()
    topics.wait_for_markers(topic)
    query = stream(topic, maxOffsetsPerTrigger=3, **EARLIEST)

    assert [b"%06d" % number for number in range(10) if number % 3 != 2] == values(query.run())


def test_typed_json(stream, topics, topic):
    """Are JSON values typed columns in a stream too, bad ones never lost?"""
    topics.create(topic)
    topics.send(topic, [b'{"n":%d}' % number for number in range(50)] + [b"broken"])
    query = stream(topic, valueFormat="json", schema="n int, _corrupt_record string", **EARLIEST)

    rows = query.run()
    assert list(range(50)) == sorted(row.n for row in rows if row.n is not None)
    assert ["broken"] == [row._corrupt_record for row in rows if row.n is None]
