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
from functools import cache, partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from headrace.broker import handlers
from headrace.broker.api import Api, Call
from headrace.broker.controller import NotController
from headrace.broker.handler_index import ENTRIES, Entry
from headrace.model.errors import ErrorCode, KafkaError, MalformedRequest
from headrace.net.reply import Buffers, CloseConnection, PendingReply
from headrace.wire.codec import decode_request, frame_response
from headrace.wire.header import parse_request_header, response_header
from headrace.wire.messages.add_raft_voter import AddRaftVoterResponse
from headrace.wire.messages.describe_quorum import DescribeQuorumResponse
from headrace.wire.messages.remove_raft_voter import RemoveRaftVoterResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from headrace.broker.broker import Broker
    from headrace.broker.faults import Faults
    from headrace.broker.forwarding import Forwarding
    from headrace.net.connection import Connection
    from headrace.wire.header import RequestHeader

logger = logging.getLogger(__name__)

API_VERSIONS = 18
NOT_CONTROLLER = KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")

_PLAIN_RESPONSES = {55: DescribeQuorumResponse, 80: AddRaftVoterResponse, 81: RemoveRaftVoterResponse}
"""Responses in which one field tells an error of the whole request."""


def declared_apis() -> dict[str, Api]:
    """What each handler file declares, by the name of its module; imports them all."""
    found = {}
    for module in pkgutil.iter_modules(handlers.__path__):
        api = getattr(importlib.import_module(f"{handlers.__name__}.{module.name}"), "API", None)
        if isinstance(api, Api):
            found[module.name] = api
    return found


def load_apis() -> dict[int, Api]:
    """Every API a handler file declares, by key; the file itself is imported when it is first asked something."""
    return {entry.key: _api(entry) for entry in ENTRIES}


def _api(entry: Entry) -> Api:
    if entry.raw:
        # On the hot path nothing stands between a request and its handler.
        declared: Api = _module(entry.module).API
        return declared
    return Api(
        key=entry.key,
        low=entry.low,
        high=entry.high,
        handle=_Late(entry.module),
        advertised_low=entry.advertised_low,
        controller=entry.controller,
        refuse=partial(_first_import, entry.module, "refuse") if entry.refuses else None,
    )


def _first_import(module: str, function: str, *arguments: Any) -> Any:
    """What a function of a handler file's API answers."""
    return getattr(_module(module).API, function)(*arguments)


class _Late:
    """The function that answers an API, found when it is first asked something."""

    __slots__ = ("_handle", "_module")

    def __init__(self, module: str) -> None:
        self._module = module
        self._handle: Callable[[Call, Any], Any] | None = None

    def __call__(self, call: Call, message: Any) -> Any:
        """What the handler answers."""
        handle = self._handle
        if handle is None:
            handle = self._handle = _module(self._module).API.handle
        return handle(call, message)


@cache
def _module(name: str) -> Any:
    return importlib.import_module(f"{handlers.__name__}.{name}")


def frame(header: RequestHeader, message: Any) -> Buffers:
    """A response with its length and header before it."""
    api_key, version, correlation_id, _, _ = header
    return (frame_response(api_key, version, message, response_header(api_key, version, correlation_id)),)


async def answer_here(call: Call, api: Api, message: Any) -> Any:
    """What this node's own handler answers; NotController where that is not this node's to decide."""
    answer = api.handle(call, message)
    return await answer if inspect.isawaitable(answer) else answer


def refused(api: Api, message: Any, error: KafkaError) -> Any:
    """The response that tells an error which is about the whole request."""
    if api.refuse is not None:
        return api.refuse(message, error)
    return _PLAIN_RESPONSES[api.key](error_code=int(error.code), error_message=error.message or None)


async def _decided_here(call: Call, api: Api, message: Any) -> Buffers:
    """What a controller answers that was asked itself: whoever asked looks for the active one."""
    try:
        return frame(call.header, await answer_here(call, api, message))
    except NotController:
        return frame(call.header, refused(api, message, NOT_CONTROLLER))


class Dispatch:
    """The service behind a listener."""

    def __init__(
        self, broker: Broker, apis: Mapping[int, Api], faults: Faults, forwarding: Forwarding | None = None
    ) -> None:
        """With `forwarding`, what is the active controller's to answer is handed on to it where that is another."""
        self._broker = broker
        self._apis = apis
        self._faults = faults
        self._forwarding = forwarding
        self._times = broker.request_times
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, connection: Connection, request: memoryview) -> Buffers | PendingReply:
        """Answer one request frame. HOT.

        How long it takes is noted; of those on the fast path only how long they wait, as a look at the clock would be
        a part of what they cost.
        """
        try:
            header = parse_request_header(request)
            api = self._apis.get(header.api_key)
            if api is None or not api.low <= header.api_version <= api.high:
                return self._refuse_version(header)
            call = Call(self._broker, connection, header)
            began_ns = 0 if api.raw else perf_counter_ns()
            if self._faults.armed:
                return self._faults.handle(call, bytes(request), self._answer)
            reply = self._answer(call, api, request)
        except MalformedRequest as fault:
            raise CloseConnection(f"a malformed request: {fault}") from fault
        times = self._times[header.api_key]
        if reply.__class__ is PendingReply and reply.buffers is None:
            reply.measure(times, began_ns or perf_counter_ns())
        elif began_ns:
            times.note(perf_counter_ns() - began_ns)
        else:
            times.counts[0] += 1
        return reply

    def _answer(self, call: Call, api: Api, request: memoryview) -> Buffers | PendingReply:
        header = call.header
        try:
            if api.raw:
                reply: Buffers | PendingReply = api.handle(call, request, header.body)
                return reply
            if api.is_forwarded or api.refuse is not None:
                return self._decided(call, api, request)
            message = api.handle(call, decode_request(header.api_key, header.api_version, request, header.body))
            # Most answers are there at once, and to ask whether one can be awaited takes longer.
            if isinstance(message, Struct) or not inspect.isawaitable(message):
                return frame(header, message)
            return self._later(call, message)
        except (MalformedRequest, CloseConnection):
            raise
        except Exception as bug:
            raise self._our_fault(call, bug) from bug

    def _decided(self, call: Call, api: Api, request: memoryview) -> PendingReply:
        """Have the active controller answer, whichever node that is."""
        header = call.header
        message = decode_request(header.api_key, header.api_version, request, header.body)
        reply = PendingReply()
        # The bytes are copied: they are good only as long as this call.
        self._spawn(self._decide(call, api, message, bytes(request), reply))
        return reply

    async def _decide(self, call: Call, api: Api, message: Any, request: bytes, reply: PendingReply) -> None:
        try:
            if self._forwarding is not None:
                reply.send(await self._forwarding.answer(call, api, message, request))
            else:
                reply.send(await _decided_here(call, api, message))
        except asyncio.CancelledError:
            raise
        except Exception as bug:  # noqa: BLE001 - the last line of defence: logged, and the connection ends
            call.connection.close(str(self._our_fault(call, bug)))

    def _later(self, call: Call, message: Awaitable[Any]) -> PendingReply:
        reply = PendingReply()
        self._spawn(self._finish(call, message, reply))
        return reply

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
        return (frame_response(API_VERSIONS, 0, unsupported(self._apis), head),)

    async def drain(self) -> None:
        """Let the requests under way finish, for a moment, then end them."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=1.0)
            for task in late:
                task.cancel()
