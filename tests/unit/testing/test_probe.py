"""The raw questions the harness asks a broker, put to a socket that answers as told."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.testing.ports import free_port
from headrace.testing.probe import answers, led_partitions


@contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """A server that reads one request and sends these bytes, then closes; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(reply)

        server = threading.Thread(target=serve)
        server.start()
        yield listener.getsockname()[1]
        server.join(5)


def framed(correlation_id: int, body: bytes) -> bytes:
    """A response with its length and correlation id."""
    return struct.pack(">ii", len(body) + 4, correlation_id) + body


def test_answers():
    """Is an ApiVersions reply without an error taken as a sign of life?"""
    with answering(framed(7, struct.pack(">hi", 0, 0))) as port:
        assert answers(port)


def test_does_not_answer():
    """Is everything else taken as none: an error, another's reply, half a reply, nobody there?"""
    for reply in (
        framed(7, struct.pack(">hi", 35, 0)),
        framed(8, struct.pack(">hi", 0, 0)),
        framed(7, struct.pack(">hi", 0, 0))[:7],
        struct.pack(">i", -1),
        b"",
    ):
        with answering(reply) as port:
            assert not answers(port)
    assert not answers(free_port())


def test_led_partitions():
    """Are partitions counted over all topics, and only those with a leader?"""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    def partition(index: int, leader: int) -> bytes:
        return struct.pack(">hiiiiii", 0, index, leader, 1, 1, 1, 1)

    broker = struct.pack(">i", 1) + text("localhost") + struct.pack(">i", 9092) + struct.pack(">h", -1)
    one = struct.pack(">h", 0) + text("one") + struct.pack(">bi", 0, 2) + partition(0, 1) + partition(1, -1)
    two = struct.pack(">h", 0) + text("two") + struct.pack(">bi", 0, 1) + partition(0, 1)
    body = struct.pack(">i", 1) + broker + struct.pack(">ii", 1, 2) + one + two

    with answering(framed(7, body)) as port:
        assert led_partitions(port) == 2
    assert led_partitions(free_port()) == -1
