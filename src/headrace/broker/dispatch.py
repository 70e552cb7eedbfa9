"""From a frame to the handler of its API, and back to a framed response.

Handlers come from the numbered files in `handlers/`; nothing else decides what is served.
A request that cannot be understood ends the connection, as Kafka's does; the one exception is ApiVersions, whose
unknown versions are answered in form 0 so that a newer client can fall back (KIP-511).
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import pkgutil
from typing import TYPE_CHECKING, Any

from headrace.broker import handlers
from headrace.broker.api import Api, Call
from headrace.model.errors import MalformedRequest
from headrace.net.reply import Buffers, CloseConnection, PendingReply
from headrace.wire.codec import decode_request, encode_response
from headrace.wire.header import parse_request_header, response_header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from headrace.broker.broker import Broker
    from headrace.broker.faults import Faults
    from headrace.net.connection import Connection
    from headrace.wire.header import RequestHeader

logger = logging.getLogger(__name__)

API_VERSIONS = 18


def load_apis() -> dict[int, Api]:
    """Every API a handler file declares, by key."""
    apis: dict[int, Api] = {}
    for module in pkgutil.iter_modules(handlers.__path__):
        api = getattr(importlib.import_module(f"{handlers.__name__}.{module.name}"), "API", None)
        if isinstance(api, Api):
            assert api.key not in apis, f"two handlers for API key {api.key}"
            apis[api.key] = api
    return apis


def frame(header: RequestHeader, message: Any) -> Buffers:
    """A response with its length and header before it."""
    head = response_header(header.api_key, header.api_version, header.correlation_id)
    body = encode_response(header.api_key, header.api_version, message)
    return ((len(head) + len(body)).to_bytes(4, "big") + head, body)


class Dispatch:
    """The service behind a listener."""

    def __init__(self, broker: Broker, apis: Mapping[int, Api], faults: Faults) -> None:
        self._broker = broker
        self._apis = apis
        self._faults = faults
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, connection: Connection, request: memoryview) -> Buffers | PendingReply:
        """Answer one request frame."""
        try:
            header = parse_request_header(request)
            api = self._apis.get(header.api_key)
            if api is None or not api.low <= header.api_version <= api.high:
                return self._refuse_version(header)
            call = Call(self._broker, connection, header)
            if self._faults.armed:
                return self._faults.handle(call, bytes(request), self._answer)
            return self._answer(call, api, request)
        except MalformedRequest as fault:
            raise CloseConnection(f"a malformed request: {fault}") from fault

    def _answer(self, call: Call, api: Api, request: memoryview) -> Buffers | PendingReply:
        header = call.header
        try:
            if api.raw:
                reply: Buffers | PendingReply = api.handle(call, request, header.body)
                return reply
            message = api.handle(call, decode_request(header.api_key, header.api_version, request, header.body))
            return self._later(call, message) if inspect.isawaitable(message) else frame(header, message)
        except (MalformedRequest, CloseConnection):
            raise
        except Exception as bug:
            raise self._our_fault(call, bug) from bug

    def _later(self, call: Call, message: Awaitable[Any]) -> PendingReply:
        reply = PendingReply()
        task = asyncio.get_running_loop().create_task(self._finish(call, message, reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return reply

    async def _finish(self, call: Call, message: Awaitable[Any], reply: PendingReply) -> None:
        try:
            reply.send(frame(call.header, await message))
        except asyncio.CancelledError:
            raise
        except Exception as bug:  # noqa: BLE001 - the last line of defence: logged, and the connection ends
            call.connection.close(str(self._our_fault(call, bug)))

    def _our_fault(self, call: Call, bug: Exception) -> CloseConnection:
        """A mistake of ours: say all about it in the log, and end the connection rather than answer wrongly."""
        logger.error(
            "handler_failed api=%d version=%d client=%s",
            call.header.api_key,
            call.header.api_version,
            call.header.client_id,
            exc_info=bug,
        )
        return CloseConnection("an internal error; the server log has it")

    def _refuse_version(self, header: RequestHeader) -> Buffers:
        if header.api_key != API_VERSIONS:
            raise CloseConnection(f"API key {header.api_key} version {header.api_version} is not served here")
        from headrace.broker.handlers.api18_api_versions import unsupported  # noqa: PLC0415 - a cycle otherwise

        head = response_header(API_VERSIONS, 0, header.correlation_id)
        body = encode_response(API_VERSIONS, 0, unsupported(self._apis))
        return ((len(head) + len(body)).to_bytes(4, "big") + head, body)

    async def drain(self) -> None:
        """Let the requests under way finish, for a moment, then end them."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=1.0)
            for task in late:
                task.cancel()
