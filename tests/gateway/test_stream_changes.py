"""Streams while the world around them changes: gateways, brokers, topics, retention, and clients that do not read."""

import socket
import time

import pytest

from gateway.streaming import Log, Writer, events, get, lines, overflow, until_known
from headrace.client.producer import KafkaProducer
from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread

pytestmark = pytest.mark.slow


@pytest.fixture
def log(writer):
    """A topic with one partition."""
    return Log(writer)


def test_any_gateway_goes_on(broker, log):
    """Does another gateway go on exactly where one stopped, which told its clients that it does?"""
    log.send(*range(5))
    with GatewayThread(broker.bootstrap) as first, events(first.url, log.topic, since="earliest") as source:
        seen = source.take(5)
        first.call(first.gateway.services.leave())
        (told,) = list(source)
    log.send(*range(5, 9))
    with GatewayThread(broker.bootstrap) as second, events(second.url, log.topic, last_id=source.last_id) as source:
        seen += source.take(4)

    assert list(range(9)) == [event.data["value"] for event in seen]
    assert ("error", 50304) == (told.name, told.data["error_code"])


def test_cut_before_the_first_record(gateway, log):
    """Does a client that was cut off before anything came miss nothing of what came meanwhile?"""
    with events(gateway.url, log.topic) as source:
        while not source.last_id:
            source.step()
    log.send(1)
    with events(gateway.url, log.topic, last_id=source.last_id) as source:
        assert [1] == source.values(1)


def test_a_browser_is_not_sent_away(log):
    """Is one that comes again while the cluster is not there told to try again, and a new one that it is not there?"""
    with GatewayThread("127.0.0.1:1", {"request.timeout.ms": "1000"}) as gateway:
        again = get(gateway.url, log.topic, headers={"last-event-id": f"{log.topic}:0=0"})
        new = get(gateway.url, log.topic)

    assert (200, "text/event-stream; charset=utf-8") == (again.status_code, again.headers["content-type"])
    assert "event: error" in again.text
    assert 503 == new.status_code


def test_failover():
    """Does a stream go on without loss or repeat when the leader it reads from is killed? (R30)"""
    with (
        Cluster({"default.replication.factor": "3", "min.insync.replicas": "2"}, brokers=3) as cluster,
        Writer(cluster.bootstrap) as writer,
        GatewayThread(cluster.bootstrap) as gateway,
    ):
        log = Log(writer, partitions=3, replicas=3)
        until_known(cluster, log.topic)
        with events(gateway.url, log.topic) as source:
            log.send(*range(30))
            seen = source.values(30)
            cluster.kill(cluster.leader_of(log.topic, 0))
            log.send(*range(30, 60))
            seen += source.values(30)
            position = source.last_id
        log.send(*range(60, 70))
        with events(gateway.url, log.topic, last_id=position) as source:
            seen += source.values(10)

    assert list(range(70)) == sorted(seen)


def test_broker_restart():
    """Does a stream outlive its only broker, and see what comes after?"""
    with Cluster() as cluster, Writer(cluster.bootstrap) as writer, GatewayThread(cluster.bootstrap) as gateway:
        log = Log(writer)
        with events(gateway.url, log.topic) as source:
            log.send(1)
            assert [1] == source.values(1)
            cluster.restart()
            log.send(2)
            assert [2] == source.values(1)


def test_deleted_topic(broker, writer):
    """Is a stream whose topic is deleted told so, and ended?"""
    log = Log(writer)
    settings = {"stream.metadata.ms": "200"}
    with GatewayThread(broker.bootstrap, settings) as gateway, events(gateway.url, log.topic) as source:
        log.send(1)
        assert [1] == source.values(1)
        log.admin.delete_topics([log.topic])
        (told,) = list(source)

    assert ("error", 40401) == (told.name, told.data["error_code"])
    assert log.topic in told.data["message"]


def test_lost_to_retention(gateway, log):
    """Is a client whose place in the log is gone told so, and taken to the nearest record there is?"""
    log.send(*range(10))
    log.admin.delete_records({(log.topic, 0): 6})
    with events(gateway.url, log.topic, last_id=f"{log.topic}:0=2") as source:
        reset, *records = source.take(5)
    with events(gateway.url, log.topic, last_id=f"{log.topic}:0=99") as source:
        (beyond,) = source.take(1)

    facts = {"topic": log.topic, "partition": 0}
    assert ("reset", {**facts, "offset": 2, "new_offset": 6}) == (reset.name, reset.data)
    assert [6, 7, 8, 9] == [event.data["value"] for event in records]
    assert ("reset", {**facts, "offset": 99, "new_offset": 10}) == (beyond.name, beyond.data)


@pytest.mark.parametrize("until", ["latest", "-1m"])
def test_beyond_the_end(gateway, writer, until):
    """Is a client whose place never was told so also where its stream has an end, and given ids that are right?"""
    log = Log(writer, partitions=2)
    for number in range(2):
        log.send(0, 1, partition=number, timestamp_ms=1_700_000_000_000)
    with events(gateway.url, log.topic, last_id=f"{log.topic}:0=999,1=1", until=until) as source:
        told = list(source)
    with events(gateway.url, log.topic, last_id=f"{log.topic}:0=999,1=2", until=until) as source:
        told_again = list(source)
    with events(gateway.url, log.topic, last_id=told[-1].id, until=until) as source:
        assert 204 == source.response.status_code

    reset = ("reset", {"topic": log.topic, "partition": 0, "offset": 999, "new_offset": 2})
    end = ("end", {"reason": "until"}, f"{log.topic}:0=2,1=2")
    assert ["reset", "message", "end"] == [event.name for event in told]
    assert (reset, end) == (told[0][:2], told[-1])
    assert (reset, end) == (told_again[0][:2], told_again[-1])


def test_new_partitions(broker, writer):
    """Are partitions that are added read from their beginning, by who was there and by who comes again?"""
    log = Log(writer)
    with GatewayThread(broker.bootstrap, {"stream.metadata.ms": "100"}) as gateway:
        with events(gateway.url, log.topic) as source:
            log.send(1, partition=0)
            before = source.take(1)
            log.admin.create_partitions({log.topic: 2})
            with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
                producer.send(log.topic, b"2", partition=1).get(20)
            after = source.take(1)
        with events(gateway.url, log.topic, last_id=before[0].id) as source:
            again = source.take(1)

    assert f"{log.topic}:0=1" == before[0].id
    assert [(2, f"{log.topic}:0=1,1=1")] * 2 == [(event.data["value"], event.id) for event in after + again]


def test_transactions(gateway, broker, log):
    """Is what a transaction wrote shown once it is committed, and never if it is aborted?"""
    with (
        KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=log.topic) as producer,
        events(gateway.url, log.topic) as source,
    ):
        producer.init_transactions()
        for number, end in enumerate(["abort_transaction", "commit_transaction", "abort_transaction"]):
            producer.begin_transaction()
            producer.send(log.topic, b"%d" % number)
            producer.flush()
            getattr(producer, end)()
        log.send(9)
        seen = source.take(2)

    assert [1, 9] == [event.data["value"] for event in seen]
    assert [1, 9] == [line["value"] for line in lines(gateway.url, log.topic, since="earliest", until="latest")]


def _deaf(url, topic):
    """A client that asks and does not read."""
    host, port = url.removeprefix("http://").split(":")
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect((host, int(port)))
    deaf.sendall(f"GET /stream/{topic}?since=earliest HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return deaf


def test_a_client_that_does_not_read(broker, log):
    """Does a client that does not read cost little, disturb nobody, and get dropped with a reason?"""
    count = overflow(log)
    limits = {"stream.stall.ms": "700", "stream.buffer.bytes": "65536"}
    with GatewayThread(broker.bootstrap, limits) as gateway:
        streams = gateway.gateway.services.streams
        connections = gateway.gateway._server._servers[0][0].server_state.connections
        with _deaf(gateway.url, log.topic) as deaf:
            most, deadline = 0, time.monotonic() + 30
            while not streams.dropped:
                waiting = [one.transport.get_write_buffer_size() for one in list(connections)]
                most = max([most, *waiting])
                assert time.monotonic() < deadline
            deaf.settimeout(20)
            read = b"".join(iter(lambda: deaf.recv(1 << 20), b""))
        with events(gateway.url, log.topic) as source:
            log.send(5)
            assert [5] == source.values(1)

    assert 0 < most < 512 * 1024
    assert read.endswith(b"0\r\n\r\n")
    assert b'event: error\ndata: {"error_code":40801,"message":"The client took nothing for 700 ms' in read[-400:]
    assert len(read) < count * 100_000


def test_slow_but_steady(gateway, log):
    """Does a client that is slow miss nothing?"""
    log.send(*[b'"%s"' % (b"x" * 20_000)] * 50)
    with events(gateway.url, log.topic, since="earliest", max=100) as source:
        seen = source.take(10)
        log.send(*[b'"%s"' % (b"y" * 20_000)] * 50)
        seen += [event for event in source if event.name == "message"]

    assert list(range(100)) == [event.data["offset"] for event in seen]
