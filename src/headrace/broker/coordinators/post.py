"""Questions to other brokers that travel together: what is asked while a request is under way goes with the next.

A coordinator asks about many transactions at a time, most of them of the same few brokers. One request for each would
cost more than what it carries.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headrace.net.link import LinkBroken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")

BATCH_MAX = 500
"""Questions in one request; a marker or a transaction with a few partitions takes about a hundred bytes."""
IN_FLIGHT_MAX = 4
"""Requests to one broker at a time, so that one that waits for a slow partition does not hold up the others."""
QUEUE_MAX = 10_000
"""Questions that wait for one broker; who asks more hears that it cannot be reached."""


class Post(Generic[ItemT, AnswerT]):
    """The questions of one kind to all other brokers."""

    def __init__(
        self,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        send: Callable[[int, Sequence[ItemT]], Awaitable[Sequence[AnswerT]]],
        key: Callable[[ItemT], tuple[Hashable, Hashable]],
    ) -> None:
        """`send` asks a broker and gives an answer for each item.

        `key` says what an item is about, and what of it: in one request the first goes with one of the second only.
        """
        self._spawn = spawn
        self._send = send
        self._key = key
        self._queues: dict[int, deque[tuple[ItemT, asyncio.Future[AnswerT]]]] = {}
        self._in_flight: dict[int, int] = {}

    async def ask(self, node_id: int, item: ItemT) -> AnswerT:
        """Ask a broker; LinkBroken if it does not answer."""
        queue = self._queues.setdefault(node_id, deque())
        if len(queue) >= QUEUE_MAX:
            raise LinkBroken(f"too many questions wait for broker {node_id}")
        answer: asyncio.Future[AnswerT] = asyncio.get_running_loop().create_future()
        queue.append((item, answer))
        if self._in_flight.get(node_id, 0) < IN_FLIGHT_MAX:
            self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
            self._spawn(self._deliver(node_id, queue))
        return await answer

    async def _deliver(self, node_id: int, queue: deque[tuple[ItemT, asyncio.Future[AnswerT]]]) -> None:
        try:
            while queue:
                await self._deliver_one(node_id, self._take(queue))
        finally:
            self._in_flight[node_id] -= 1

    def _take(self, queue: deque[tuple[ItemT, asyncio.Future[AnswerT]]]) -> list[tuple[ItemT, asyncio.Future[AnswerT]]]:
        """What goes with the next request; what must not go with it comes first in the one after."""
        taken: list[tuple[ItemT, asyncio.Future[AnswerT]]] = []
        left: list[tuple[ItemT, asyncio.Future[AnswerT]]] = []
        about: dict[Hashable, Hashable] = {}
        while queue and len(taken) < BATCH_MAX and len(left) < BATCH_MAX:
            one = queue.popleft()
            subject, aspect = self._key(one[0])
            (taken if about.setdefault(subject, aspect) == aspect else left).append(one)
        queue.extendleft(reversed(left))
        return taken

    async def _deliver_one(self, node_id: int, batch: Sequence[tuple[ItemT, asyncio.Future[AnswerT]]]) -> None:
        try:
            answers = await self._send(node_id, [item for item, _ in batch])
        except LinkBroken as broken:
            for _, future in batch:
                if not future.done():
                    future.set_exception(LinkBroken(str(broken)))
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
        finally:
            # Nobody must wait for an answer that cannot come any more.
            for _, future in batch:
                future.cancel()
