"""`AsyncKafkaConsumer`, in aiokafka's shape: a `KafkaConsumer` whose waiting is done by a thread."""

from __future__ import annotations

import asyncio
import inspect
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self, TypeVar

from headrace.client.consumer import KafkaConsumer, Records
from headrace.client.fault import Closed
from headrace.client.listener import ConsumerRebalanceListener
from headrace.client.offset_lists import Offsets
from headrace.client.records import ConsumerRecord, OffsetAndTimestamp, TopicPartition

Result = TypeVar("Result")

# How long one wait in the thread lasts: a stop waits for it.
_SLICE_S = 0.1


class AsyncKafkaConsumer:
    """Reads records from topics in one event loop; `start` it, or use it as an asynchronous context manager."""

    def __init__(
        self,
        *topics: str,
        config: Mapping[str, Any] | None = None,
        config_file: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Options have kafka-python's names, in `config` and `config_file` Java's as well; docs/howto/clients.md."""
        self._topics = topics
        self._open = partial(KafkaConsumer, config=config, config_file=config_file, **options)
        self._consumer: KafkaConsumer | None = None
        self._filling: asyncio.Future[bool] | None = None
        self._is_rebalancing = False
        self._changes = 0
        self._is_settled = asyncio.Event()
        self._is_settled.set()
        self.loop: asyncio.AbstractEventLoop
        # Reading waits, and must not make a commit wait with it.
        self._reader = ThreadPoolExecutor(1, "headrace-reader")
        self._caller = ThreadPoolExecutor(1, "headrace-consumer")

    # --- life

    async def start(self) -> None:
        """Connect, and subscribe if topics were given; whatever prevents it is raised here."""
        assert self._consumer is None, "this consumer is started"
        self.loop = asyncio.get_running_loop()
        try:
            self._consumer = await self._do(self._open)
        except BaseException:
            self._shut_down()
            raise
        if self._topics:
            await self.subscribe(self._topics)

    async def stop(self) -> None:
        """Leave the group, committing what was read if that is on."""
        if self._consumer is None:
            return
        consumer, self._consumer = self._consumer, None
        if self._filling is not None:
            await asyncio.wait({self._filling})
        await self._do(consumer.close)
        self._shut_down()

    def _shut_down(self) -> None:
        self._reader.shutdown(wait=False)
        self._caller.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _do(self, work: Callable[[], Result]) -> Result:
        """Something that blocks, on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._caller, work)

    def _started(self) -> KafkaConsumer:
        if self._consumer is None:
            raise Closed("The consumer is not started, or was stopped", "Call start() first.")
        return self._consumer

    # --- reading

    async def getmany(self, timeout_ms: float = 0, max_records: int | None = None) -> Records:
        """The next records by partition, as soon as there are any; empty if none come in time."""
        consumer = self._started()
        if not await self._wait(timeout_ms / 1000):
            return {}
        return consumer.poll(0, max_records)

    poll = getmany

    async def peek(self, timeout_ms: float = 0) -> list[ConsumerRecord]:
        """The records that the next `getmany` gives, as soon as there are any; positions stay where they are."""
        consumer = self._started()
        return consumer.peek() if await self._wait(timeout_ms / 1000) else []

    async def getone(self) -> ConsumerRecord:
        """The next record."""
        consumer = self._started()
        while not await self._wait(math.inf):
            consumer = self._started()
        return next(consumer)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records one by one, until none came for `consumer_timeout_ms`."""
        while True:
            consumer = self._started()
            if not await self._wait(consumer.silence_s):
                return
            # What is there is handed on without a round through the loop for each record.
            while consumer.has_records:
                yield next(consumer)
                if self._consumer is None:
                    return

    async def _wait(self, timeout_s: float) -> bool:
        """Wait until there are records.

        The thread goes on when whoever waits is cancelled, and the next one to wait finds what it brought.
        """
        consumer = self._started()
        deadline = self.loop.time() + timeout_s
        while not consumer.has_records or self._filling is not None:
            if self._changes:
                await self._is_settled.wait()
            if self._filling is None:
                self._filling = self.loop.run_in_executor(self._reader, self._fill, consumer)
            filling = self._filling
            left = deadline - self.loop.time()
            await asyncio.wait({filling}, timeout=None if left == math.inf else max(left, 0))
            if filling.done() and self._filling is filling:
                self._filling = None
                filling.result()
            if self.loop.time() >= deadline and not (self._filling is None and consumer.has_records):
                return False
            if self._consumer is None:
                raise Closed("The consumer was stopped")
        return True

    @staticmethod
    def _fill(consumer: KafkaConsumer) -> bool:
        return consumer.has_records or consumer.wait(_SLICE_S)

    # --- which partitions

    async def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read topics, or all whose names match a pattern."""
        consumer = self._started()
        adapted = None if listener is None else _OnTheLoop(listener, self)
        await self._do(partial(consumer.subscribe, topics, pattern, adapted))

    async def assign(self, partitions: Iterable[Any]) -> None:
        """Read exactly these partitions, whatever a group may do."""
        await self._between(partial(self._started().assign, list(partitions)))

    async def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        await self._between(self._started().unsubscribe)

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return self._started().assignment()

    def subscription(self) -> set[str] | None:
        """The topics subscribed to by name."""
        return self._started().subscription()

    async def tell(
        self, method: Callable[[Collection[TopicPartition]], object], places: Collection[TopicPartition]
    ) -> None:
        """Call a listener's method, which may be a coroutine, while the reading thread waits."""
        self._is_rebalancing = True
        try:
            answer = method(places)
            if inspect.isawaitable(answer):
                awaited: Awaitable[object] = answer
                await awaited
        finally:
            self._is_rebalancing = False

    # --- where

    async def seek(self, partition: Any, offset: int) -> None:
        """Go on at an offset."""
        await self._between(partial(self._started().seek, partition, offset))

    async def seek_to_beginning(self, *partitions: Any) -> None:
        """Go to the first offset of these partitions, or of all."""
        await self._between(partial(self._started().seek_to_beginning, *partitions))

    async def seek_to_end(self, *partitions: Any) -> None:
        """Go behind the last offset of these partitions, or of all."""
        await self._between(partial(self._started().seek_to_end, *partitions))

    async def pause(self, *partitions: Any) -> None:
        """Read nothing from these partitions for now."""
        await self._between(partial(self._started().pause, *partitions))

    async def resume(self, *partitions: Any) -> None:
        """Read from these partitions again."""
        await self._do(partial(self._started().resume, *partitions))

    async def _between(self, work: Callable[[], Result]) -> Result:
        """What changes the records at hand waits until the thread has brought those it is after.

        While a listener is told of a rebalance, it is the thread that waits.
        """
        if self._is_rebalancing:
            return await self._do(work)
        self._changes += 1
        self._is_settled.clear()
        try:
            while (filling := self._filling) is not None:
                await asyncio.wait({filling})
                if self._filling is filling:
                    self._filling = None
                    filling.result()
            return await self._do(work)
        finally:
            self._changes -= 1
            if not self._changes:
                self._is_settled.set()

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return self._started().paused()

    async def position(self, partition: Any) -> int:
        """The offset that is read next."""
        return await self._do(partial(self._started().position, partition))

    # --- offsets of the group

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Commit offsets, or what the program has read."""
        await self._do(partial(self._started().commit, offsets))

    async def committed(self, partition: Any, metadata: bool = False) -> Any:
        """The committed offset, with its note if asked for; None if there is none."""
        return await self._do(partial(self._started().committed, partition, metadata))

    def group_metadata(self) -> Any:
        """What a producer needs to commit this group's offsets in a transaction."""
        return self._started().group_metadata()

    # --- what is there

    async def topics(self) -> set[str]:
        """The names of all topics."""
        return await self._do(self._started().topics)

    async def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The numbers of a topic's partitions; None if there is no such topic."""
        return await self._do(partial(self._started().partitions_for_topic, topic))

    async def beginning_offsets(self, partitions: Iterable[Any]) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return await self._do(partial(self._started().beginning_offsets, list(partitions)))

    async def end_offsets(self, partitions: Iterable[Any]) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition that this consumer may see."""
        return await self._do(partial(self._started().end_offsets, list(partitions)))

    async def offsets_for_times(self, timestamps: Mapping[Any, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time in milliseconds; None if there is none."""
        return await self._do(partial(self._started().offsets_for_times, dict(timestamps)))

    def highwater(self, partition: Any) -> int | None:
        """The end of a partition as the last fetch told it."""
        return self._started().highwater(partition)


class _OnTheLoop(ConsumerRebalanceListener):
    """A listener whose methods are called on the loop while the reading thread waits for them."""

    def __init__(self, listener: ConsumerRebalanceListener, consumer: AsyncKafkaConsumer) -> None:
        self._listener = listener
        self._consumer = consumer

    def _call(self, method: Callable[[Collection[TopicPartition]], object], places: Collection[TopicPartition]) -> None:
        asyncio.run_coroutine_threadsafe(self._consumer.tell(method, places), self._consumer.loop).result()

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """See ConsumerRebalanceListener."""
        self._call(self._listener.on_partitions_revoked, revoked)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """See ConsumerRebalanceListener."""
        self._call(self._listener.on_partitions_assigned, assigned)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """See ConsumerRebalanceListener."""
        self._call(self._listener.on_partitions_lost, lost)
