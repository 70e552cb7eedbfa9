"""A connection of one node to another: questions in any number, answers matched to them.

Nodes of one cluster speak the versions they were built with, so nothing is agreed on first.
A link connects when it is first asked something, and again after it broke; whoever asks decides when to try again.
An answer lies in a buffer of its own: what a fetch brought may be used without a copy, as long as one likes.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any, cast

from headrace.model.errors import HeadraceError, MalformedRequest
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import parse_response_header, request_header

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER_BYTES_MAX = 256 * 1024 * 1024
_SCRATCH_BYTES = 256 * 1024
"""What is read at once: most answers come whole with one call, and are copied from there."""
_FIRST_BYTES_MAX = 1024 * 1024
"""An answer's buffer starts no larger, whatever size it announced, and doubles as its bytes arrive."""
_WAITING_MAX = 10_000
_LENGTH = struct.Struct(">i")


class LinkBroken(HeadraceError):
    """The other node cannot be reached, did not answer in time, or answered what cannot be read."""


class NotSent(LinkBroken):
    """The other node cannot be reached, so that it surely knows nothing of the question."""


class Link:
    """The way to one node."""

    def __init__(self, host: str, port: int, *, client_id: str, connect_timeout_s: float = 10.0) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id
        self._connect_timeout_s = connect_timeout_s
        self._wire: _Wire | None = None
        self._connecting = asyncio.Lock()

    def __repr__(self) -> str:
        return f"Link({self.host}:{self.port})"

    async def ask(self, api_key: int, version: int, message: Any, *, timeout_s: float) -> Any:
        """Ask, and wait for the answer; LinkBroken if there is none in time."""
        wire = None
        try:
            async with asyncio.timeout(timeout_s):
                wire = self._wire or await self._connect()
                return await wire.send(api_key, version, message, self._client_id)
        except TimeoutError:
            if wire is None:
                raise NotSent(f"{self.host}:{self.port} does not accept connections") from None
            # Whatever it was doing, its answer would come too late; and a node that is gone may leave the socket open.
            self.close(f"no answer within {timeout_s:g} s")
            raise LinkBroken(f"{self.host}:{self.port} did not answer within {timeout_s:g} s") from None

    async def _connect(self) -> _Wire:
        async with self._connecting:
            if self._wire is None:
                try:
                    async with asyncio.timeout(self._connect_timeout_s):
                        _, wire = await asyncio.get_running_loop().create_connection(
                            lambda: _Wire(self._lost), self.host, self.port
                        )
                except TimeoutError:
                    raise NotSent(f"{self.host}:{self.port} does not accept connections") from None
                except OSError as error:
                    raise NotSent(f"{self.host}:{self.port}: {error.strerror or error}") from error
                self._wire = wire
            return self._wire

    def _lost(self, wire: _Wire) -> None:
        if self._wire is wire:
            self._wire = None

    def close(self, reason: str = "closed") -> None:
        """Hang up; the next question connects again."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.end(reason)


async def is_listening(host: str, port: int, *, timeout_s: float) -> bool:
    """Whether a node accepts connections."""
    return await _knock(host, port, timeout_s) is None


async def is_refused(host: str, port: int, *, timeout_s: float) -> bool:
    """Whether a machine is there, and says that nobody listens."""
    return isinstance(await _knock(host, port, timeout_s), ConnectionRefusedError)


async def _knock(host: str, port: int, timeout_s: float) -> OSError | None:
    """Connect, and hang up; what went wrong."""
    try:
        async with asyncio.timeout(timeout_s):
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, host, port)
    except OSError as problem:  # A TimeoutError is one, too.
        return problem
    transport.close()
    return None


class _Wire(asyncio.BufferedProtocol):
    """One socket of a link."""

    def __init__(self, on_lost: Callable[[_Wire], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport
        self._waiting: dict[int, tuple[int, int, asyncio.Future[Any]]] = {}
        self._next_id = 0
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._frame: bytearray | None = None
        """An answer of which the rest is to come; without one bytes go to the scratch."""
        self._frame_bytes = 0
        self._filled = 0
        """How much of the frame is there, or of the length of the next one, at the start of the scratch."""
        self._fault = ""

    def send(self, api_key: int, version: int, message: Any, client_id: str) -> asyncio.Future[Any]:
        """Send one request; the answer comes in the future."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._fault:
            raise NotSent(self._fault)
        if len(self._waiting) >= _WAITING_MAX:
            raise NotSent("too many questions wait for their answers")
        self._next_id = self._next_id + 1 & 0x7FFFFFFF
        head = request_header(api_key, version, self._next_id, client_id)
        body = encode_request(api_key, version, message)
        self._waiting[self._next_id] = (api_key, version, answer)
        self._transport.writelines((_LENGTH.pack(len(head) + len(body)) + head, body))
        return answer

    def end(self, reason: str) -> None:
        """Hang up, and tell those who wait."""
        self._fault = self._fault or reason
        self._on_lost(self)
        waiting, self._waiting = self._waiting, {}
        for _, _, answer in waiting.values():
            if not answer.done():
                answer.set_exception(LinkBroken(self._fault))
                answer.exception()  # Nobody may be listening any more; that is no mistake to complain about.
        self._transport.abort()

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """There is a socket."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side went, or we hung up."""
        self.end(f"the connection ended: {exc}" if exc is not None else "the connection was closed")

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        where = self._scratch if self._frame is None else memoryview(self._frame)
        return where[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        self._filled += nbytes
        frame = self._frame
        if frame is None:
            self._cut(self._scratch[: self._filled])
        elif self._filled == self._frame_bytes:
            self._frame, self._filled = None, 0
            self._take(memoryview(frame))
        elif self._filled == len(frame):
            more = min(self._frame_bytes, 2 * len(frame)) - len(frame)
            # A new one: views of the old may be under way in the loop, and those forbid it to grow.
            self._frame = frame + bytes(more)

    def _cut(self, data: memoryview) -> None:
        """Take the answers that are whole, each into a buffer of its own, and keep the beginning of the next."""
        position, end = 0, len(data)
        while end - position >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(data, position)
            if not _LENGTH.size <= size <= ANSWER_BYTES_MAX:
                self.end(f"an answer of {size} bytes")
                return
            position += _LENGTH.size
            if end - position < size:
                self._keep(data[position:], size)
                return
            self._take(memoryview(bytearray(data[position : position + size])))
            position += size
            if self._fault:
                return
        self._filled = end - position
        self._scratch[: self._filled] = data[position:]

    def _keep(self, beginning: memoryview, size: int) -> None:
        """Hold the beginning of an answer in a buffer with room for more of it."""
        have = len(beginning)
        self._frame = bytearray(min(size, max(_FIRST_BYTES_MAX, 2 * have)))
        self._frame[:have] = beginning
        self._frame_bytes, self._filled = size, have

    def _take(self, frame: memoryview) -> None:
        (correlation_id,) = _LENGTH.unpack_from(frame)
        waiting = self._waiting.pop(correlation_id, None)
        if waiting is None:
            self.end("an answer to a question nobody asked")
            return
        api_key, version, answer = waiting
        if answer.done():
            return
        try:
            _, body = parse_response_header(api_key, version, frame)
            answer.set_result(decode_response(api_key, version, frame, body))
        except MalformedRequest as error:
            answer.set_exception(LinkBroken(f"an answer that cannot be read: {error}"))
