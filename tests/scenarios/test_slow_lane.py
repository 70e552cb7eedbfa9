"""Batches that a thread must open first: kept in order, bounded, and each one answered."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from clients.libraries import LIBRARIES, Sent
from headrace.broker.broker import CHECK_THREADS
from headrace.broker.lane import Lane
from headrace.broker.partitions import LANE_QUEUE_MAX
from headrace.model.errors import ErrorCode, KafkaError
from headrace.records.batch import split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk


def batch(number: int, *, producer=(-1, -1), codec: str = "gzip", key: bytes | None = b"k") -> bytes:
    record = NewRecord(timestamp=1_700_000_000_000, key=key, value=b"%d" % number)
    return bytes(
        build_batch(
            [record],
            codec=codec,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=number if producer[0] >= 0 else -1,
        )
    )


def answers(client, waiting):
    found = [client.receive("Produce", 12, correlation_id) for correlation_id in waiting]
    return [answer.responses[0].partition_responses[0] for answer in found]


def held_checks(cluster) -> threading.Event:
    """Keep every checking thread busy until the event is set, or long enough to see a test fail."""
    held = threading.Event()
    for _ in range(CHECK_THREADS):
        cluster.broker.checkers.submit(held.wait, 25)
    return held


def test_flood_is_answered(cluster, wire, topic):
    """When more batches come than may wait, is every one answered: stored in its place, or told to try again?"""
    client = wire(cluster)
    client.create_topic(topic, cleanup_policy="compact")
    held = held_checks(cluster)
    waiting = [client.produce_later(topic, batch(number)) for number in range(LANE_QUEUE_MAX + 30)]
    end = time.monotonic() + 20
    while cluster.ask(pending_replies) < len(waiting):
        assert time.monotonic() < end
    held.set()
    results = answers(client, waiting)

    assert [r.base_offset for r in results[:LANE_QUEUE_MAX]] == list(range(LANE_QUEUE_MAX))
    assert {r.error_code for r in results[:LANE_QUEUE_MAX]} == {0}
    assert [r.error_code for r in results[LANE_QUEUE_MAX:]] == [ErrorCode.NOT_ENOUGH_REPLICAS] * 30
    assert client.produce(topic, batch(0)).base_offset == LANE_QUEUE_MAX


@pytest.mark.clients
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_clients_try_again(cluster, wire, topic, library, monkeypatch):
    """Does every library take the refusal of a full queue for what it is, and get its record in a little later?"""
    client = wire(cluster)
    client.create_topic(topic, cleanup_policy="compact")
    refused, submit = threading.Event(), Lane.submit

    def watched(*arguments) -> None:
        try:
            submit(*arguments)
        except KafkaError:
            refused.set()
            raise

    monkeypatch.setattr(Lane, "submit", watched)
    held = held_checks(cluster)
    waiting = [client.produce_later(topic, batch(number)) for number in range(LANE_QUEUE_MAX)]
    end = time.monotonic() + 20
    while cluster.ask(pending_replies) < len(waiting):
        assert time.monotonic() < end
    with ThreadPoolExecutor(1) as pool:
        record = Sent(value=b"patient", key=b"k")
        sending = pool.submit(library.send, cluster.bootstrap, topic, [record], codec="gzip", idempotent=True)
        was_refused = refused.wait(20)
        held.set()

        assert sending.result(20) == [LANE_QUEUE_MAX]
    assert was_refused


def pending_replies(broker) -> int:
    """Requests that were read and wait for their answer."""
    return sum(len(c._pending) for listener in broker.listeners for c in listener.connections)


def test_fast_batch_does_not_overtake(shared, wire, topic):
    """Is a batch that needs no thread stored behind those before it that do?"""
    client = wire(shared)
    client.create_topic(topic, cleanup_policy="compact")
    producer = client.new_producer_id()
    codecs = ["gzip", "none", "zstd", "none", "none", "lz4", "none"] * 5
    waiting = [
        client.produce_later(topic, batch(number, producer=producer, codec=codec))
        for number, codec in enumerate(codecs)
    ]

    assert [(r.error_code, r.base_offset) for r in answers(client, waiting)] == [(0, n) for n in range(len(codecs))]


@pytest.mark.parametrize("acks", [1, -1])
def test_bad_batch_among_good_ones(shared, wire, topic, acks):
    """Is only the batch without a key refused, and do those behind it move up?"""
    client = wire(shared)
    client.create_topic(topic, cleanup_policy="compact")
    waiting = [
        client.produce_later(topic, batch(number, key=None if number == 2 else b"k"), acks=acks) for number in range(5)
    ]

    assert [(r.error_code, r.base_offset) for r in answers(client, waiting)] == [
        (0, 0),
        (0, 1),
        (ErrorCode.INVALID_RECORD, -1),
        (0, 2),
        (0, 3),
    ]


def test_client_that_leaves_before_its_answer(shared, wire, topic):
    """Is what a client sent before it hung up either stored whole or not at all, and the topic as well as ever?"""
    client, other = wire(shared), wire(shared)
    client.create_topic(topic, cleanup_policy="compact")
    for number in range(50):
        client.produce_later(topic, batch(number))
    client.close()

    last = other.produce(topic, batch(99))
    assert last.error_code == 0
    # Nobody says whose turn it is: more of the first client's may be stored behind it, or on its way there.
    stored = memoryview(other.fetch(topic, 0).records)
    values = [record.value for at, _ in split_batches(stored) for record in walk(stored[at:])]
    assert values.pop(last.base_offset) == b"99"
    assert values == [b"%d" % number for number in range(len(values))]


def test_topic_deleted_under_waiting_batches(shared, wire, topic):
    """Are batches that wait when their topic is deleted answered all the same?"""
    client, other = wire(shared), wire(shared)
    client.create_topic(topic, cleanup_policy="compact")
    waiting = [client.produce_later(topic, batch(number)) for number in range(50)]
    other.delete_topic(topic)

    codes = {result.error_code for result in answers(client, waiting)}
    assert codes <= {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}
