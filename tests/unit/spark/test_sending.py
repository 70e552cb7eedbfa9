"""Rows on their way to a real broker that drops, delays and restarts: each in the log once, in order per key."""

import pyarrow as pa
import pytest

from headrace import KafkaConsumer, TopicPartition
from headrace.client.fault import ClientFault
from headrace.records.compression import CODECS
from headrace.spark import sending
from headrace.spark.option_table import sink_options
from headrace.spark.producer_settings import producer_settings
from headrace.spark.sending import NotWritten
from headrace.spark.sink_columns import SinkColumns
from headrace.spark.task_writing import TaskWriting
from headrace.spark.topic_leaders import NoTopic
from headrace.testing.cluster import Cluster
from wire_client import WireClient

COLUMNS = SinkColumns(key=0, value=1)
PARTITIONS = 3


def rows(count, *, start=0, size=10):
    numbers = range(start, start + count)
    keys = pa.array([b"k%d" % (number % 7) for number in numbers])
    values = pa.array([b"%d %s" % (number, b"x" * size) for number in numbers])
    return pa.record_batch([keys, values], names=["key", "value"])


def writing(cluster, topic, columns=COLUMNS, **properties):
    given = {"kafka.bootstrap.servers": cluster.bootstrap, "topic": topic}
    given |= {f"kafka.{name.replace('_', '.')}": str(value) for name, value in properties.items()}
    options = sink_options(given)
    return TaskWriting(options, producer_settings(options), columns, task=0)


def create(cluster, topic, *, partitions=PARTITIONS, **configs):
    with WireClient(cluster.port) as client:
        assert client.create_topic(topic, partitions=partitions, **configs).error_code == 0


def records(cluster, topic, partitions=PARTITIONS, *, at_least=0):
    """Everything in a topic, partition by partition; waits for more if `at_least` so many must come."""
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found = []
        while len(found) < at_least or any(consumer.position(place) < ends[place] for place in places):
            for batch in consumer.poll(timeout_ms=1000).values():
                found += batch
    return found


def check(found, count):
    """Every row once, and those of a key in order."""
    numbers = [int(record.value.split()[0]) for record in found]
    assert sorted(numbers) == list(range(count))
    by_key = {}
    for number, record in zip(numbers, found, strict=True):
        assert by_key.get(record.key, -1) < number
        by_key[record.key] = number


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(shared, topic, codec):
    """Are rows written with every codec, and found by a client that knows nothing of us?"""
    create(shared, topic)
    count = writing(shared, topic, compression_type=codec, batch_size=5000).at_least_once(iter([rows(2000)]))

    assert codec in CODECS
    assert count == 2000
    check(records(shared, topic), 2000)


@pytest.mark.parametrize("kind", ["refuse", "drop_reply"])
def test_lost_connections(cluster, topic, kind):
    """When requests are lost or their answers are: is every row there once all the same?"""
    create(cluster, topic)
    for round_ in range(4):
        cluster.fail_next("Produce", kind, times=2)
        task = writing(cluster, topic, batch_size=1000, max_request_size=2000, request_timeout_ms=500)
        task.at_least_once(iter([rows(500, start=500 * round_)]))

    check(records(cluster, topic), 2000)


def test_a_restart_while_rows_are_sent(cluster, topic):
    """Does a task go on when the broker restarts under it?"""
    create(cluster, topic)

    def blocks():
        for number in range(6):
            if number == 3:
                cluster.restart()
            yield rows(1000, start=1000 * number, size=9000)

    writing(cluster, topic).at_least_once(blocks())

    check(records(cluster, topic), 6000)


def test_an_identity_is_kept_between_tasks(shared, topic):
    """Do the tasks of a process share one producer id, so that brokers need not remember one for each?"""
    create(shared, topic, partitions=1)
    for number in range(5):
        writing(shared, topic).at_least_once(iter([rows(10, start=10 * number)]))

    producers = shared.ask(lambda broker: len(broker.partitions.require(topic, 0).log.producers()))
    assert producers == 1
    check(records(shared, topic, 1), 50)


def test_batches_that_are_too_large_are_split(shared, topic):
    """A topic takes less than we put into a batch: are rows sent in smaller ones, in order and once?"""
    create(shared, topic, max_message_bytes="2000")
    writing(shared, topic, batch_size=100_000).at_least_once(iter([rows(3000)]))

    check(records(shared, topic), 3000)


def test_a_record_that_is_too_large(shared, topic):
    """Is one record that no batch can be small enough for a sentence that names the topic and the setting?"""
    create(shared, topic, max_message_bytes="2000")

    with pytest.raises(NotWritten, match=rf"{topic}-\d were refused: MESSAGE_TOO_LARGE.*max\.message\.bytes") as caught:
        writing(shared, topic).at_least_once(iter([rows(1, size=5000)]))
    assert "\n" not in str(caught.value)


def test_a_topic_that_is_created_by_itself(shared, topic):
    """Is a topic created that is not there, where brokers do that?"""
    writing(shared, topic).at_least_once(iter([rows(100)]))

    check(records(shared, topic, 1), 100)


def test_a_topic_that_is_not_there(topic):
    """Where brokers create none: is that said, with what to do?"""
    with (
        Cluster({"auto.create.topics.enable": "false"}) as cluster,
        pytest.raises(NoTopic, match=rf"no topic {topic}.*topics create"),
    ):
        writing(cluster, topic, max_block_ms=300).at_least_once(iter([rows(1)]))


def test_a_partition_that_is_not_there(shared, topic):
    """Is a partition that the topic does not have a sentence, before anything of the block is sent?"""
    create(shared, topic)
    block = rows(2).append_column("partition", pa.array([0, PARTITIONS], pa.int32()))

    with pytest.raises(NoTopic, match=rf"{topic} has no partition 3.*0 to 2"):
        writing(shared, topic, SinkColumns(key=0, value=1, partition=2)).at_least_once(iter([block]))
    assert records(shared, topic) == []


def test_a_compacted_topic_wants_keys(shared, topic):
    """Does a refusal carry what the broker says about the record?"""
    create(shared, topic, cleanup_policy="compact")
    block = pa.record_batch([pa.nulls(1, pa.binary()), pa.array([b"v"])], names=["key", "value"])

    with pytest.raises(NotWritten, match=r"INVALID_RECORD.*key"):
        writing(shared, topic).at_least_once(iter([block]))


def test_nobody_is_there(cluster, topic):
    """When the broker is gone: do we give up when patience ends, and say what we waited for?"""
    create(cluster, topic)
    task = writing(cluster, topic, delivery_timeout_ms=300, max_block_ms=300)

    def blocks():
        yield rows(1000, size=10_000)
        cluster.stop()
        yield rows(1000, size=10_000)

    with pytest.raises(ClientFault, match=r"127\.0\.0\.1"):
        task.at_least_once(blocks())


def test_one_replica_is_enough_if_one_says_so(shared, topic):
    """With acks=1, are rows written without sequence numbers, which brokers would not take then?"""
    create(shared, topic)
    writing(shared, topic, acks=1).at_least_once(iter([rows(100)]))

    # Consumers see it when it is flushed, which with acks=1 is not waited for.
    check(records(shared, topic, at_least=100), 100)
    assert not shared.ask(lambda broker: broker.partitions.require(topic, 0).log.producers())


def test_memory_is_bounded(shared, topic, monkeypatch):
    """Are answers waited for when more is sent than may wait?"""
    create(shared, topic)
    monkeypatch.setattr(sending, "WAITING_BYTES_MAX", 0)
    writing(shared, topic, batch_size=500, max_request_size=500).at_least_once(iter([rows(1000)]))

    check(records(shared, topic), 1000)
