"""When a record counts as safe: acks, flushes, and the settings between them."""

import threading

import pytest

from headrace.broker.broker import FLUSH_THREADS
from headrace.broker.partition import Partition
from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BATCH = bytes(build_batch([NewRecord(timestamp=1_700_000_000_000, value=b"v")]))


@pytest.fixture
def client(cluster, wire):
    return wire(cluster)


@pytest.fixture
def held_disk(cluster):
    """Lets every flush wait until the event is set; a test that forgets to set it finds it set at its end."""
    held = threading.Event()

    def hold() -> threading.Event:
        for _ in range(FLUSH_THREADS):
            cluster.broker.flush_threads.submit(held.wait)
        return held

    yield hold
    held.set()


def marks(cluster, topic):
    """How far a log goes: end, readable, flushed."""
    log = cluster.ask(lambda broker: broker.partitions.require(topic, 0).log)
    return log.log_end_offset, log.high_watermark, log.recovery_point


def flushed(cluster):
    """Wait until no flush is under way."""
    cluster.call(cluster.broker.flusher.drained())


def test_acks_keep_their_promises(cluster, client, wire, topic, held_disk):
    """While the disk is busy, is acks=1 answered at once, acks=all only after the flush, and acks=0 never (R19)?"""
    client.create_topic(topic)
    release = held_disk()
    waiting = wire(cluster)

    client.produce(topic, BATCH, acks=0)
    assert client.produce(topic, BATCH, acks=1).base_offset == 1
    correlation_id = waiting.produce_later(topic, BATCH, acks=-1)
    while marks(cluster, topic)[0] < 3:
        pass
    assert marks(cluster, topic) == (3, 0, 0)
    assert client.fetch(topic, 0).records == b""
    release.set()

    (answer,) = waiting.receive("Produce", 12, correlation_id).responses
    assert answer.partition_responses[0].base_offset == 2
    assert marks(cluster, topic) == (3, 3, 3)


def test_one_flush_for_all_who_wait(cluster, client, wire, topic, held_disk, monkeypatch):
    """Do many producers that wait share flushes, rather than have one each?"""
    client.create_topic(topic)
    release = held_disk()
    flushes = []
    on_flushed = Partition.on_flushed

    def counted(partition):
        flushes.append(partition.log.recovery_point)
        on_flushed(partition)

    monkeypatch.setattr(Partition, "on_flushed", counted)
    clients = [wire(cluster) for _ in range(20)]
    waiting = [c.produce_later(topic, BATCH) for c in clients]
    while marks(cluster, topic)[0] < 20:
        pass
    release.set()
    for c, correlation_id in zip(clients, waiting, strict=True):
        c.receive("Produce", 12, correlation_id)

    # The first flush was asked for by the first batch, the second by all that came meanwhile.
    assert flushes[-1] == 20
    assert len(flushes) <= 2


def test_topic_that_opted_out(cluster, client, topic, held_disk):
    """With flush.on.acks.all=false, is acks=all answered and readable though the disk is busy (R19)?"""
    client.create_topic(topic, flush_on_acks_all="false")
    held_disk()

    assert client.produce(topic, BATCH).base_offset == 0
    assert marks(cluster, topic) == (1, 1, 0)
    assert len(client.fetch(topic, 0).records) == len(BATCH)


def test_flush_messages(cluster, client, topic):
    """Is a topic that opted out flushed every flush.messages records?"""
    client.create_topic(topic, flush_on_acks_all="false", flush_messages="3")
    reached = []
    for _ in range(7):
        client.produce(topic, BATCH)
        flushed(cluster)
        reached.append(marks(cluster, topic)[2])

    assert reached == [0, 0, 3, 3, 3, 6, 6]


def test_flush_ms(cluster, client, topic):
    """Is a topic that opted out flushed when its records have waited for flush.ms?"""
    client.create_topic(topic, flush_on_acks_all="false", flush_ms="0")
    client.create_topic("patient", flush_on_acks_all="false", flush_ms="3600000")
    client.produce("patient", BATCH)
    client.produce(topic, BATCH)
    # The next request is answered after the timer that was due at once.
    client.fetch(topic, 0)
    flushed(cluster)

    assert marks(cluster, topic) == (1, 1, 1)
    assert marks(cluster, "patient") == (1, 1, 0)


def test_opting_out_while_running(cluster, client, topic):
    """Does a changed flush.on.acks.all count from the next record on, without a restart (R11)?"""
    client.create_topic(topic)
    reached = []
    for value in ("true", "false", "true"):
        change = AlterableConfig(name="flush.on.acks.all", config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=(change,))
        answer = client.ask("IncrementalAlterConfigs", 1, IncrementalAlterConfigsRequest(resources=(resource,)))
        assert answer.responses[0].error_code == 0
        client.produce(topic, BATCH)
        reached.append(marks(cluster, topic))

    assert reached == [(1, 1, 1), (2, 2, 1), (3, 3, 3)]
