"""One client connection: frames cut out of the stream, replies sent in order.

How to think of it: all connections of a loop receive into one shared scratch buffer, because uvloop fills and
hands it over in one step.
Whole frames are served straight from the scratch, with no copy and one `recv` for any number of small requests; a
frame that is not complete yet moves to a buffer of its own, which grows only as bytes really arrive, so that a
declared size costs nothing by itself.
A frame handed to the service is borrowed: it is valid until `handle` returns, and whoever needs it longer copies.

What it refuses: frames beyond the limit (or negative: a TLS or HTTP client on a plaintext port reads as a huge
size), frames that stop arriving, and silence.
Reading is paused from peers that do not read their replies, and while all incomplete frames together hold too much.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from collections import deque
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Protocol, cast

from headrace.net.frame_buffers import FIRST_BYTES_MAX, FrameBuffers
from headrace.net.pacing import pace
from headrace.net.reply import Buffer, Buffers, CloseConnection, PendingReply, in_memory, send_piece
from headrace.storage.file_range import FileRange

if TYPE_CHECKING:
    from collections.abc import Callable

_size_at = struct.Struct(">i").unpack_from
_TURN_S = 0.005
"""How long the requests one connection has ready may keep the loop to themselves; one request may still take longer."""
_WRITE_PIECES_MAX = 256
"""Replies to pipelined requests are gathered into one write, up to this many pieces."""
BULK_SEND_BYTES = 256 * 1024
"""What the kernel buffers where replies are larger than what it was told to: with less it wakes us too often, with more
the bytes are out of the processor's cache before the peer reads them. Either costs a fifth more for each byte."""
FILE_SEND_BYTES = 4 * 1024 * 1024
"""The same where a thread sends from files: nothing is copied, so the kernel can have a whole reply at once, and goes
on with it whenever the peer has read some. In pieces of 256 KiB a reply took half as much CPU again."""
BULK_RECEIVE_BYTES = 512 * 1024
"""What the kernel buffers of large requests: their sender then rarely has to wait for us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a connection may cost; each is a setting."""

    frame_bytes_max: int = 100 * 1024 * 1024
    first_bytes_timeout_s: float = 10.0
    frame_timeout_s: float = 30.0
    idle_timeout_s: float = 600.0
    pending_replies_max: int = 1000
    partial_bytes_max: int = 512 * 1024 * 1024
    """Over all connections of a listener: bytes held in frames that are not complete yet."""
    send_buffer_bytes: int = -1
    """What the kernel buffers for us, until a reply does not fit; -1 leaves it to the kernel."""
    receive_buffer_bytes: int = -1


class Service(Protocol):
    """What answers frames."""

    def handle(self, connection: Connection, frame: memoryview) -> Buffers | PendingReply:
        """Answer one frame, borrowed until this returns; CloseConnection ends the connection."""


class Connection(asyncio.BufferedProtocol):
    """The protocol object asyncio drives for one accepted socket."""

    __slots__ = (
        "_backlog",
        "_buffers",
        "_closed",
        "_filled",
        "_frame",
        "_frame_bytes",
        "_head",
        "_is_bulk",
        "_is_flush_due",
        "_limits",
        "_muted",
        "_on_close",
        "_on_open",
        "_out",
        "_paced",
        "_peer_done",
        "_pending",
        "_reading_paused",
        "_resumed_at",
        "_send_bytes",
        "_sender",
        "_service",
        "_starved",
        "_transport",
        "_writing_paused",
        "close_reason",
        "frame_since",
        "heard_at",
        "listener_name",
        "loop",
        "opened_at",
        "peer",
        "sends_files",
        "state",
    )

    def __init__(
        self,
        service: Service,
        *,
        limits: Limits,
        listener_name: str,
        buffers: FrameBuffers,
        on_open: Callable[[Connection], None],
        on_close: Callable[[Connection], None],
        paced: bytes = b"",
    ) -> None:
        """`paced` is what `unpace` said of the socket that this connection came to."""
        self._service = service
        self._paced = paced
        self._limits = limits
        self._send_bytes = limits.send_buffer_bytes
        self._buffers = buffers
        self._on_open = on_open
        self._on_close = on_close
        self._head = b""
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled = 0
        self._backlog: bytes = b""
        self._pending: deque[PendingReply] = deque()
        self._out: list[Buffer | FileRange] = []
        self._is_flush_due = False
        self._is_bulk = False
        self._peer_done = False
        self._muted = False
        self._writing_paused = False
        self._reading_paused = False
        self._starved = False
        self._resumed_at = 0.0
        self._closed = False
        self._sender: socket.socket | None = None
        """The same connection by a descriptor of our own, once something was sent from files."""
        self.sends_files = False
        """Whether the kernel takes bytes for this socket from files."""
        self.listener_name = listener_name
        self.peer = ("", 0)
        self.state: object = None
        """What the service keeps about this client (software name, principal, …)."""
        self.close_reason = ""
        self.frame_since = 0.0
        self.heard_at = 0.0
        """When bytes came last; zero before the first."""
        self.opened_at = 0.0

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A socket was accepted."""
        self._transport = cast("asyncio.Transport", transport)
        self.loop = asyncio.get_running_loop()
        self.opened_at = self.loop.time()
        name = transport.get_extra_info("peername")
        if name:
            self.peer = (str(name[0]), int(name[1]))
        self._set_options()
        self._on_open(self)

    def _set_options(self) -> None:
        sock = self._transport.get_extra_info("socket")
        is_plain = self._transport.get_extra_info("ssl_object") is None
        self.sends_files = is_plain and sys.platform != "win32" and hasattr(sock, "fileno")
        pace(sock, self.peer[0], self._paced)
        for option, size in (
            (socket.SO_SNDBUF, self._limits.send_buffer_bytes),
            (socket.SO_RCVBUF, self._limits.receive_buffer_bytes),
        ):
            if size > 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)

    def _fit_buffers(self, send_bytes: int = BULK_SEND_BYTES) -> None:
        """Have the kernel buffer so much of replies and more of requests, unless it is to choose by itself."""
        told = self._limits
        wanted = max(told.send_buffer_bytes, send_bytes) if told.send_buffer_bytes > 0 else self._send_bytes
        if self._is_bulk and wanted == self._send_bytes:
            return
        sock = self._transport.get_extra_info("socket")
        if wanted != self._send_bytes:
            self._send_bytes = wanted
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, wanted)
        if 0 < told.receive_buffer_bytes < BULK_RECEIVE_BYTES and not self._is_bulk:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BULK_RECEIVE_BYTES)
        self._is_bulk = True

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer went, or we closed."""
        self._closed = True
        if exc is not None and not self.close_reason:
            self.close_reason = f"{exc}"
        self._drop_frame()
        self._pending.clear()
        if self._sender is not None:
            self._sender.close()
        self._on_close(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go: the frame under way, or the shared scratch."""
        frame = self._frame
        if frame is None:
            return self._buffers.scratch
        return memoryview(frame)[self._filled : self._frame_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        """`nbytes` arrived where `get_buffer` said."""
        self.heard_at = self.loop.time()
        if self._frame is None:
            if self._head:
                data = self._head + self._buffers.scratch[:nbytes]
                self._head = b""
                self._consume(memoryview(bytearray(data)))
            else:
                self._consume(self._buffers.scratch[:nbytes])
            return
        self._filled += nbytes
        if self._filled == self._frame_bytes:
            frame, self._frame = self._frame, None
            self.frame_since = 0.0
            self._serve(memoryview(frame)[: self._frame_bytes])
            self._buffers.give_back(frame)
            self._write_out()
        elif self._filled == len(self._frame):
            # Now, not when the next bytes ask for room: growing may close, and uvloop crashes on a close in get_buffer.
            self._grow(self._frame)

    def eof_received(self) -> bool:
        """The peer has nothing more to say; replies under way still matter to a half-closed client, so keep open."""
        self._peer_done = True
        return bool(self._pending)

    def pause_writing(self) -> None:
        """The peer does not read its replies as fast as they come: stop reading its requests."""
        self._writing_paused = True
        self._pause_reading()
        self._fit_buffers()

    def resume_writing(self) -> None:
        """The peer caught up."""
        self._writing_paused = False
        self._resume()

    # --- frames

    def _consume(self, data: memoryview) -> None:
        """Cut whole frames out of `data` and serve them; keep what is left."""
        if self._closed:
            # TLS may still hand over what came before the end, and it may be the middle of a frame that was dropped.
            return
        position, end = 0, len(data)
        turn_ends = 0.0
        while end - position >= 4:
            (size,) = _size_at(data, position)
            if not 0 < size <= self._limits.frame_bytes_max:
                self._write_out()
                self._refuse_size(size)
                return
            stop = position + 4 + size
            if stop > end:
                break
            if self._writing_paused or (self._pending and self._must_wait()):
                self._hold(data[position:])
                return
            if stop < end and not turn_ends:
                turn_ends = monotonic() + _TURN_S
            self._serve(data[position + 4 : stop])
            if self._closed:
                return
            position = stop
            if position < end and monotonic() > turn_ends:
                self._hold(data[position:])
                self.loop.call_soon(self._resume)
                return
        if position < end:
            self._keep(data[position:])
        else:
            self.frame_since = 0.0
        self._write_out()

    def _must_wait(self) -> bool:
        """Whether the next request must wait for answers to those before it."""
        return self._muted or len(self._pending) >= self._limits.pending_replies_max

    def _keep(self, rest: memoryview) -> None:
        """Hold the beginning of the next frame until the rest of it comes."""
        self.frame_since = self.heard_at
        have = len(rest) - 4
        if have < 0:
            self._head = bytes(rest)
            return
        size = int.from_bytes(rest[:4], "big", signed=True)
        self._frame = self._buffers.take(min(size, max(2 * have, FIRST_BYTES_MAX)), filled=have)
        self._frame[:have] = rest[4:]
        self._filled = have
        self._frame_bytes = size
        if size >= BULK_SEND_BYTES and not self._is_bulk:
            self._fit_buffers()
        if have == len(self._frame):
            self._grow(self._frame)

    def _grow(self, frame: bytearray) -> None:
        """Give the partial frame more room, or stop reading until there is some."""
        more = self._larger(frame) - len(frame)
        if self._buffers.fits(more):
            self._frame = self._buffers.exchange(frame, len(frame) + more)
        else:
            self._starved = True
            self._pause_reading()
            self._buffers.wait(self, more)

    def _larger(self, frame: bytearray) -> int:
        """Twice as much: its owner has sent as much as it has been given."""
        return min(self._frame_bytes, max(2 * len(frame), FIRST_BYTES_MAX))

    def grow(self) -> None:
        """There is room again for the frame that waited."""
        assert self._frame is not None, "only a frame waits for room"
        self._frame = self._buffers.exchange(self._frame, self._larger(self._frame))
        self._starved = False
        self._resumed_at = self.loop.time()
        self._resume()

    def _drop_frame(self) -> None:
        frame, self._frame = self._frame, None
        self.frame_since = 0.0
        if frame is not None:
            self._buffers.forget(self)
            self._buffers.give_back(frame)

    def _refuse_size(self, size: int) -> None:
        what = "a negative or empty request" if size <= 0 else f"a request of {size} bytes"
        self.close(f"{what} (the limit is {self._limits.frame_bytes_max}; is a TLS or HTTP client on this port?)")

    def _hold(self, rest: memoryview) -> None:
        """Put requests aside while the peer reads what it already asked for, or others have their turn."""
        self._write_out()
        self._backlog = bytes(rest)
        self._pause_reading()

    # --- serving

    def _serve(self, frame: memoryview) -> None:
        """Answer one frame, now or in its turn."""
        try:
            reply = self._service.handle(self, frame)
        except CloseConnection as ending:
            self._write_out()
            self.close(str(ending))
            return
        pending = self._pending
        if isinstance(reply, PendingReply):
            if reply.buffers is None:
                reply.attach(self._flush)
                pending.append(reply)
                self._muted = reply.exclusive
                return
            reply = reply.buffers
        if pending:
            done = PendingReply()
            done.buffers = reply
            pending.append(done)
            return
        self._out.extend(reply)
        if len(self._out) > _WRITE_PIECES_MAX:
            self._write_out()

    def _flush(self) -> None:
        """A reply is ready: write it now, or if others wait behind it, with those that become ready in this turn.

        What makes one pipelined request safe often does so for several, and each write wakes the peer.
        """
        if len(self._pending) <= 1:
            self._flush_ready()
        elif not self._is_flush_due:
            self._is_flush_due = True
            self.loop.call_soon(self._flush_ready)

    def _flush_ready(self) -> None:
        """Write the replies at the head of the queue that are ready, and go on where they were waited for."""
        self._is_flush_due = False
        if self._closed:
            return
        self._take_ready()
        self._write_out()
        if self._reading_paused:
            self._resume()
        if self._peer_done and not self._pending:
            self.close("the peer closed its side")

    def _take_ready(self) -> None:
        pending = self._pending
        while pending and (buffers := pending[0].buffers) is not None:
            self._out.extend(buffers)
            if pending.popleft().exclusive:
                self._muted = False

    def _write_out(self) -> None:
        """One write for all that is ready."""
        out = self._out
        if out:
            self._out = []
            if not self._closed:
                rest = self._send_files(out) if len(out) > 1 and FileRange in map(type, out) else out
                if rest:
                    self._transport.writelines(cast("list[Buffer]", rest))

    def _send_files(self, pieces: list[Buffer | FileRange]) -> list[memoryview]:
        """Have the kernel take from files what lies there, and all else with it; what it does not take now is left.

        What is warm only: the event loop cannot wait for a disk.
        """
        number = done = 0
        if not self._transport.get_write_buffer_size():
            self._fit_buffers(FILE_SEND_BYTES)
            sender = self._sender = self._sender or self._own_socket()
            try:
                number, done = _hand_over(sender, pieces)
            except OSError as problem:
                # Some of the reply may have left; readers are told what is wrong when they ask again.
                self.close(f"a reply could not be finished: {problem}")
                return []
        rest = list(map(in_memory, pieces[number:]))
        return [rest[0][done:], *rest[1:]] if rest else []

    def _own_socket(self) -> socket.socket:
        """The same connection by another descriptor: the number of one that was closed may be somebody else's."""
        own = self._transport.get_extra_info("socket")
        # Told what it is, it need not ask.
        return socket.socket(own.family, own.type, own.proto, os.dup(own.fileno()))

    def lend(self, reply: PendingReply) -> socket.socket | None:
        """The socket, for a thread to send `reply` by, if nothing is before it; nothing else is sent until it is there.

        The thread closes it.
        """
        if self._closed or not self._pending or self._pending[0] is not reply or self._out:
            return None
        if self._transport.get_write_buffer_size() or not self.sends_files:
            return None
        self._fit_buffers(FILE_SEND_BYTES)
        return self._own_socket()

    def _pause_reading(self) -> None:
        if not self._reading_paused and not self._closed:
            self._reading_paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        """Go on with what was put aside, then with the socket."""
        if self._backlog and not self._is_held():
            rest, self._backlog = self._backlog, b""
            self._consume(memoryview(bytearray(rest)))
        if self._reading_paused and not self._backlog and not self._is_held():
            self._reading_paused = False
            self._transport.resume_reading()

    def _is_held(self) -> bool:
        return self._muted or self._writing_paused or self._starved or self._closed

    @property
    def closed(self) -> bool:
        """Whether replies can no longer reach the peer."""
        return self._closed

    @property
    def is_hung_up(self) -> bool:
        """Whether the peer will ask nothing more here, though it may still be answered."""
        return self._closed or self._peer_done

    def close(self, reason: str) -> None:
        """End the connection; `reason` goes to the log."""
        if not self._closed:
            if self._is_flush_due:
                self._take_ready()
                self._write_out()
            self.close_reason = self.close_reason or reason
            self._closed = True
            self._transport.abort() if self._writing_paused else self._transport.close()
            # Now, as a peer that does not read can put off the end of its connection.
            self._drop_frame()

    def overdue(self, now: float) -> str | None:
        """Why this connection has been silent for too long, or None."""
        limits = self._limits
        arriving = self.frame_since and not self._starved
        if arriving and now - max(self.frame_since, self._resumed_at) > limits.frame_timeout_s:
            return "a request stopped arriving (request.frame.timeout.ms)"
        if not self.heard_at and now - self.opened_at > limits.first_bytes_timeout_s:
            return "no request after connecting (request.first.bytes.timeout.ms)"
        if not self._pending and now - (self.heard_at or self.opened_at) > limits.idle_timeout_s:
            return "idle (connections.max.idle.ms)"
        return None


def _hand_over(sender: socket.socket, pieces: list[Buffer | FileRange]) -> tuple[int, int]:
    """How far a socket takes pieces in one turn: the first it does not have, and how much of that it has."""
    turn_ends = monotonic() + _TURN_S
    for number, piece in enumerate(pieces):
        done = 0
        while done < len(piece):
            try:
                done += send_piece(sender, piece, done, last=number == len(pieces) - 1)
            except (BlockingIOError, ConnectionError):
                # A peer that is gone the transport meets too, and tells us.
                return number, done
            if done < len(piece) and monotonic() > turn_ends:
                return number, done
    return len(pieces), 0
