"""`AsyncKafkaProducer`, in aiokafka's shape."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from headrace.client.client_options import gather
from headrace.client.engine import EngineError, EngineException, Troubles, fault_of, raise_fault, reach
from headrace.client.fault import Closed, TimedOut
from headrace.client.option_table import PRODUCER
from headrace.client.producer import (
    ANY_PARTITION,
    CLOSE_S,
    Headers,
    choose_partitioner,
    finish,
    meet,
    new_producer,
    refusal,
    topic_partitions,
)
from headrace.client.records import RecordMetadata, metadata_of
from headrace.client.serializers import serializer
from headrace.client.transaction import Transactions

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer

    from headrace.client.offset_lists import Offsets

Stored = asyncio.Future[RecordMetadata]
Result = TypeVar("Result")

_POLL_S = 0.05
_ROOM_S = 0.005
_PARTITIONS_KNOWN_S = 60.0


class AsyncKafkaProducer:
    """Sends records to topics from one event loop; `start` it, or use it as an asynchronous context manager."""

    def __init__(
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Options have kafka-python's names, in `config` and `config_file` Java's as well; docs/howto/clients.md."""
        self._options = gather(PRODUCER, options, config=config, config_file=config_file)
        own = self._options.own
        self._key_to = serializer(self._options.called("key_serializer"), own["key_serializer"])
        self._value_to = serializer(self._options.called("value_serializer"), own["value_serializer"])
        self._choose = choose_partitioner(self._options)
        self._max_block_s = self._options.seconds("max_block_ms")
        self._partitions: dict[str, tuple[float, list[int]]] = {}
        self._met: set[str] = set()
        self._meetings: dict[str, asyncio.Future[None]] = {}
        self._producer: Producer | None = None
        self._transactions: Transactions
        self._reports: _Reports
        self._worker = ThreadPoolExecutor(1, "headrace-producer")

    # --- life

    async def start(self) -> None:
        """Connect; whatever prevents it is raised here."""
        assert self._producer is None, "this producer is started"
        troubles = Troubles(self._options.explain)
        producer = new_producer(self._options, troubles)
        self._reports = _Reports(producer, asyncio.get_running_loop())
        self._transactions = Transactions(producer, self._options)
        self._producer = producer
        try:
            await self._do(
                partial(
                    reach,
                    producer,
                    lambda: None,
                    troubles,
                    where=self._options.where,
                    timeout_s=self._options.seconds("bootstrap_timeout_ms"),
                )
            )
        except BaseException:
            await self._end()
            raise

    async def stop(self) -> None:
        """Send what is left, and end."""
        if self._producer is None:
            return
        await self._do(partial(finish, self._producer, CLOSE_S))
        await self._end()

    async def _end(self) -> None:
        await self._do(self._reports.end)
        self._reports.deliver()
        self._producer = None
        self._worker.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _do(self, work: Callable[[], Result]) -> Result:
        """Something that blocks, on the producer's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _started(self) -> Producer:
        if self._producer is None:
            raise Closed("The producer is not started, or was stopped", "Call start() first.")
        return self._producer

    # --- sending

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Stored:
        """Hand a record over; where it was stored comes in the future. Waits only while there is no room for it."""
        producer = self._started()
        if topic not in self._met:
            await self._meet(producer, topic)
        raw_key = key if self._key_to is None else self._key_to(topic, key)
        raw_value = value if self._value_to is None else self._value_to(topic, value)
        if partition is None and self._choose is not None:
            partition = await self._choose_partition(topic, raw_key)
        rest: dict[str, Any] = {} if timestamp_ms is None else {"timestamp": timestamp_ms}
        if headers:
            rest["headers"] = list(headers)
        number = ANY_PARTITION if partition is None else partition
        loop = asyncio.get_running_loop()
        stored: Stored = loop.create_future()
        report = partial(self._reports.take, stored)
        deadline = loop.time() + self._max_block_s
        while True:
            try:
                producer.produce(topic, raw_value, raw_key, number, report, **rest)
                return stored
            except BufferError:
                if loop.time() > deadline:
                    raise TimedOut(f"There was no room for a record within {self._max_block_s:g} s") from None
                await asyncio.sleep(_ROOM_S)
            except EngineException as error:
                stored.set_exception(refusal(error, self._options))
                return stored

    async def _meet(self, producer: Producer, topic: str) -> None:
        """See `meet`; who sends meanwhile waits for the same answer, and goes on in the order they came."""
        meeting = self._meetings.get(topic)
        if meeting is None:
            work = self._do(partial(meet, producer, topic, self._met, self._max_block_s))
            meeting = self._meetings[topic] = asyncio.ensure_future(work)
            meeting.add_done_callback(lambda _: self._meetings.pop(topic, None))
        await asyncio.shield(meeting)

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata:
        """Send a record and wait until it is stored."""
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    async def _choose_partition(self, topic: str, key: bytes | None) -> int:
        assert self._choose is not None
        now = asyncio.get_running_loop().time()
        known_at, partitions = self._partitions.get(topic, (now - _PARTITIONS_KNOWN_S, []))
        if now - known_at >= _PARTITIONS_KNOWN_S:
            partitions = sorted(await self.partitions_for(topic))
            self._partitions[topic] = (now, partitions)
        return self._choose(key, partitions, partitions)

    async def flush(self) -> None:
        """Wait until everything sent so far is stored or has failed."""
        try:
            await self._do(self._started().flush)
        except EngineException as error:
            raise_fault(error)
        finally:
            self._reports.deliver()

    async def partitions_for(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions."""
        return await self._do(partial(topic_partitions, self._started(), topic, self._options))

    # --- transactions

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction: committed at the end of the block, aborted if the block raises."""
        await self.begin_transaction()
        try:
            yield self
        except BaseException:
            await self._do(self._transactions.abandon)
            raise
        await self.commit_transaction()

    async def begin_transaction(self) -> None:
        """Begin a transaction; the first one takes the transactional id over."""
        self._started()
        await self._do(self._transactions.begin)

    async def commit_transaction(self) -> None:
        """Make everything in the transaction visible."""
        await self._do(self._transactions.commit)

    async def abort_transaction(self) -> None:
        """Let nothing in the transaction become visible."""
        await self._do(self._transactions.abort)

    async def send_offsets_to_transaction(self, offsets: Offsets, group: Any) -> None:
        """Commit what a group has read with the transaction; `group` is the consumer, its metadata, or a name."""
        await self._do(partial(self._transactions.send_offsets, offsets, group))


class _Reports:
    """Brings delivery reports from the engine to the loop: one wake-up for all that came at once."""

    def __init__(self, producer: Producer, loop: asyncio.AbstractEventLoop) -> None:
        self._producer = producer
        self._loop = loop
        # A deque, because whoever flushes appends while the loop takes away.
        self._came: deque[tuple[Stored, EngineError | None, Message]] = deque()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="headrace-deliveries", daemon=True)
        self._thread.start()

    def take(self, stored: Stored, error: EngineError | None, message: Message) -> None:
        """What the engine calls, on whichever thread polls or flushes."""
        self._came.append((stored, error, message))

    def _run(self) -> None:
        while not self._is_ending:
            try:
                self._producer.poll(_POLL_S)
            except EngineException:
                # A producer that is fenced, say: whoever sends, flushes or commits is told.
                time.sleep(_ROOM_S)
            if self._came:
                try:
                    self._loop.call_soon_threadsafe(self.deliver)
                except RuntimeError:
                    # The program's loop is closed; nobody waits there any more.
                    return

    def deliver(self) -> None:
        """Tell the futures, on the loop."""
        while self._came:
            stored, error, message = self._came.popleft()
            if stored.done():
                continue
            if error is None:
                stored.set_result(metadata_of(message))
            else:
                stored.set_exception(fault_of(error))

    def end(self) -> None:
        """Stop polling."""
        self._is_ending = True
        self._thread.join()
