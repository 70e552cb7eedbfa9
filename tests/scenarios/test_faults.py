"""A broker that is made to fail: what was acknowledged is there once, what was not is refused, and service goes on."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from clients.libraries import LIBRARIES, Aiokafka, Confluent, KafkaPython, records_of
from headrace.model.errors import ErrorCode
from headrace.records.batch import split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk

KINDS = ("refuse", "delay", "drop", "drop_reply")

IMPATIENT = {
    Confluent: {
        "request.timeout.ms": 300,
        "socket.timeout.ms": 300,
        "reconnect.backoff.ms": 10,
        "retry.backoff.ms": 10,
        "batch.num.messages": 7,
        "log_level": 0,
    },
    KafkaPython: {
        "request_timeout_ms": 300,
        "reconnect_backoff_ms": 10,
        "retry_backoff_ms": 10,
        "batch_size": 500,
    },
    # Its timeout is for a record's whole way: one batch, so that none waits for another.
    Aiokafka: {"request_timeout_ms": 1000, "retry_backoff_ms": 10},
}


@pytest.mark.clients
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
@pytest.mark.parametrize("kind", KINDS)
def test_idempotent_producer_meets_a_fault(cluster, topic, library, kind):
    """Whatever becomes of its requests, does an idempotent producer store everything once and in order?"""
    sent = records_of(40)
    library.send(cluster.bootstrap, topic, sent[:1], idempotent=True)
    cluster.fail_next("Produce", kind, delay_s=0.05)

    library.send(cluster.bootstrap, topic, sent[1:], idempotent=True, **IMPATIENT[library])

    assert Confluent.read(cluster.bootstrap, topic, count=40) == [r.at(offset) for offset, r in enumerate(sent)]
    assert cluster.ask(lambda broker: broker.partitions.require(topic, 0).log.log_end_offset) == 40
    assert cluster.ask(lambda broker: broker.faults.armed) is False


@pytest.mark.clients
@pytest.mark.parametrize(
    ("library", "api"),
    [
        (Confluent, "Fetch"),
        (Confluent, "Metadata"),
        (Confluent, "ApiVersions"),
        (KafkaPython, "Fetch"),
        (KafkaPython, "Metadata"),
        (KafkaPython, "ApiVersions"),
        (Aiokafka, "Fetch"),
    ],
)
def test_consumer_meets_a_refusal(cluster, topic, library, api):
    """Does a consumer get over a connection that is closed on it, wherever it happens?"""
    sent = records_of(20)
    Confluent.send(cluster.bootstrap, topic, sent)
    cluster.fail_next(api, "refuse")

    seen = library.read(cluster.bootstrap, topic, count=20)

    assert seen == [r.at(offset) for offset, r in enumerate(sent)]
    assert cluster.ask(lambda broker: broker.faults.armed) is False


def test_other_connections_are_not_touched(cluster, wire, topic):
    """Does a fault meet only as many requests of its API as were asked for?"""
    client, other = wire(cluster), wire(cluster)
    client.create_topic(topic)
    cluster.fail_next("Fetch", "refuse")

    assert other.list_offset(topic, -1).offset == 0
    with pytest.raises(ConnectionError):
        client.fetch(topic, 0)
    assert other.fetch(topic, 0).error_code == 0


def test_delayed_request_keeps_its_place(cluster, wire, topic):
    """Do answers still come in the order of the requests when the first one is late?"""
    client = wire(cluster)
    client.create_topic(topic)
    cluster.fail_next("Produce", "delay", delay_s=0.05)
    late = client.produce_later(topic, _batch(b"late"))
    prompt = client.produce_later(topic, _batch(b"prompt"))

    (first,) = client.receive("Produce", 12, late).responses
    (second,) = client.receive("Produce", 12, prompt).responses
    assert (first.partition_responses[0].base_offset, second.partition_responses[0].base_offset) == (1, 0)


# --- the disk


def test_failed_flush_is_never_acknowledged(cluster, wire, topic, caplog):
    """After a failed fsync: no ack, no more writes, reads of what was safe go on, and the log says what happened?"""
    caplog.set_level(logging.ERROR)
    client = wire(cluster)
    client.create_topic(topic)
    client.create_topic("neighbour")
    assert client.produce(topic, _batch(b"safe")).base_offset == 0
    cluster.fail_next_fsync()

    refused = client.produce(topic, _batch(b"never acknowledged"))

    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce(topic, _batch(b"later")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce("neighbour", _batch(b"same disk")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce(topic, _batch(b"acks=1"), acks=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    readable = client.fetch(topic, 0)
    assert (readable.error_code, readable.high_watermark, _values(readable)) == (0, 1, [b"safe"])
    assert client.list_offset(topic, -1).offset == 1
    assert {"storage_fault", "log_dir_offline"} <= {record.getMessage().partition(" ")[0] for record in caplog.records}


def test_restart_after_a_failed_flush(cluster, wire, topic):
    """After a restart, is what was safe still there, and are writes taken again?"""
    client = wire(cluster)
    client.create_topic(topic)
    client.produce(topic, _batch(b"safe"))
    cluster.fail_next_fsync()
    client.produce(topic, _batch(b"in doubt"))

    cluster.restart()
    client = wire(cluster)

    # A record in doubt may have reached the disk: it may be there or not, but whole and only in its place.
    assert _values(client.fetch(topic, 0)) in ([b"safe"], [b"safe", b"in doubt"])
    end = client.list_offset(topic, -1).offset
    assert client.produce(topic, _batch(b"new")).base_offset == end
    assert _values(client.fetch(topic, 0))[-1] == b"new"


@pytest.mark.clients
def test_failed_flush_as_a_client_sees_it(cluster, topic):
    """Is the error of a failed disk one that clients know by name?"""
    from kafka.errors import KafkaStorageError

    KafkaPython.send(cluster.bootstrap, topic, records_of(3))
    cluster.fail_next_fsync()

    with pytest.raises(KafkaStorageError):
        KafkaPython.send(cluster.bootstrap, topic, records_of(2), retries=0)
    assert len(KafkaPython.read(cluster.bootstrap, topic, count=3)) == 3


def test_full_disk_refuses_and_recovers(cluster, wire, topic):
    """While the disk is full, are writes refused and reads served, and is all well once there is space?"""
    client = wire(cluster)
    client.create_topic(topic)
    client.produce(topic, _batch(b"0"))
    cluster.disk_full()
    for _ in range(3):
        assert client.produce(topic, _batch(b"no room")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert _values(client.fetch(topic, 0)) == [b"0"]
    assert client.create_topic("no-room-either").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    cluster.disk_full(full=False)

    assert client.produce(topic, _batch(b"1")).base_offset == 1
    assert _values(client.fetch(topic, 0)) == [b"0", b"1"]
    assert client.create_topic("there-is-room").error_code == 0
    assert client.create_topic("no-room-either").error_code == 0
    cluster.restart()
    assert _values(wire(cluster).fetch(topic, 0)) == [b"0", b"1"]


@pytest.mark.clients
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_producer_waits_out_a_full_disk(cluster, topic, library, caplog):
    """Does a client that keeps trying get through once there is space, each record stored once?"""
    sent = records_of(30)
    library.send(cluster.bootstrap, topic, sent[:5], idempotent=True)
    cluster.disk_full()
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(library.send, cluster.bootstrap, topic, sent[5:], idempotent=True, **IMPATIENT[library])
        while not any(record.message.startswith("storage_fault") for record in caplog.records):
            assert not sending.done()
        cluster.disk_full(full=False)
        sending.result(20)

    assert Confluent.read(cluster.bootstrap, topic, count=30) == [r.at(offset) for offset, r in enumerate(sent)]


def _batch(value: bytes) -> bytearray:
    return build_batch([NewRecord(timestamp=1_700_000_000_000, value=value)])


def _values(fetched) -> list[bytes]:
    view = memoryview(fetched.records or b"")
    return [
        bytes(record.value)
        for position, header in split_batches(view)
        for record in walk(view[position : position + header.size])
    ]
