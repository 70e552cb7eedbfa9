"""The slow lane of a partition: batches that a thread must look into first, kept in their order.

Most batches are checked by their header and appended at once.
One that must be opened (a compacted topic's keys, a codec to change) is checked in a thread; those that arrive behind
it wait for it, because a producer's sequence numbers are in order only if its batches are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.model.errors import ErrorCode, KafkaError
from headrace.records.batch import BatchHeader, read_header
from headrace.records.produced import deep_check, needs_deep_check, refusal_anew

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from headrace.broker.partition import Appended, Partition

Done = Callable[["Appended | KafkaError"], None]


class Lane:
    """Batches of one partition waiting for a thread."""

    __slots__ = ("_clock", "_executor", "_queue", "_queue_max", "_task", "busy")

    def __init__(self, executor: Executor, clock: Callable[[], int], *, queue_max: int) -> None:
        self._executor = executor
        self._clock = clock
        self._queue: deque[tuple[bytearray, BatchHeader, Done]] = deque()
        self._queue_max = queue_max
        self._task: asyncio.Task[None] | None = None
        self.busy = False
        """Whether a batch is being checked, so that those behind it must wait."""

    def submit(self, partition: Partition, batch: memoryview, header: BatchHeader, done: Done) -> None:
        """Check and append `batch` in its turn, then call `done`; the batch is copied, its frame is only borrowed."""
        if len(self._queue) >= self._queue_max:
            # Of the codes that say "not stored, try again" the one that every client obeys.
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Too many batches wait to be checked; try again.")
        self._queue.append((bytearray(batch), header, done))
        if self._task is None:
            self.busy = True
            self._task = asyncio.get_running_loop().create_task(self._run(partition))

    async def _run(self, partition: Partition) -> None:
        try:
            while self._queue:
                batch, header, done = self._queue[0]
                try:
                    result: Appended | KafkaError = await self._append(partition, batch, header)
                except KafkaError as error:
                    result = refusal_anew(error)
                finally:
                    self._queue.popleft()
                done(result)
        finally:
            self._task = None
            self.busy = False

    async def _append(self, partition: Partition, batch: bytearray, header: BatchHeader) -> Appended:
        config = partition.config
        if needs_deep_check(header, config):
            loop = asyncio.get_running_loop()
            replacement = await loop.run_in_executor(
                self._executor, deep_check, memoryview(batch), header, config, self._clock()
            )
            if replacement is not None:
                batch, header = replacement, read_header(replacement)
        if partition.fault is not None:
            raise partition.fault.with_traceback(None)
        return partition.append(memoryview(batch), header, self._clock())
