"""A reply that is not ready yet, keeping its place in the connection's order.

Kafka answers the requests of one connection in the order they came.
A handler that must wait (for a flush, for data, for a thread) returns a `PendingReply`; the requests behind it
are started all the same, and their replies leave when those before them have left.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING

from headrace.storage.file_range import FileRange

if TYPE_CHECKING:
    from headrace.model.histogram import Histogram

_MORE = getattr(socket, "MSG_MORE", 0)

Buffer = bytes | bytearray | memoryview
Buffers = Sequence[Buffer | FileRange]
"""The pieces of one framed response, in order; an empty sequence is "no response" (acks=0)."""


def in_memory(piece: Buffer | FileRange) -> memoryview:
    """The bytes of a piece, wherever they come from."""
    return piece.view if isinstance(piece, FileRange) else memoryview(piece)


def send_piece(peer: socket.socket, piece: Buffer | FileRange, begin: int, *, last: bool) -> int:
    """Hand a piece from one byte on to a socket that does not block, answering how much it took; HOT."""
    if isinstance(piece, FileRange):
        return piece.send(peer.fileno(), begin)
    return peer.send(memoryview(piece)[begin:], 0 if last else _MORE)


class PendingReply:
    """A place in a connection's reply order, filled once by `send`."""

    __slots__ = ("_began_ns", "_on_ready", "_times", "buffers", "exclusive")

    def __init__(self, *, exclusive: bool = False) -> None:
        self.exclusive = exclusive
        """Nothing more is served on the connection until this reply is there: it is costly to hold."""
        self.buffers: Buffers | None = None
        self._on_ready: Callable[[], None] | None = None
        self._times: Histogram | None = None
        self._began_ns = 0

    def attach(self, on_ready: Callable[[], None]) -> None:
        """Ask to be told when the reply is there."""
        self._on_ready = on_ready

    def measure(self, times: Histogram, began_ns: int) -> None:
        """Have it noted how long the reply took."""
        self._times = times
        self._began_ns = began_ns

    def send(self, buffers: Buffers) -> None:
        """Fill the place; the connection writes it as soon as all before it are written."""
        assert self.buffers is None, "a request is answered once"
        self.buffers = buffers
        if self._times is not None:
            self._times.note(perf_counter_ns() - self._began_ns)
        if self._on_ready is not None:
            self._on_ready()


class CloseConnection(Exception):
    """Raised by a service when the peer's frame must end the connection; the text says why, for the log."""
