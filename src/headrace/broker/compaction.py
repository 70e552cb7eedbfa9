"""The driver of the log cleaner: picks on the loop, cleans and swaps in a thread of its own, one log at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from headrace.model.errors import StorageFault
from headrace.storage.cleaner import Cleaner, CleanerLimits, CleaningPlan, CleaningStopped

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.storage.log_dir import LogDir

logger = logging.getLogger(__name__)


class Compaction:
    """The cleaners of a broker, one per log dir, sharing a thread."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cleaner")
        self._cleaners: dict[str, Cleaner] = {}

    async def run_once(self) -> bool:
        """Clean the dirtiest log of each dir that has one due; tells whether there was any."""
        worked = False
        for log_dir in self._broker.store.log_dirs:
            if not log_dir.online:
                continue
            cleaner = await self._cleaner(log_dir)
            plan = cleaner.pick(log_dir.logs.values(), self._broker.clock())
            if plan is not None:
                await self._clean(cleaner, plan)
                worked = True
        return worked

    async def _cleaner(self, log_dir: LogDir) -> Cleaner:
        if log_dir.path not in self._cleaners:
            config = self._broker.config
            limits = CleanerLimits(
                dedupe_buffer_bytes=config["log.cleaner.dedupe.buffer.size"],
                dedupe_load_factor=config["log.cleaner.io.buffer.load.factor"],
                io_bytes_per_second=config["log.cleaner.io.max.bytes.per.second"],
            )
            self._cleaners[log_dir.path] = await asyncio.get_running_loop().run_in_executor(
                self._thread, lambda: Cleaner(log_dir.files, log_dir.path, sleep=time.sleep, limits=limits)
            )
        return self._cleaners[log_dir.path]

    async def _clean(self, cleaner: Cleaner, plan: CleaningPlan) -> None:
        loop = asyncio.get_running_loop()
        groups = cleaner.clean(plan)
        try:
            while (group := await loop.run_in_executor(self._thread, next, groups, None)) is not None:
                for gone in await loop.run_in_executor(self._thread, cleaner.apply, group):
                    self._broker.housekeeping.remove_later(gone, plan.config.file_delete_delay_ms)
        except CleaningStopped as reason:
            logger.info("cleaning_stopped log=%s reason=%s", plan.log.name, reason)
            return
        except StorageFault as fault:
            logger.error("cleaning_failed log=%s reason=%s", plan.log.name, fault)  # noqa: TRY400
            return
        done = cleaner.statistics
        logger.info(
            "cleaned log=%s keys=%d records_read=%d records_kept=%d bytes_read=%d bytes_written=%d",
            plan.log.name,
            done.keys,
            done.records_read,
            done.records_kept,
            done.bytes_read,
            done.bytes_written,
        )

    async def stop(self) -> None:
        """Have a cleaning under way give up, and wait for its thread."""
        for cleaner in self._cleaners.values():
            cleaner.stop()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
