"""Counts every request as it goes in and out, so that no handler has to."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

from headrace.gateway.connection import PUT, Put, put_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from headrace.gateway.meters import Meters

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_STREAMS = {b"text/event-stream": "sse", b"application/x-ndjson": "ndjson"}
_WEBSOCKET = "websocket"
_NO_STATUS = 499
"""What is written down for a client that went before it was answered."""


class Metering:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, and look at what passes."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        passage = _Passage(self._meters, scope, receive, send)
        put = put_of(scope)
        if put is not None:
            scope["extensions"][PUT] = passage.counting(put)
        try:
            await self._app(scope, passage.receive, passage.send)
        except Exception:
            passage.status = passage.status or 500
            raise
        finally:
            passage.end()


class _Passage:
    """One request under way."""

    __slots__ = ("_began_ns", "_meters", "_receive", "_scope", "_send", "_stream", "status")

    def __init__(self, meters: Meters, scope: Scope, receive: Receive, send: Send) -> None:
        self._meters = meters
        self._scope = scope
        self._receive = receive
        self._send = send
        self._stream: str | None = None
        self._began_ns = perf_counter_ns()
        self.status = 0
        meters.in_flight += 1

    async def receive(self) -> Message:
        """What comes in."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._meters.bytes_received += len(message.get("body", b""))
        elif message["type"] == "websocket.receive":
            self._meters.bytes_received += _size(message)
        return message

    async def send(self, message: Message) -> None:
        """What goes out."""
        match message["type"]:
            case "http.response.body":
                self._sent(len(message.get("body", b"")))
            case "websocket.send":
                self._sent(_size(message))
            case "http.response.start" | "websocket.http.response.start":
                self.status = message["status"]
                self._open(_kind(message))
            case "websocket.accept":
                self.status = 101
                self._open(_WEBSOCKET)
            case "websocket.close":
                self.status = self.status or 403
        await self._send(message)

    def counting(self, put: Put) -> Put:
        """The short way out, with a counter at it."""

        def counted(data: bytes) -> bool:
            went = put(data)
            if went:
                self._sent(len(data))
            return went

        return counted

    def end(self) -> None:
        """It is over."""
        meters = self._meters
        meters.in_flight -= 1
        elapsed_ns = None
        if self._stream is None:
            elapsed_ns = perf_counter_ns() - self._began_ns
        else:
            meters.streams[self._stream] -= 1
        method = self._scope.get("method", "GET")
        meters.answered(
            method if method in _METHODS else "OTHER", route_of(self._scope), self.status or _NO_STATUS, elapsed_ns
        )

    def _open(self, kind: str | None) -> None:
        if kind is not None:
            self._stream = kind
            self._meters.streams[kind] += 1
            self._meters.streams_opened[kind] += 1

    def _sent(self, size: int) -> None:
        self._meters.bytes_sent += size
        if self._stream is not None:
            self._meters.stream_bytes[self._stream] += size


def route_of(scope: Scope) -> str:
    """The route a request was for, as its table has it; what is mounted counts as one."""
    mounted = scope.get("root_path", "")
    if mounted:
        return f"/{mounted.split('/')[1]}"
    return str(getattr(scope.get("route"), "path", "none"))


def _kind(message: Message) -> str | None:
    """The kind of stream that an answer begins, if it is one."""
    for name, value in message.get("headers", ()):
        if name == b"content-type":
            return _STREAMS.get(value.partition(b";")[0])
    return None


def _size(message: Message) -> int:
    return len(message.get("text") or message.get("bytes") or "")
