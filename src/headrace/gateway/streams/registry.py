"""All streams of one gateway: how many there may be, what they share, and the clock that looks after them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

from headrace.client.cluster import Cluster
from headrace.client.fetching import Fetcher
from headrace.gateway.problem import Problem
from headrace.gateway.streams.hub import Hub
from headrace.gateway.streams.start import GROUP_BUSY, Start, begin, missing_topics
from headrace.gateway.streams.stream import Ending, Stream
from headrace.gateway.streams.wish import Wish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from headrace.client.async_admin import AsyncKafkaAdmin
    from headrace.settings.gateway import GatewayConfig

logger = logging.getLogger(__name__)

TOO_MANY: Final = 429
LEAVING: Final = 50304
STALLED: Final = 40801
_READS_MAX: Final = 16
_TICK_MAX_S: Final = 0.25
_GROUP_WAIT_S: Final = 2.0
_GROUP_PAUSE_S: Final = 0.05


class Streams:
    """The streams that are open, and their limits."""

    def __init__(self, config: GatewayConfig, admin: AsyncKafkaAdmin, cluster: Cluster, fetcher: Fetcher) -> None:
        self.admin = admin
        self.fetcher = fetcher
        self._cluster = cluster
        self._waiting = Cluster(cluster.options)
        self.hub = Hub(cluster, self._waiting, config)
        self.reads = asyncio.Semaphore(_READS_MAX)
        """How many streams may read from the log at a time."""
        self.buffer_bytes = config["stream.buffer.bytes"]
        self.retry_ms = config["stream.retry.ms"]
        self.topics_max = config["stream.topics.max"]
        self.delivered = 0
        """Records that were given to clients."""
        self.dropped = 0
        """How many clients were dropped because they did not read."""
        self._most = config["streams.max"]
        self._most_per_address = config["streams.max.per.address"]
        self._heartbeat_s = config["stream.heartbeat.ms"] / 1000
        self._stall_s = config["stream.stall.ms"] / 1000
        self._addresses: Counter[str] = Counter()
        self._groups: set[str] = set()
        self._open: dict[Stream, Callable[[Problem], None]] = {}
        self._clock: asyncio.Task[None] | None = None
        self._leaving = False

    def __len__(self) -> int:
        return self._addresses.total()

    async def close(self) -> None:
        """Tell every client to come again elsewhere, and read no more."""
        self._leaving = True
        for stream in list(self._open):
            stream.end(Ending("problem", Problem(503, LEAVING, "The gateway stops; connect again.")))
        if self._clock is not None:
            self._clock.cancel()
            await asyncio.gather(self._clock, return_exceptions=True)
            self._clock = None
        await self.hub.close()
        await self._waiting.close()

    # --- opening one

    @contextmanager
    def seat(self, address: str) -> Iterator[None]:
        """Room for one more; Problem(429) if there is none."""
        if self._leaving:
            raise Problem(503, LEAVING, "The gateway stops; connect again.", headers={"retry-after": "1"})
        for number, most, name in (
            (len(self), self._most, "streams.max"),
            (self._addresses[address], self._most_per_address, "streams.max.per.address"),
        ):
            if number >= most:
                where = "" if name == "streams.max" else f" from {address}"
                sentence = f"There are {number} streams{where}, and there may be {most} ({name})."
                raise Problem(TOO_MANY, TOO_MANY, sentence, headers={"retry-after": "5"})
        self._addresses[address] += 1
        try:
            yield
        finally:
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]

    @asynccontextmanager
    async def group(self, name: str | None) -> AsyncIterator[None]:
        """A group for one stream alone; one that just ended is waited for, two at a time are refused."""
        if name is None:
            yield
            return
        deadline = time.monotonic() + _GROUP_WAIT_S
        while name in self._groups:
            if time.monotonic() > deadline:
                raise Problem(409, GROUP_BUSY, f"Group '{name}' has a stream here; one at a time commits to a group.")
            await asyncio.sleep(_GROUP_PAUSE_S)
        self._groups.add(name)
        try:
            yield
        finally:
            self._groups.discard(name)

    async def begin(self, wish: Wish) -> Start:
        """Where the stream begins; Problem if it cannot."""
        topics = await self.hub.look_up(wish.topics)
        problem = await missing_topics(self.admin, wish, topics)
        if problem is not None:
            raise problem
        return await begin(self.admin, wish, topics, now_ms())

    @contextmanager
    def watched(self, stream: Stream, drop: Callable[[Problem], None]) -> Iterator[None]:
        """Keep an eye on a stream; `drop` is called if its client takes nothing for too long."""
        self._open[stream] = drop
        if self._clock is None:
            self._clock = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            self._open.pop(stream, None)

    # --- time

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = min(_TICK_MAX_S, self._heartbeat_s / 2, self._stall_s / 4)
        while True:
            await asyncio.sleep(pause_s)
            now_s, milliseconds = loop.time(), now_ms()
            for stream, drop in list(self._open.items()):
                if now_s - stream.sending_since > self._stall_s:
                    self._drop(stream, drop)
                else:
                    stream.tick(now_s, milliseconds, self._heartbeat_s)

    def _drop(self, stream: Stream, drop: Callable[[Problem], None]) -> None:
        self.dropped += 1
        self._open.pop(stream, None)
        stall_ms = round(self._stall_s * 1000)
        logger.warning("stream_dropped topics=%s reason=stalled ms=%d", ",".join(stream.wish.topics), stall_ms)
        drop(Problem(408, STALLED, f"The client took nothing for {stall_ms} ms (stream.stall.ms)."))


def now_ms() -> int:
    """The time as timestamps count it."""
    return time.time_ns() // 1_000_000
