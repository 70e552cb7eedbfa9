"""A few pages over HTTP/1.1 for programs that look in: metrics, a sign of life.

It is no web server: GET and HEAD of fixed paths, one answer per connection, and limits on everything a stranger could
spend: bytes of a request's head, seconds, connections.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

logger = logging.getLogger(__name__)

HEAD_BYTES_MAX = 8192
HEAD_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 30.0
CONNECTIONS_MAX = 16
_END = b"\r\n\r\n"
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class Page(NamedTuple):
    """What is at a path: its content type, and what makes its text, a piece at a time."""

    content_type: str
    text: Callable[[], Iterable[str]]


class HttpResponder:
    """Pages on one address."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen; OSError if the address cannot be had. Port 0 takes a free one, told by `port` afterwards."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host or None, port)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Hang up."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in tuple(self._connections):
            connection.close()

    def opened(self, connection: _Connection) -> bool:
        """Whether there is room for one more."""
        if len(self._connections) >= CONNECTIONS_MAX:
            return False
        self._connections.add(connection)
        return True

    def closed(self, connection: _Connection) -> None:
        """It is gone."""
        self._connections.discard(connection)

    def answer(self, head: bytes) -> Iterator[bytes]:
        """What to answer to a request's head, in pieces."""
        line = head.split(b"\r\n", 1)[0].split(b" ")
        if len(line) != 3 or not line[2].startswith(b"HTTP/1."):
            return _refusal(400, "This is no HTTP request.")
        method, target = line[0], line[1].split(b"?", 1)[0].decode("latin-1")
        page = self._pages.get(target)
        if page is None:
            return _refusal(404, f"There is nothing here; there are: {', '.join(self._pages)}.")
        if method not in {b"GET", b"HEAD"}:
            return _refusal(405, "Only GET and HEAD are known here.", "Allow: GET, HEAD\r\n")
        return _pieces(page, is_head=method == b"HEAD")


def _pieces(page: Page, *, is_head: bool) -> Iterator[bytes]:
    # How long it will be is not known yet; the end of the connection is its end.
    yield _head(200, page.content_type)
    if not is_head:
        for piece in page.text():
            yield piece.encode()


def _refusal(status: int, sentence: str, more: str = "") -> Iterator[bytes]:
    body = f"{sentence}\n".encode()
    yield _head(status, "text/plain; charset=utf-8", f"Content-Length: {len(body)}\r\n{more}") + body


def _head(status: int, content_type: str, more: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {content_type}\r\nCache-Control: no-store\r\n"
        f"Connection: close\r\n{more}\r\n"
    ).encode()


class _Connection(asyncio.Protocol):
    """One request and its answer."""

    def __init__(self, responder: HttpResponder) -> None:
        self._responder = responder
        self._head = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not self._responder.opened(self):
            self._transport.abort()
            return
        self._end_after(HEAD_TIMEOUT_S)

    def data_received(self, data: bytes) -> None:
        if self._answering is not None:
            return
        self._head += data
        if _END in self._head:
            self._end_after(ANSWER_TIMEOUT_S)
            self._answering = asyncio.get_running_loop().create_task(self._answer(bytes(self._head)))
        elif len(self._head) > HEAD_BYTES_MAX:
            self.close()

    async def _answer(self, head: bytes) -> None:
        try:
            for piece in self._responder.answer(head):
                self._transport.write(piece)
                # Others have their turn.
                await asyncio.sleep(0)
        except Exception:
            # Half an answer must not be taken for a whole one.
            logger.exception("page_failed")
            self.close()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()
        self._responder.closed(self)

    def close(self) -> None:
        """Hang up at once: the other side was too slow, or sent too much."""
        self._transport.abort()

    def _end_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.close)
