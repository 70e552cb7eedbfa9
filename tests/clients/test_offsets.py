"""Where a log begins and ends, and what lies at which time, as clients ask for it."""

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import OffsetSpec

from clients.libraries import DEADLINE_S, Confluent, admin, confluent_consumer, create_topic, records_of

pytestmark = pytest.mark.clients

START_MS = 1_700_000_000_000


def listed(bootstrap, topic, spec, partition=0):
    """Offset and timestamp that a lookup gives."""
    place = confluent_kafka.TopicPartition(topic, partition)
    client = admin(bootstrap)
    result = client.list_offsets({place: spec})[place].result(DEADLINE_S)
    return result.offset, result.timestamp


def delete_before(bootstrap, topic, offset, partition=0):
    """Delete the records before an offset; gives the new start."""
    place = confluent_kafka.TopicPartition(topic, partition, offset)
    client = admin(bootstrap)
    return client.delete_records([place])[place].result(DEADLINE_S).low_watermark


def test_every_kind_of_offset(shared, topic):
    """Are earliest, latest, by timestamp and max-timestamp what the log holds?"""
    create_topic(shared.bootstrap, topic)
    times = [START_MS + n for n in (0, 50, 20, 90, 40)]
    for timestamp in times:
        Confluent.send(shared.bootstrap, topic, records_of(1, timestamp_ms=timestamp))

    assert listed(shared.bootstrap, topic, OffsetSpec.earliest()) == (0, -1)
    assert listed(shared.bootstrap, topic, OffsetSpec.latest()) == (5, -1)
    assert listed(shared.bootstrap, topic, OffsetSpec.max_timestamp()) == (3, START_MS + 90)
    assert listed(shared.bootstrap, topic, OffsetSpec.for_timestamp(START_MS + 30)) == (1, START_MS + 50)
    assert listed(shared.bootstrap, topic, OffsetSpec.for_timestamp(START_MS + 60)) == (3, START_MS + 90)
    assert listed(shared.bootstrap, topic, OffsetSpec.for_timestamp(START_MS + 91)) == (-1, -1)


def test_offsets_of_an_empty_partition(shared, topic):
    """What is asked of a log without records?"""
    create_topic(shared.bootstrap, topic, partitions=2)

    assert listed(shared.bootstrap, topic, OffsetSpec.earliest(), 1) == (0, -1)
    assert listed(shared.bootstrap, topic, OffsetSpec.latest(), 1) == (0, -1)
    assert listed(shared.bootstrap, topic, OffsetSpec.max_timestamp(), 1) == (-1, -1)
    assert listed(shared.bootstrap, topic, OffsetSpec.for_timestamp(0), 1) == (-1, -1)


def test_offsets_of_an_unknown_partition(shared, topic):
    """Is a lookup in a partition that is not there refused?"""
    create_topic(shared.bootstrap, topic)

    with pytest.raises(confluent_kafka.KafkaException, match="No leaders found"):
        listed(shared.bootstrap, topic, OffsetSpec.latest(), 7)


def test_watermarks_with_every_library(shared, topic):
    """Do the libraries' own ways to ask for begin and end agree?"""
    create_topic(shared.bootstrap, topic)
    Confluent.send(shared.bootstrap, topic, records_of(12))
    delete_before(shared.bootstrap, topic, 5)
    place = kafka.TopicPartition(topic, 0)
    python = kafka.KafkaConsumer(bootstrap_servers=shared.bootstrap, enable_auto_commit=False)
    both = python.beginning_offsets([place])[place], python.end_offsets([place])[place]
    python.close()
    consumer = confluent_consumer(shared.bootstrap)
    marks = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), DEADLINE_S)
    consumer.close()

    assert both == marks == (5, 12)


# --- deleting records


def test_deleted_records_are_gone(shared, topic):
    """After DeleteRecords, does the log begin where it was told, in the middle of a batch too (R16)?"""
    create_topic(shared.bootstrap, topic)
    sent = records_of(20)
    Confluent.send(shared.bootstrap, topic, sent)

    assert delete_before(shared.bootstrap, topic, 7) == 7
    assert Confluent.read(shared.bootstrap, topic, offset=7, count=13) == [
        r.at(n) for n, r in enumerate(sent) if n >= 7
    ]
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        Confluent.read(shared.bootstrap, topic, offset=6, count=1)
    assert caught.value.args[0].code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET
    assert listed(shared.bootstrap, topic, OffsetSpec.earliest()) == (7, -1)
    assert listed(shared.bootstrap, topic, OffsetSpec.for_timestamp(0))[0] == 7


def test_all_records_deleted(shared, topic):
    """With offset -1, does everything go, and do new records go on after the old numbers (R14)?"""
    create_topic(shared.bootstrap, topic)
    Confluent.send(shared.bootstrap, topic, records_of(9))

    assert delete_before(shared.bootstrap, topic, confluent_kafka.OFFSET_END) == 9
    assert Confluent.send(shared.bootstrap, topic, records_of(2)) == [9, 10]
    assert [seen.offset for seen in Confluent.read(shared.bootstrap, topic, offset=9, count=2)] == [9, 10]


def test_records_deleted_beyond_the_end(shared, topic):
    """Is a start beyond the end of the log refused, and does a start before it change nothing?"""
    create_topic(shared.bootstrap, topic)
    Confluent.send(shared.bootstrap, topic, records_of(3))
    delete_before(shared.bootstrap, topic, 2)

    with pytest.raises(confluent_kafka.KafkaException) as caught:
        delete_before(shared.bootstrap, topic, 4)
    assert caught.value.args[0].code() == confluent_kafka.KafkaError.OFFSET_OUT_OF_RANGE
    assert delete_before(shared.bootstrap, topic, 1) == 2
