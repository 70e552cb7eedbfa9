"""Those who send and those who read know the topic and not each other: who is slow or away misses nothing."""

import asyncio
import time

import pytest

from headrace import KafkaAdmin, KafkaConsumer, KafkaProducer, NewTopic, TopicPartition
from headrace.testing.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.slow]

PLACE = TopicPartition("parcels", 0)
DEADLINE_MS = 30_000
HOUR_MS = 3600 * 1000
NO_CLEANING_BY_ITSELF = {"log.retention.check.interval.ms": str(HOUR_MS), "log.initial.task.delay.ms": str(HOUR_MS)}


@pytest.fixture
def cluster():
    """A broker that restarts, and cleans when the test says so."""
    with Cluster(NO_CLEANING_BY_ITSELF) as running:
        yield running


def send(cluster, topic, values, **options):
    """A producer that comes, sends its records one after the other, and goes."""
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, value_serializer="str") as producer:
        for value in values:
            producer.send(topic, value, **options).get(timeout=DEADLINE_MS / 1000)


def read(cluster, topic, group, count):
    """A consumer that comes, reads just so many records, remembers its place, and goes."""
    with KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        consumer_timeout_ms=DEADLINE_MS,
        value_deserializer="str",
    ) as consumer:
        return [next(consumer).value for _ in range(count)]


def retain(cluster):
    """Let the broker remove what is too old, now."""

    async def run():
        await cluster.broker.housekeeping.retain()
        await asyncio.gather(*cluster.broker.housekeeping._removals)

    cluster.call(run())


def test_slow_and_absent_consumers_lose_nothing(cluster):
    """Do a slow group and one that comes last see every record of producers that came and went (R35)?

    Between the visits the broker itself goes down and comes back, and removes what its retention lets it: nothing.
    """
    slow = []
    for visit in range(4):
        send(cluster, "parcels", [f"{visit}:{number}" for number in range(10)])
        slow += read(cluster, "parcels", "slow", 3)
        cluster.restart()
        retain(cluster)
    slow += read(cluster, "parcels", "slow", 28)
    absent = read(cluster, "parcels", "absent", 40)

    expected = [f"{visit}:{number}" for visit in range(4) for number in range(10)]
    assert expected == slow
    assert expected == absent


def test_only_retention_takes_records_away(cluster):
    """Does a group that was away for longer than retention go on with all that is younger, and nothing else (R35)?"""
    small = {"retention.ms": str(HOUR_MS), "internal.segment.bytes": "3000", "file.delete.delay.ms": "0"}
    with KafkaAdmin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic("parcels", num_partitions=1, topic_configs=small)])
    now_ms = time.time_ns() // 1_000_000
    old = [f"old {number} " + "x" * 1000 for number in range(10)]
    send(cluster, "parcels", old, timestamp_ms=now_ms - 2 * HOUR_MS)
    assert old[:1] == read(cluster, "parcels", "away", 1)
    send(cluster, "parcels", [f"young {number}" for number in range(10)])
    retain(cluster)

    with KafkaAdmin(bootstrap_servers=cluster.bootstrap) as admin:
        start = admin.list_offsets({PLACE: "earliest"})[PLACE].offset
    kept = read(cluster, "parcels", "away", 20 - start)

    assert 5 < start <= 10
    assert old[start:] + [f"young {number}" for number in range(10)] == kept
