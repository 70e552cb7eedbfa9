"""Bytes that are no requests, requests that never end, and too many of everything: cut off, cheaply and soon."""

import contextlib
import resource
import socket
import struct
import sys
import time
from collections.abc import Callable

import pytest

from headrace.net.frame_buffers import SCRATCH_BYTES
from headrace.records.build import NewRecord, build_batch
from headrace.testing import Cluster
from headrace.testing.broker_process import HeadraceProcess
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.metadata import MetadataRequest
from hostile.conftest import bugs
from hostile.neighbour import Neighbour
from wire_client import WireClient, one_fetch

pytestmark = pytest.mark.slow

SOON_S = 1.0
FRAME_MAX = 100 * 1024 * 1024
MIB = 1 << 20

NO_FRAMES = {
    "negative": struct.pack(">i", -1),
    "most negative": struct.pack(">i", -(2**31)),
    "empty": struct.pack(">i", 0),
    "just too large": struct.pack(">i", FRAME_MAX + 1),
    "largest": struct.pack(">i", 2**31 - 1),
    "TLS hello": bytes.fromhex("16030100c8010000c40303") + b"\x00" * 189,
    "TLS alert": bytes.fromhex("15030300020100"),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "SMTP": b"EHLO localhost\r\n",
    "PROXY": b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n",
    "noise": bytes(range(255, 0, -1)) * 40,
}


def is_closed_soon(client: WireClient) -> bool:
    """Whether the broker hangs up within a second."""
    begin = time.monotonic()
    return client.is_closed_by_broker() and time.monotonic() - begin < SOON_S


@pytest.mark.parametrize("name", NO_FRAMES)
def test_no_frame(target, neighbour, guarded, wire, name):
    """Is the connection of a client that speaks something else closed at once, with one line in the log?"""
    before = target.output.read_text().count("connection_closed")
    client = wire(target)
    client.send_bytes(NO_FRAMES[name])

    assert is_closed_soon(client)
    assert target.output.read_text().count("connection_closed") == before + 1


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_no_frame_in_pieces(target, wire, chunk):
    """Is it the same when the bytes come one by one?"""
    client = wire(target)
    client.send_bytes(NO_FRAMES["HTTP"][:chunk])
    with contextlib.suppress(ConnectionError):
        client.send_bytes(NO_FRAMES["HTTP"][chunk:])

    assert is_closed_soon(client)


def test_declared_size_costs_nothing(target, neighbour, guarded, wire):
    """Do a hundred requests of a hundred MiB, declared and then not sent, cost no more than what was sent?"""
    before = target.memory().anonymous_bytes
    silent = [wire(target) for _ in range(100)]
    for client in silent:
        client.send_bytes(struct.pack(">i", FRAME_MAX) + b"x" * 1_000)
    wire(target).describe_topic(guarded)

    assert target.memory().anonymous_bytes - before < 64 * MIB


def test_half_sent_request_is_given_back(target, neighbour, guarded):
    """Is the memory of half a huge request bounded by what came, and free again when its client goes, each time?"""
    before = target.memory().anonymous_bytes
    for _ in range(4):
        with WireClient(target.port) as client:
            client.send_bytes(struct.pack(">i", FRAME_MAX) + b"x" * (32 * MIB))
            with WireClient(target.port) as other:
                other.describe_topic(guarded)
            during = target.memory().anonymous_bytes - before

        assert during < 80 * MIB
        assert comes_true(lambda: target.memory().anonymous_bytes - before < 16 * MIB)


def test_incomplete_requests_have_a_budget():
    """Do all incomplete requests together hold no more than allowed, and does who comes then get its answer?"""
    settings = {"queued.max.request.bytes": str(8 * MIB), "socket.request.max.bytes": str(4 * MIB)}
    with Cluster(settings) as cluster, Neighbour(cluster.port, "neighbour"), contextlib.ExitStack() as clients:
        opened = [clients.enter_context(WireClient(cluster.port)) for _ in range(8)]
        for client in opened:
            client._socket.setblocking(False)
            with contextlib.suppress(ConnectionError, BlockingIOError):
                client._socket.send(struct.pack(">i", 3 * MIB) + b"x" * (2 * MIB))
        assert comes_true(lambda: held_bytes(cluster) > 4 * MIB)
        with WireClient(cluster.port) as last:
            assert last.create_topic("a" * 200).error_code == 0

        assert held_bytes(cluster) <= 8 * MIB + 8 * SCRATCH_BYTES


def held_bytes(cluster: Cluster) -> int:
    """What incomplete requests hold."""
    return cluster.ask(lambda broker: sum(listener.partial_bytes for listener in broker.listeners))


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether a condition holds within a second; a broker needs a moment to notice that a client went."""
    deadline = time.monotonic() + SOON_S
    while not condition():
        if time.monotonic() > deadline:
            return False
    return True


def is_served(client: WireClient) -> bool:
    """Whether a request is answered on this connection."""
    try:
        return client.describe_topic("neighbour").error_code == 0
    except OSError:
        return False


IMPATIENT = {"request.first.bytes.timeout.ms": "300", "request.frame.timeout.ms": "500"}


def test_slow_clients_are_cut_off():
    """Are clients that say nothing, or never finish a request, cut off, however many there are?"""
    with Cluster(IMPATIENT) as cluster, Neighbour(cluster.port, "neighbour"), contextlib.ExitStack() as clients:
        begin = time.monotonic()
        slow = [clients.enter_context(WireClient(cluster.port)) for _ in range(150)]
        for client in slow[::3]:
            client.send_bytes(b"\x00\x00")
        for client in slow[1::3]:
            client.send_bytes(struct.pack(">i", 1_000) + b"x" * 100)

        assert all(client.is_closed_by_broker() for client in slow)
        assert time.monotonic() - begin < 10


def test_drip_does_not_prolong(wire):
    """Is a request that comes a byte at a time cut off at its deadline, though there is never silence?"""
    with Cluster(IMPATIENT) as cluster:
        client = wire(cluster)
        client.send_bytes(struct.pack(">i", 10_000))
        client._socket.settimeout(0.05)
        begin = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while not is_over(client) and time.monotonic() - begin < 10:
                client.send_bytes(b"x")

        assert time.monotonic() - begin < 5


def is_over(client: WireClient) -> bool:
    """Whether the broker has hung up, after a short wait for it."""
    try:
        return client._socket.recv(1) == b""
    except TimeoutError:
        return False


def test_connections_of_one_address():
    """Is a flood from one address cut off at its limit, at once, and is there room again when it ebbs?"""
    settings = {"max.connections.per.ip": "20"}
    with Cluster(settings) as cluster, Neighbour(cluster.port, "neighbour"), contextlib.ExitStack() as clients:
        flood = [clients.enter_context(WireClient(cluster.port)) for _ in range(60)]

        assert sum(map(is_served, flood)) == 19
        clients.close()
        assert comes_true(lambda: is_let_in(cluster.port))


def is_let_in(port: int) -> bool:
    """Whether a new client is served."""
    with WireClient(port) as client:
        return is_served(client)


def test_connections_in_all():
    """Does the limit on all connections hold too?"""
    settings = {"max.connections": "25", "max.connections.per.ip": "1000"}
    with Cluster(settings) as cluster, Neighbour(cluster.port, "neighbour"), contextlib.ExitStack() as clients:
        flood = [clients.enter_context(WireClient(cluster.port)) for _ in range(60)]

        assert sum(map(is_served, flood)) == 24


class PoorProcess(HeadraceProcess):
    """A broker that may have few files open."""

    def command(self) -> list[str]:
        """Under a limit it cannot raise again."""
        return ["sh", "-c", 'ulimit -n 80 && exec "$@"', "sh", *super().command()]


@pytest.mark.skipif(sys.platform == "win32", reason="ulimit is POSIX")
def test_no_descriptors_left(tmp_path):
    """Does a broker that runs out of descriptors go on serving, and take new clients when there is room again?"""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 400
    with PoorProcess(tmp_path / "poor") as broker, contextlib.ExitStack() as clients:
        with Neighbour(broker.port, "neighbour") as neighbour:
            for _ in range(300):
                flooding = clients.enter_context(socket.socket())
                flooding.setblocking(False)
                flooding.connect_ex(("127.0.0.1", broker.port))
            neighbour.wait_for_rounds(20)
            clients.close()
            assert comes_true(lambda: is_let_in(broker.port))
        assert bugs(broker) == 0


def test_garbage_behind_requests(target, neighbour, guarded, wire):
    """Are the good requests before the garbage answered, and nothing behind it?"""
    client = wire(target)
    good = [client.send("Metadata", 12, MetadataRequest(topics=())) for _ in range(20)]
    client.send_bytes(b"\xff" * 1_000)
    for correlation_id in good:
        client.receive("Metadata", 12, correlation_id)

    assert is_closed_soon(client)


def test_client_that_never_reads(target, neighbour, guarded, wire):
    """Does a client that asks for a gigabyte and reads none of it cost little memory?"""
    filler = wire(target)
    name = f"{guarded}-big"
    assert filler.create_topic(name, max_message_bytes=str(2 * MIB)).error_code == 0
    batch = bytes(build_batch([NewRecord(1, None, b"x" * MIB, ())]))
    for _ in range(10):
        assert filler.produce(name, batch).error_code == 0
    before = target.memory().anonymous_bytes
    client = wire(target)
    client._socket.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        for number in range(1_000):
            client.send("Fetch", 12, one_fetch(name, number % 10, max_bytes=2 * MIB))
    filler.describe_topic(name)

    assert target.memory().anonymous_bytes - before < 64 * MIB


def test_pipelined_flood(target, neighbour, guarded, wire):
    """Does a client that asks tens of thousands of things at once cost little memory, and others no time?"""
    topics = tuple(
        CreatableTopic(name=f"{guarded}-{number}", num_partitions=4, replication_factor=1) for number in range(200)
    )
    created = wire(target).ask("CreateTopics", 5, CreateTopicsRequest(topics=topics, timeout_ms=30_000))
    assert {topic.error_code for topic in created.topics} == {0}
    before = target.memory().anonymous_bytes
    client = wire(target)
    client._socket.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        for _ in range(30_000):
            client.send("Metadata", 12, MetadataRequest(topics=None))

    assert target.memory().anonymous_bytes - before < 64 * MIB
