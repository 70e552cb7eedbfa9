"""HTTP/1.1 on one connection, with limits: how many there are, how large a request's head is, how long it takes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from headrace.gateway.problem import Problem
from headrace.gateway.route import JSON, encode

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

Put = Callable[[bytes], bool]
"""Takes a piece of an answer that is under way, if there is room for it now; else it wants to be sent by `send`."""
PUT = "headrace.put"
_HANG_UP = "headrace.hang_up"
_LINGER_S = 2.0
"""How long last words may take to be taken."""
_LINGER_BYTES = 1024 * 1024
"""How much of what a client goes on sending is thrown away for it to read why it was refused."""
_POLICY = 1008


def hang_up(scope: Scope, last_words: bytes = b"") -> None:
    """Drop a client that takes nothing more; a polite end would wait until it has taken what lies there for it."""
    scope["extensions"][_HANG_UP](last_words)


def put_of(scope: Scope) -> Put | None:
    """The short way to a client, past everything that an answer goes through piece by piece; not all have one."""
    put: Put | None = scope.get("extensions", {}).get(PUT)
    return put


async def hung_up(receive: Receive) -> None:
    """Wait until the connection is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class _Peer(h11.Connection):
    """h11's view of a client, with a bound on every head; h11's own bound is only for a head that is not whole yet."""

    def __init__(self, head_bytes_max: int) -> None:
        super().__init__(h11.SERVER, head_bytes_max)
        self._head_bytes_max = head_bytes_max

    def next_event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        """What came next; what a head took from all that came is its size, however it came and whatever follows it."""
        if self.their_state is not h11.IDLE:
            return super().next_event()
        before = len(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request) and before - len(self.trailing_data[0]) > self._head_bytes_max:
            raise h11.RemoteProtocolError("The head is too large", error_status_hint=431)
        return event


class Connection(H11Protocol):
    """uvicorn's connection; one too many is answered and closed, and every request's head must arrive in time."""

    def __init__(
        self, *words: Any, timeout_s: float, head_bytes_max: int, is_full: Callable[[], bool], **named: Any
    ) -> None:
        super().__init__(*words, **named)
        self.conn = _Peer(head_bytes_max)
        self._head_bytes_max = head_bytes_max
        self._timeout_s = timeout_s
        self._is_full = is_full
        self._head_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        """Set once a client was refused."""
        self._lingered_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Somebody came."""
        super().connection_made(transport)
        if self._is_full():
            self._refuse(503, "Too many connections are open (connections.max).")
            # It counts as long as it is there, so it may not stay.
            self.transport.close()
            return
        self._head_timer = self.loop.call_later(self._timeout_s, self._too_slow)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        if self.transport.is_closing():
            return
        if self._linger_timer is not None:
            self._let_lie(data)
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0] and self._head_timer is None:
            # The beginning of another request on the same connection.
            self._head_timer = self.loop.call_later(self._timeout_s, self._too_slow)

    def handle_events(self) -> None:
        """Look at what came; a head that is whole is in time."""
        super().handle_events()
        if self.cycle is not None:
            scope: Any = self.cycle.scope
            extensions = scope.setdefault("extensions", {})
            extensions[_HANG_UP] = self._hang_up
            if scope["http_version"] == "1.1":
                extensions.setdefault(PUT, self._put)
        if self.conn.their_state is not h11.IDLE:
            self._forget_timer()

    def _put(self, data: bytes) -> bool:
        """One chunk more of an answer whose length is not known; not empty, since that would be the end.

        h11 keeps no account of chunks, so it need not see this one.
        """
        if self.flow.write_paused or self.cycle.disconnected or self.transport.is_closing():
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True

    def _hang_up(self, last_words: bytes) -> None:
        """End an answer without waiting for its reader: flow control would wait for ever."""
        self.cycle.response_complete = True
        if last_words:
            last = self.conn.send(h11.Data(data=last_words)) or b""
            self.transport.write(last + (self.conn.send(h11.EndOfMessage()) or b""))
            self.transport.close()
            self.loop.call_later(_LINGER_S, self.transport.abort)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._forget_timer()
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The gateway stops; who was refused has nothing more to wait for."""
        if self._linger_timer is not None:
            self.transport.close()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """What h11 cannot read: a head that is too large, or that is none."""
        fault = sys.exc_info()[1]
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()
        elif getattr(fault, "error_status_hint", 400) == 431:
            self._refuse(
                431,
                f"A request's line and all of its headers may have {self._head_bytes_max} bytes "
                "(request.max.header.bytes).",
            )
        else:
            self._refuse(400, "This is no HTTP request.")

    def _too_slow(self) -> None:
        self._head_timer = None
        self._refuse(408, "The request's head did not arrive in time (request.timeout.ms).")

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: int, message: str) -> None:
        """Answer without a request, and hang up once the client did, or had the time to.

        To close while something lies unread, or is on its way, resets the connection, and the answer may be lost.
        """
        body = encode(Problem(status, status, message).body())
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {JSON}\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            # A request whose body makes no sense: its application may not answer now.
            cycle.disconnected = True
            cycle.waiting_for_100_continue = False
            cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._linger_timer = self.loop.call_later(_LINGER_S, self.transport.abort)
        self.flow.resume_reading()

    def _let_lie(self, data: bytes) -> None:
        """Throw away what a client sends that was refused."""
        self._lingered_bytes += len(data)
        if self._lingered_bytes > _LINGER_BYTES:
            self.transport.close()


class WebSocketConnection(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, which can be hung up on."""

    def handle_connect(self, event: Any) -> None:
        """Somebody wants to talk."""
        super().handle_connect(event)
        if not self.transport.is_closing():
            extensions: Any = self.scope["extensions"]
            extensions[_HANG_UP] = self._hang_up

    def _hang_up(self, last_words: bytes) -> None:
        self.conn.send_close(_POLICY, last_words.decode()[:120])
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        self.loop.call_later(_LINGER_S, self.transport.abort)
