"""What a broker does when nobody asks: retention, checkpoints, forgetting idle producers, cleaning.

Each chore is one task with its own interval; a chore that fails says so and goes on with the next round.
Anything that touches the disk for long runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from headrace.broker.broker import Broker
    from headrace.storage.deletion import DeletedLog, DeletedSegment

logger = logging.getLogger(__name__)

_UNFINISHED_LOOK_MS = 1_000
"""How often logs that found no room are tried again."""


_QUIET_LOOK_MS = 2_000
"""How often logs are asked whether they have come to rest: other programs read a file that ends with its records."""


class Housekeeping:
    """The chores of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []
        self._removals: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin all chores."""
        config = self._broker.config
        chores: list[tuple[str, Callable[[], int], Callable[[], Awaitable[None]]]] = [
            ("retention", lambda: self._setting("log.retention.check.interval.ms"), self.retain),
            ("unfinished", lambda: _UNFINISHED_LOOK_MS, self.finish_metadata),
            ("quiet logs", lambda: _QUIET_LOOK_MS, self.rest),
            ("checkpoint", self._checkpoint_interval_ms, self.checkpoint),
            (
                "high watermarks",
                lambda: self._setting("replica.high.watermark.checkpoint.interval.ms"),
                self.note_high_watermarks,
            ),
            ("in-sync replicas", lambda: self._setting("replica.lag.time.max.ms") // 2, self._broker.replicas.tick),
            (
                "producers",
                lambda: self._setting("producer.id.expiration.check.interval.ms"),
                self.forget_producers,
            ),
        ]
        if config["log.cleaner.enable"]:
            chores.append(("cleaner", lambda: self._setting("log.cleaner.backoff.ms"), self.clean))
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._repeat(*chore), name=chore[0]) for chore in chores]

    def _checkpoint_interval_ms(self) -> int:
        """One chore writes both checkpoints, so it runs as often as either asks for."""
        return min(
            self._setting("log.flush.offset.checkpoint.interval.ms"),
            self._setting("log.flush.start.offset.checkpoint.interval.ms"),
        )

    def _setting(self, name: str) -> int:
        value: int = self._broker.config[name]
        return value

    async def stop(self) -> None:
        """End all chores; what runs in a thread is waited for."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for removal in tuple(self._removals):
            removal.cancel()
        await asyncio.gather(*self._removals, return_exceptions=True)

    async def _repeat(self, name: str, interval_ms: Callable[[], int], chore: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(interval_ms() / 1000)
            try:
                await chore()
            except HeadraceError as fault:
                logger.error("chore_failed name=%s reason=%s", name, fault)  # noqa: TRY400 - the reason says it all

    # --- the chores, each callable on its own by a test

    async def retain(self) -> None:
        """Roll segments that are due and delete what retention no longer keeps."""
        broker = self._broker
        for partition in tuple(broker.partitions):
            log = partition.log
            if partition.is_broken or partition.is_settling:
                continue
            now_ms = broker.clock()
            log.roll_if_due(now_ms)
            for gone in log.delete_old_segments(now_ms):
                self.remove_later(gone, log.config.file_delete_delay_ms)
            await asyncio.sleep(0)
        await self.checkpoint()

    def remove_later(self, gone: DeletedSegment | DeletedLog, delay_ms: int) -> None:
        """Remove files that were renamed out of the way, after `file.delete.delay.ms`."""
        task = asyncio.get_running_loop().create_task(self._remove(gone, delay_ms))
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def _remove(self, gone: DeletedSegment | DeletedLog, delay_ms: int) -> None:
        # Renamed files are swept at the next start if we stop before this.
        await asyncio.sleep(delay_ms / 1000)
        await asyncio.get_running_loop().run_in_executor(self._broker.readers, gone.remove)

    async def finish_metadata(self) -> None:
        """Make the logs of partitions that found no room when they were created."""
        await self._broker.controller.finish()

    async def checkpoint(self) -> None:
        """Write down how far each log is flushed and where it starts, so that recovery has less to read."""
        await self._write_down(self._broker.store.checkpoint)

    async def rest(self) -> None:
        """Let logs to which nothing is written give back the room that was made for more."""
        for partition in tuple(self._broker.partitions):
            # A log that is being truncated is a thread's.
            if not partition.is_settling and partition.log.rest():
                await asyncio.sleep(0)

    async def note_high_watermarks(self) -> None:
        """Write down how far everything is committed, so that a restart knows."""
        await self._write_down(self._broker.store.note_high_watermarks)

    async def _write_down(self, write: Callable[[], None]) -> None:
        """Write in a thread; a log dir that has failed is given up, though nobody may be writing records to it."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._broker.readers, write)
        finally:
            for log_dir in self._broker.store.log_dirs:
                if log_dir.fault is not None:
                    error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, log_dir.fault)
                    self._broker.partitions.take_offline(log_dir, error)

    async def forget_producers(self) -> None:
        """Forget producers that have been idle for `producer.id.expiration.ms`."""
        expiration_ms = self._setting("producer.id.expiration.ms")
        now_ms = self._broker.clock()
        for partition in self._broker.partitions:
            partition.producers.expire(now_ms, expiration_ms)

    async def clean(self) -> None:
        """Compact logs as long as one is due."""
        while await self._broker.compaction.run_once():
            pass
