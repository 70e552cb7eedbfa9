"""A stream as the answer to a GET: server-sent events, or lines of JSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from headrace.gateway.connection import Put, hang_up, put_of
from headrace.gateway.problem import Problem, problem_of
from headrace.gateway.route import Call, Route
from headrace.gateway.streams.commits import Commits
from headrace.gateway.streams.event import StreamedRecord
from headrace.gateway.streams.form import JSON, NDJSON, SSE, Form, Lines, ServerSentEvents
from headrace.gateway.streams.registry import now_ms
from headrace.gateway.streams.stream import Ending, Stream
from headrace.gateway.streams.wish import StreamQuery, read_wish

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from headrace.gateway.streams.registry import Streams

PATH: Final = "/stream/{topics}"
_PASSING: Final = {503, 504}
_HEADERS: Final = {"cache-control": "no-cache", "connection": "keep-alive", "x-accel-buffering": "no"}


async def _open(call: Call) -> Response:
    """A stream; a browser that comes again is not sent away for what passes.

    EventSource gives up for good on any answer but 200.
    """
    try:
        return await _look_up(call)
    except Exception as error:
        problem = problem_of(error)
        comes_again = "last-event-id" in call.request.headers and call.gives == SSE
        if problem is None or problem.status not in _PASSING or not comes_again:
            raise
        form = ServerSentEvents("record")
        said = form.hello(call.services.streams.retry_ms, "") + form.error(problem.code, problem.message)
        return Response(said, 200, {**_HEADERS, "connection": "close"}, _content_type(SSE))


async def _look_up(call: Call) -> Response:
    """Look everything up, while a refusal can still be an ordinary answer."""
    request, streams = call.request, call.services.streams
    wish = read_wish(
        call.path["topics"],
        call.query,
        request.headers.get("last-event-id"),
        topics_max=streams.topics_max,
        now_ms=now_ms(),
    )
    async with AsyncExitStack() as stack:
        stack.enter_context(streams.seat(request.client.host if request.client else ""))
        await stack.enter_async_context(streams.group(wish.group))
        start = await streams.begin(wish)
        if start.is_over and wish.position is not None:
            # EventSource connects again after every end; this is how it is told not to.
            return Response(status_code=204)
        if request.method == "HEAD":
            return Response(None, 200, _HEADERS, _content_type(call.gives))
        form: Form = ServerSentEvents(wish.envelope) if call.gives == SSE else Lines(wish.envelope)
        stream = Stream(streams, wish, start, form)
        return StreamAnswer(streams, stream, form, call.gives, stack.pop_all())


class StreamAnswer(Response):
    """Goes on until the stream ends or its client goes."""

    def __init__(
        self, streams: Streams, stream: Stream, form: Form, media_type: str, resources: AsyncExitStack
    ) -> None:
        super().__init__(None, 200, _HEADERS, _content_type(media_type))
        del self.headers["content-length"]
        self._streams = streams
        self._stream = stream
        self._form = form
        self._resources = resources
        self._dropped: Problem | None = None
        self._task: asyncio.Task[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; whatever the stream holds is given back at the end."""
        async with self._resources:
            self._task = asyncio.current_task()
            watch = asyncio.create_task(self._watch(receive))
            try:
                await self._serve(send, put_of(scope))
            except asyncio.CancelledError:
                if self._dropped is None or self._task is None:
                    raise
                self._task.uncancel()
                hang_up(scope, self._form.error(self._dropped.code, self._dropped.message))
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)

    async def _serve(self, send: Send, put: Put | None) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        commits = self._commits()
        ending = Ending("gone")

        async def write(pieces: Sequence[bytes]) -> None:
            await send(_body(b"".join(pieces)))
            if commits is not None:
                # An empty piece is sent when there is room again: what was before it has left.
                await send(_body(b""))

        try:
            with self._streams.watched(self._stream, self._drop):
                # What is committed must have left, and only the long way tells when it has.
                ending = await self._stream.run(write, put if commits is None else None)
                await self._end(send, ending)
        finally:
            if commits is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await commits.close(all_arrived=ending.reason in {"max", "until"})

    async def _end(self, send: Send, ending: Ending) -> None:
        if ending.reason == "gone":
            return
        last = (
            self._form.error(ending.problem.code, ending.problem.message)
            if ending.problem is not None
            else self._form.end(ending.reason, self._stream.cursor.text)
        )
        await send(_body(last))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _commits(self) -> Commits | None:
        stream, group = self._stream, self._stream.wish.group
        if group is None:
            return None
        commits = Commits(self._streams.admin, group, lambda problem: stream.end(Ending("problem", problem)))
        stream.on_sent = lambda: commits.sent(stream.cursor.positions)
        return commits

    def _drop(self, problem: Problem) -> None:
        self._dropped = problem
        if self._task is not None:
            self._task.cancel()

    async def _watch(self, receive: Receive) -> None:
        """A client that goes says so here, and nowhere else."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.end(Ending("gone"))


def _content_type(media_type: str) -> str:
    return f"{media_type}; charset=utf-8" if media_type == SSE else media_type


def _body(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


ROUTES = (
    Route(
        method="GET",
        path=PATH,
        handle=_open,
        tag="stream",
        summary="The records of one or more topics as they come, and from any point before",
        query=StreamQuery,
        answer=StreamedRecord,
        problems=(403, 409, 429),
        gives=(SSE, NDJSON, JSON),
    ),
)
