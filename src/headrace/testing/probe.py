"""The smallest possible Kafka client: two requests on a raw socket, to see from outside whether a broker serves.

It does not use our own codec on purpose: it asks Apache Kafka and Headrace the same question with the same bytes.
"""

import socket
import struct
from typing import Final

_API_VERSIONS: Final = 18
_METADATA: Final = 3
_CORRELATION_ID: Final = 7
_RESPONSE_BYTES_MAX: Final = 64 * 1024 * 1024


def answers(port: int, *, host: str = "127.0.0.1", timeout_s: float = 5.0) -> bool:
    """Whether a broker on this port answers an ApiVersions request."""
    try:
        reply = _ask(port, host=host, api_key=_API_VERSIONS, version=0, body=b"", timeout_s=timeout_s)
    except OSError:
        return False
    return reply[:2] == b"\0\0"


def led_partitions(port: int, *, timeout_s: float = 10.0) -> int:
    """How many partitions the broker says have a leader, over all topics; -1 if it does not answer."""
    try:
        reply = _ask(port, api_key=_METADATA, version=1, body=struct.pack(">i", -1), timeout_s=timeout_s)
    except OSError:
        return -1
    return _count_led(_Reader(reply))


def _ask(port: int, *, api_key: int, version: int, body: bytes, timeout_s: float, host: str = "127.0.0.1") -> bytes:
    request = struct.pack(">hhih", api_key, version, _CORRELATION_ID, -1) + body
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        if not 4 <= size <= _RESPONSE_BYTES_MAX:
            raise ConnectionError(f"a reply of {size} bytes")
        reply = _receive(connection, size)
    if struct.unpack_from(">i", reply) != (_CORRELATION_ID,):
        raise ConnectionError("a reply to another request")
    return reply[4:]


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise ConnectionError("closed before the reply was complete")
        received += piece
    return bytes(received)


class _Reader:
    """Reads the few types a Metadata v1 response is made of."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, code: str) -> int:
        value: int = struct.unpack_from(">" + code, self._data, self._at)[0]
        self._at += struct.calcsize(">" + code)
        return value

    def skip_string(self) -> None:
        size = self.number("h")
        self._at += max(size, 0)

    def skip_numbers(self) -> None:
        count = self.number("i")
        self._at += 4 * max(count, 0)


def _count_led(reader: _Reader) -> int:
    for _ in range(reader.number("i")):  # brokers: id, host, port, rack
        reader.number("i")
        reader.skip_string()
        reader.number("i")
        reader.skip_string()
    reader.number("i")  # the controller
    led = 0
    for _ in range(reader.number("i")):  # topics: error, name, internal, partitions
        reader.number("h")
        reader.skip_string()
        reader.number("b")
        for _ in range(reader.number("i")):  # partitions: error, index, leader, replicas, ISR
            reader.number("h")
            reader.number("i")
            led += reader.number("i") >= 0
            reader.skip_numbers()
            reader.skip_numbers()
    return led
