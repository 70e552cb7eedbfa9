"""Consumer instances: consumers that live here between the requests of whoever made them.

An instance is used by one request at a time; another one waits for it, except the one that removes it. What nobody asks
for is removed when its timer rings, and all of them when the gateway stops: each leaves its group.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from headrace.client.async_consumer import AsyncKafkaConsumer
from headrace.client.fault import Closed
from headrace.gateway.formats import FORMATS, FormatName
from headrace.gateway.problem import ALREADY_SUBSCRIBED, INSTANCE_EXISTS, INSTANCE_NOT_FOUND, Problem
from headrace.gateway.records_v2 import Page
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from headrace.gateway.records_v2 import ShownRecord
    from headrace.settings.gateway import GatewayConfig

logger = logging.getLogger(__name__)

_POLL_INTERVAL_MIN_MS, _POLL_INTERVAL_MAX_MS = 300_000, 86_400_000
_MORE_MS = 10
"""How long an answer with records in it waits for those right behind them."""

SubscriptionKind = Literal["topics", "pattern", "partitions"]


class InstanceOptions(Struct, frozen=True, kw_only=True):
    """What a client chose for its instance."""

    name: str | None = None
    form: FormatName = "binary"
    reset: str = "latest"
    auto_commit: bool = True
    min_bytes: int = 1
    timeout_ms: int = 1000
    isolation: str = "read_committed"


class Instance:
    """One consumer and how it is read."""

    def __init__(self, options: InstanceOptions, consumer: AsyncKafkaConsumer) -> None:
        self.options = options
        self.format = FORMATS[options.form]
        self.consumer = consumer
        self.kind: SubscriptionKind | None = None
        self.lock = asyncio.Lock()
        self.users = 0
        self.timer: asyncio.TimerHandle | None = None

    def check_kind(self, kind: SubscriptionKind) -> None:
        """Problem(409) if it is subscribed in another way."""
        if self.kind is not None and self.kind != kind:
            raise Problem(
                409,
                ALREADY_SUBSCRIBED,
                f"This instance has a subscription to {self.kind} already. Delete the subscription first.",
            )

    async def read(self, *, timeout_ms: int, max_bytes: int) -> list[ShownRecord]:
        """The next records; Problem(406) if the first is not of the instance's format, and stays the next."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        page = Page(self.format, max_bytes)
        while not page.is_full:
            left_ms = max(deadline - loop.time(), 0) * 1000
            is_enough = page.records and page.size >= self.options.min_bytes
            at_hand = await self.consumer.peek(min(left_ms, _MORE_MS) if is_enough else left_ms)
            taken = page.add(at_hand)
            if not taken:
                break
            # What was looked at is given now, with nothing in between.
            await self.consumer.getmany(0, taken)
        return page.records


class Instances:
    """All instances, by group and name."""

    def __init__(self, config: GatewayConfig, client: Mapping[str, Any]) -> None:
        self._client = client
        self._most: int = config["consumer.instances.max"]
        self._idle_ms: int = config["consumer.instance.idle.ms"]
        self._leave_s: float = config["shutdown.timeout.ms"] / 1000
        self._buffer_kbytes: int = max(config["response.max.bytes"] // 1024, 1)
        self._found: dict[tuple[str, str], Instance] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._found)

    async def create(self, group: str, options: InstanceOptions) -> str:
        """Make an instance and give its name; Problem(409) if there is one of that name."""
        name = options.name or f"rest-consumer-{uuid.uuid4()}"
        if (group, name) in self._found:
            raise Problem(409, INSTANCE_EXISTS, f"Group '{group}' has a consumer instance '{name}' already.")
        if len(self._found) >= self._most:
            raise Problem(
                429, 429, f"There are {self._most} consumer instances (consumer.instances.max). Delete one first."
            )
        instance = Instance(options, AsyncKafkaConsumer(config=self._consumer_config(group, options)))
        # It has its place before it is connected, so that nobody else takes it meanwhile.
        self._found[group, name] = instance
        async with instance.lock:
            try:
                await instance.consumer.start()
            except BaseException:
                self._found.pop((group, name), None)
                raise
        if self._found.get((group, name)) is not instance:
            # It was removed before it had begun.
            await instance.consumer.stop()
            raise _not_found(group, name)
        self._rest(group, name, instance)
        return name

    def _consumer_config(self, group: str, options: InstanceOptions) -> dict[str, Any]:
        # The group shall not think an instance dead before we do.
        poll_ms = min(max(2 * self._idle_ms, _POLL_INTERVAL_MIN_MS), _POLL_INTERVAL_MAX_MS)
        return {
            **self._client,
            "group.id": group,
            "auto.offset.reset": options.reset,
            "enable.auto.commit": options.auto_commit,
            "isolation.level": options.isolation,
            "max.poll.interval.ms": poll_ms,
            "queued.max.messages.kbytes": self._buffer_kbytes,
        }

    @asynccontextmanager
    async def using(self, group: str, name: str) -> AsyncIterator[Instance]:
        """An instance for one request; Problem(404) if there is none, or if it is removed meanwhile."""
        instance = self._found.get((group, name))
        if instance is None:
            raise _not_found(group, name)
        self._wake(instance)
        try:
            async with instance.lock:
                if self._found.get((group, name)) is not instance:
                    raise _not_found(group, name)
                yield instance
        except Closed:
            raise _not_found(group, name) from None
        finally:
            instance.users -= 1
            self._rest(group, name, instance)

    def _wake(self, instance: Instance) -> None:
        instance.users += 1
        if instance.timer is not None:
            instance.timer.cancel()
            instance.timer = None

    def _rest(self, group: str, name: str, instance: Instance) -> None:
        if not instance.users and self._found.get((group, name)) is instance:
            loop = asyncio.get_running_loop()
            instance.timer = loop.call_later(self._idle_ms / 1000, self._expire, group, name)

    def _expire(self, group: str, name: str) -> None:
        logger.info("consumer_instance_idle group=%s name=%s", group, name)
        self._end(group, name)

    async def remove(self, group: str, name: str) -> None:
        """Leave the group, whoever may be waiting for records; Problem(404) if there is no such instance.

        Without its coordinator a consumer takes long to leave; nobody waits for that longer than for a stop.
        """
        if (group, name) not in self._found:
            raise _not_found(group, name)
        await asyncio.wait({self._end(group, name)}, timeout=self._leave_s)

    def _end(self, group: str, name: str) -> asyncio.Task[None]:
        instance = self._found.pop((group, name))
        if instance.timer is not None:
            instance.timer.cancel()
        task = asyncio.create_task(self._stop(group, name, instance))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    @staticmethod
    async def _stop(group: str, name: str, instance: Instance) -> None:
        try:
            await instance.consumer.stop()
        except HeadraceError as error:
            # It is gone from here in any case, and its group notices when it falls silent.
            logger.warning("consumer_instance_left_badly group=%s name=%s error=%s", group, name, error)

    async def close(self) -> None:
        """Leave all groups, as far as that is possible in the time for it."""
        for place in list(self._found):
            self._end(*place)
        if not self._ending:
            return
        _, late = await asyncio.wait(self._ending, timeout=self._leave_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def _not_found(group: str, name: str) -> Problem:
    return Problem(
        404,
        INSTANCE_NOT_FOUND,
        f"Group '{group[:300]}' has no consumer instance '{name[:300]}'. "
        "If it was idle for too long, make it again (consumer.instance.idle.ms).",
    )
