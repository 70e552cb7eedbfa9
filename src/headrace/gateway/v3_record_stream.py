"""Streaming produce: records come in on a request as long as it lasts, reports go out on its answer meanwhile.

Two tasks share what is on its way. The reader hands records to the producer until so much is on its way that it has to
wait; the writer takes reports in the order of the records and waits for a client that is slow to read them. So a client
that reads no reports is not read from, and nothing piles up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from headrace.gateway.connection import hang_up, hung_up
from headrace.gateway.json_splitter import JsonSplitter, NoObject, TooLarge
from headrace.gateway.misfit import misfit
from headrace.gateway.problem import Problem, unprocessable
from headrace.gateway.route import encode
from headrace.gateway.v3_record import Prepared, ProduceRecord, failure, hand_over, prepare, report

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from headrace.client.records import RecordMetadata
    from headrace.gateway.route import Call

_RECORDS_MAX = 1000
_WRITE_BYTES = 16 * 1024


class _OnItsWay:
    """One record between the two tasks: stored some day, or known to have failed."""

    __slots__ = ("failed", "prepared", "stored")

    def __init__(
        self,
        *,
        prepared: Prepared | None = None,
        stored: asyncio.Future[RecordMetadata] | None = None,
        failed: dict[str, Any] | None = None,
    ) -> None:
        self.prepared = prepared
        self.stored = stored
        self.failed = failed

    @property
    def size(self) -> int:
        return self.prepared.size if self.prepared is not None else 0

    @property
    def is_known(self) -> bool:
        return self.stored is None or self.stored.done()

    async def outcome(self, cluster_id: str) -> bytes:
        if self.stored is None or self.prepared is None:
            return encode(self.failed)
        try:
            return encode(report(cluster_id, self.prepared, await self.stored))
        except Exception as error:  # noqa: BLE001 - a mistake of ours flies on from there
            return encode(failure(error))


class RecordStream(Response):
    """The answer to a stream of records."""

    def __init__(self, call: Call, topic: str, chunks: AsyncIterator[bytes]) -> None:
        """Problem(429) if there are too many already."""
        config = call.services.config
        if call.services.produce_streams >= config["produce.streams.max"]:
            raise Problem(429, 429, "Too many clients produce streams (produce.streams.max).")
        super().__init__(media_type=call.gives, headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._call = call
        self._services = call.services
        self._topic = topic
        self._chunks = chunks
        self._splitter = JsonSplitter(config["request.max.bytes"])
        self._idle_s = config["produce.stream.idle.ms"] / 1000
        self._stall_s = config["stream.stall.ms"] / 1000
        self._bytes_max = config["produce.stream.buffer.bytes"]
        self._bytes = 0
        self._waiting: deque[_OnItsWay] = deque()
        self._is_over = False
        self._came, self._went = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        self._services.produce_streams += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read())
                tasks.create_task(self._write(send))
        except* ClientDisconnect:
            # Nobody is there to tell; what arrived whole is stored.
            pass
        except* _Stalled:
            hang_up(scope)
            await hung_up(receive)
        finally:
            self._services.produce_streams -= 1

    # --- the reader

    async def _read(self) -> None:
        last = None
        try:
            while (chunk := await self._next_chunk()) is not None:
                for piece in self._splitter.feed(chunk):
                    await self._put(await self._taken(piece))
            self._splitter.end()
        except NoObject as fault:
            last = Problem(400, 400, f"The stream ends here: {fault}.")
        except Problem as problem:
            last = problem
        if last is not None:
            self._waiting.append(_OnItsWay(failed=last.body()))
        self._is_over = True
        self._came.set()

    async def _next_chunk(self) -> bytes | None:
        try:
            async with asyncio.timeout(self._idle_s):
                return await anext(self._chunks, None)
        except TimeoutError:
            raise Problem(408, 408, "The stream ends here: nothing came in time (produce.stream.idle.ms).") from None

    async def _taken(self, piece: bytes | TooLarge) -> _OnItsWay:
        """A record on its way; Problem if it is no JSON, after which nobody knows where the next one begins."""
        if isinstance(piece, TooLarge):
            limit = self._services.config["request.max.bytes"]
            sentence = f"A record may have {limit} bytes (request.max.bytes), this one has {piece.size}."
            return _OnItsWay(failed=Problem(413, 413, sentence).body())
        try:
            prepared = prepare(msgspec.json.decode(piece, type=ProduceRecord))
            return _OnItsWay(prepared=prepared, stored=await hand_over(self._services, self._topic, prepared))
        except msgspec.ValidationError as fault:
            return _OnItsWay(
                failed=unprocessable(f"The record is not what belongs here: {misfit(fault, ProduceRecord)}.").body()
            )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            raise Problem(400, 400, f"The stream ends here: the record is not JSON: {fault}.") from None
        except Exception as error:  # noqa: BLE001 - a mistake of ours flies on from there
            return _OnItsWay(failed=failure(error))

    async def _put(self, one: _OnItsWay) -> None:
        self._waiting.append(one)
        self._bytes += one.size
        self._came.set()
        while self._bytes >= self._bytes_max or len(self._waiting) >= _RECORDS_MAX:
            self._went.clear()
            await self._went.wait()

    # --- the writer

    async def _write(self, send: Send) -> None:
        cluster_id = self._call.path["cluster_id"]
        lines = bytearray()
        while (one := await self._next()) is not None:
            lines += await one.outcome(cluster_id) + b"\n"
            self._waiting.popleft()
            self._bytes -= one.size
            self._went.set()
            if len(lines) >= _WRITE_BYTES or not self._waiting or not self._waiting[0].is_known:
                await self._send(send, bytes(lines), more=True)
                lines.clear()
        await self._send(send, b"", more=False)

    async def _next(self) -> _OnItsWay | None:
        while not (self._waiting or self._is_over):
            self._came.clear()
            await self._came.wait()
        return self._waiting[0] if self._waiting else None

    async def _send(self, send: Send, body: bytes, *, more: bool) -> None:
        try:
            async with asyncio.timeout(self._stall_s):
                await send({"type": "http.response.body", "body": body, "more_body": more})
        except TimeoutError:
            raise _Stalled from None


class _Stalled(Exception):
    """The client takes no reports."""
