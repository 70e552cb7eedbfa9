"""A stream over a WebSocket: one message per record, and a client that may acknowledge, pause and resume."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.routing import WebSocketRoute

from headrace.client.records import TopicPartition
from headrace.gateway.connection import hang_up
from headrace.gateway.guard import refuse
from headrace.gateway.problem import Problem, bad_request, problem_of
from headrace.gateway.reading import read_query
from headrace.gateway.streams.commits import Commits
from headrace.gateway.streams.form import Messages
from headrace.gateway.streams.http_stream import PATH, ROUTES
from headrace.gateway.streams.position import BadPosition, parse_position
from headrace.gateway.streams.registry import now_ms
from headrace.gateway.streams.stream import Ending, Stream
from headrace.gateway.streams.wish import Wish, read_wish

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.websockets import WebSocket

    from headrace.gateway.services import Services
    from headrace.gateway.streams.registry import Streams

MESSAGE_MAX: Final = 64 * 1024
_GOOD, _POLICY, _LATER, _MISTAKE = 1000, 1008, 1012, 1011
_REASON_MAX: Final = 120
_LAST_ACKS_S: Final = 5.0


class ClientMessage(msgspec.Struct, forbid_unknown_fields=True):
    """What a client may say."""

    ack: str | dict[str, dict[str, int]] | None = None
    """The id of a message, or offsets by topic and partition: everything before them has arrived."""
    pause: bool = False
    resume: bool = False


def routes(services: Services) -> list[BaseRoute]:
    """The WebSocket's route, on the same path as the others."""

    async def endpoint(websocket: WebSocket) -> None:
        await _serve(websocket, services.streams)

    return [WebSocketRoute(PATH, endpoint)]


async def _serve(websocket: WebSocket, streams: Streams) -> None:
    async with AsyncExitStack() as stack:
        try:
            wish = _wish(websocket, streams)
            stack.enter_context(streams.seat(websocket.client.host if websocket.client else ""))
            await stack.enter_async_context(streams.group(wish.group))
            start = await streams.begin(wish)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            await refuse(problem, websocket.scope, websocket.receive, websocket.send)
            return
        form = Messages(wish.envelope)
        await websocket.accept()
        await _Conversation(websocket, streams, Stream(streams, wish, start, form), form).run()


def _wish(websocket: WebSocket, streams: Streams) -> Wish:
    wish = read_wish(
        websocket.path_params["topics"],
        read_query(ROUTES[0], websocket),
        websocket.headers.get("last-event-id"),
        topics_max=streams.topics_max,
        now_ms=now_ms(),
    )
    if wish.group is not None and (wish.envelope == "value" or wish.ids == "none"):
        raise bad_request("A group over a WebSocket needs ids to acknowledge: envelope=record, and ids not none.")
    return wish


class _Conversation:
    """One client and its stream."""

    def __init__(self, websocket: WebSocket, streams: Streams, stream: Stream, form: Messages) -> None:
        self._websocket = websocket
        self._streams = streams
        self._stream = stream
        self._form = form
        self._dropped: Problem | None = None
        self._task: asyncio.Task[Any] | None = None
        self._acknowledged: dict[TopicPartition, int] = {}
        self._heard = asyncio.Event()
        self._is_gone = False
        group = stream.wish.group
        self._commits = None if group is None else Commits(streams.admin, group, self._fail)

    async def run(self) -> None:
        """Talk until one of the two has enough."""
        self._task = asyncio.current_task()
        listening = asyncio.create_task(self._listen())
        try:
            with self._streams.watched(self._stream, self._drop):
                ending = await self._stream.run(self._write)
                await self._end(ending)
        except asyncio.CancelledError:
            if self._dropped is None or self._task is None:
                raise
            self._task.uncancel()
            hang_up(self._websocket.scope, self._dropped.message.encode())
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            if self._commits is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await self._commits.close(all_arrived=False)

    async def _write(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            if piece:
                await self._websocket.send({"type": "websocket.send", "text": piece.decode()})

    async def _end(self, ending: Ending) -> None:
        if ending.reason == "gone":
            return
        problem = ending.problem
        if problem is None:
            await self._write([self._form.end(ending.reason, self._stream.cursor.text)])
            await self._last_acknowledgements()
            await self._websocket.close(_GOOD, ending.reason)
            return
        await self._write([self._form.error(problem.code, problem.message)])
        code = {400: _POLICY, 503: _LATER}.get(problem.status, _MISTAKE)
        await self._websocket.close(code, problem.message[:_REASON_MAX])

    async def _last_acknowledgements(self) -> None:
        """A client acknowledges the last records when it has seen them, so the end waits for that a while."""
        reached = self._stream.cursor.positions
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ACKS_S):
                while self._commits is not None and not self._is_gone:
                    if all(self._acknowledged.get(place, 0) >= offset for place, offset in reached.items()):
                        return
                    self._heard.clear()
                    await self._heard.wait()

    # --- what the client says

    async def _listen(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                self._stream.end(Ending("gone"))
                self._is_gone = True
                self._heard.set()
                return
            try:
                self._hear(message.get("text") or message.get("bytes") or "")
            except Problem as problem:
                self._fail(problem)
                return

    def _hear(self, text: str | bytes) -> None:
        if len(text) > MESSAGE_MAX:
            raise bad_request(f"A message may have {MESSAGE_MAX} bytes.")
        try:
            said = msgspec.json.decode(text, type=ClientMessage)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            raise bad_request(
                f"A message is {{'ack': id}}, {{'pause': true}} or {{'resume': true}}: {fault}."
            ) from None
        if said.pause or said.resume:
            self._stream.paused = said.pause and not said.resume
            self._stream.stir()
        if said.ack is not None:
            self._acknowledge(said.ack)

    def _acknowledge(self, ack: str | dict[str, dict[str, int]]) -> None:
        if self._commits is None:
            raise bad_request("There is nothing to acknowledge to: this stream has no group.")
        reached = self._stream.cursor.positions
        offsets = _offsets(ack)
        for place, offset in offsets.items():
            if not 0 <= offset <= reached.get(place, -1):
                raise bad_request(f"{place.topic}-{place.partition} was not sent up to {offset}.")
        self._commits.acknowledged(offsets)
        self._acknowledged |= offsets
        self._heard.set()

    def _fail(self, problem: Problem) -> None:
        self._stream.end(Ending("problem", problem))

    def _drop(self, problem: Problem) -> None:
        self._dropped = problem
        if self._task is not None:
            self._task.cancel()


def _offsets(ack: str | dict[str, dict[str, int]]) -> dict[TopicPartition, int]:
    """The next offsets a client is ready for."""
    if isinstance(ack, str):
        try:
            return {place: at.offset for place, at in parse_position(ack).places.items() if at.timestamp is None}
        except BadPosition as fault:
            raise bad_request(f"This is no id of a message: {fault}.") from None
    try:
        return {
            TopicPartition(topic, int(number)): offset for topic, part in ack.items() for number, offset in part.items()
        }
    except ValueError:
        raise bad_request("Offsets to acknowledge are {'topic': {'0': 12}}.") from None
