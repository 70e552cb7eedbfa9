"""A replica on its way from one of this broker's log dirs to another (KIP-113).

    copied      into `topic-0.<…>-future` of the other dir, batch by batch, while the partition is served as ever
    told        when it has caught up the controller hears where the replica will be (KIP-858)
    named       the copy gets the partition's own name: from here on there are two logs of that name
    switched    in one turn of the loop: what little is missing is copied, and the partition goes on in the copy
    retired     once the copy is flushed beyond the point of the switch, the old log is on its way out

Nothing is lost wherever that breaks off, because of two logs with one name the longer is the right one: the old one
until the switch, the copy from then on (see `Store`). A copy that was never named goes on where it ended. The log that
is copied may be truncated meanwhile, or start later; so before each step the two are compared as a follower and its
leader are, by epochs.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from headrace.broker.partitions import assigned_directory
from headrace.broker.steady_clock import steady_ms
from headrace.cores.replication.epochs import truncation_offset
from headrace.cores.replication.messages import EpochEnd
from headrace.model.errors import HeadraceError, StorageFault
from headrace.storage.readable_log import NotAtHand

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.broker.replica_directories import DirectoryReports
    from headrace.cores.metadata import Metadata
    from headrace.storage.log import Log
    from headrace.storage.log_dir import LogDir

logger = logging.getLogger(__name__)

COPY_BYTES = 1024 * 1024
"""How much is copied at a time."""
FLUSH_BYTES = 32 * 1024 * 1024
"""How much of a copy may be in the page cache: a crash costs no more than to copy that again."""
TAIL_BYTES = 64 * 1024
TAIL_READS = 4
"""How much may be missing at the switch, which is copied on the loop: in so many reads of so many bytes."""
THROTTLED_MS = 500
PAUSE_S = 0.1
"""Before a log that could not be read just now is tried again."""


class MoveEnded(HeadraceError):
    """The move cannot go on: a log dir failed, or the partition is gone."""


class FutureReplica:
    """One partition's move."""

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        log_dir: LogDir,
        log: Log,
        *,
        reports: DirectoryReports,
        executor: Executor,
    ) -> None:
        self._broker = broker
        self._reports = reports
        self._executor = executor
        self.partition = partition
        self.log_dir = log_dir
        """Where it goes."""
        self.log = log
        self.has_switched = False
        """Whether the partition lives in the copy already, so that the move can only be finished."""

    async def run(self) -> None:
        """Move the replica; MoveEnded if that cannot be. After a StorageFault or KafkaError it can be called again."""
        await self._catch_up()
        await self._tell()
        await self._catch_up()
        await self._name()
        while (source := self._switch()) is None:
            await self._catch_up()
        await self._retire(*source)

    async def _in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Have a thread do something; who cancels us waits for it, as two must not work on one log."""
        doing = asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait({doing})
            raise

    # --- copying

    async def _catch_up(self) -> None:
        """Copy until nothing is missing but what came during the last step, and flush that."""
        unflushed = 0
        while True:
            target = self.partition.log.log_end_offset
            unflushed += await self._step()
            is_level = self.log.log_end_offset >= target
            if is_level or unflushed >= FLUSH_BYTES:
                await self._in_thread(self._flush)
                unflushed = 0
            if is_level:
                return

    async def _step(self) -> int:
        """Copy some batches, as fast as the quota allows; how many bytes."""
        await self._wait_for_quota()
        await self._agree()
        source = self.partition.log
        if self.log.log_end_offset >= source.log_end_offset:
            return 0
        records = await self._read(source)
        if records is None:
            await asyncio.sleep(PAUSE_S)
            return 0
        await self._in_thread(self.log.append_follower, memoryview(records), self._broker.clock())
        self._broker.throttles.moves.record(len(records), steady_ms())
        return len(records)

    async def _wait_for_quota(self) -> None:
        while True:
            wait_ms = self._broker.throttles.moves.wait_ms(steady_ms())
            if not wait_ms:
                return
            # Not for all that time at once: the throttle may be lifted.
            await asyncio.sleep(min(wait_ms, THROTTLED_MS) / 1000)

    async def _read(self, source: Log) -> bytes | None:
        """The next batches of the log that is copied; None if it was truncated under the read, or has none at hand."""
        generation, offset = source.generation, self.log.log_end_offset
        limit = source.log_end_offset
        try:
            span = source.read(offset, max_bytes=COPY_BYTES, limit_offset=limit, wait=False)
        except NotAtHand:
            await self._in_thread(lambda: source.prefetch(offset, max_bytes=COPY_BYTES, limit_offset=limit))
            if source.generation != generation or self.partition.is_settling:
                return None
            span = source.read(offset, max_bytes=COPY_BYTES, limit_offset=limit)
        if not span.size:
            return None
        records: bytes = await self._in_thread(span.load)
        return None if source.generation != generation or self.partition.is_settling else records

    def _flush(self) -> None:
        job = self.log.flush_job()
        if job is not None:
            job.run()
            self.log.flushed(job)

    # --- staying in step

    async def _agree(self) -> None:
        """Have the copy be a part of the log that is copied; MoveEnded if there is no use in it any more."""
        while True:
            await self.partition.settled()
            self._check()
            cut = self._disagreement()
            if cut is None:
                self._follow_marks()
                return
            await self._in_thread(*cut)

    def _check(self) -> None:
        if self.partition.is_broken or self.partition.log.fault is not None:
            raise MoveEnded("the replica that is copied failed, or is gone")
        if not self.log_dir.online:
            raise MoveEnded(f"{self.log_dir.path} failed")

    def _disagreement(self) -> tuple[Callable[[Log, int], None], Log, int] | None:
        """What must be done to a copy that holds other records than the log, or none that follow its start."""
        source, log = self.partition.log, self.log
        start_over = (self.log_dir.start_over, log, source.log_start_offset)
        end_offset = log.log_end_offset
        if not log.log_start_offset <= source.log_start_offset <= end_offset:
            return start_over
        epoch = log.epoch_at(end_offset - 1) if end_offset > log.log_start_offset else -1
        if epoch < 0:
            return None if end_offset <= source.log_end_offset else start_over
        known, known_end = source.end_offset_for_epoch(epoch)
        if known < 0:
            return start_over
        if known < epoch or known_end < end_offset:
            return self.log_dir.truncate, log, truncation_offset(log, EpochEnd(known, known_end))
        return None

    def _follow_marks(self) -> None:
        source, log = self.partition.log, self.log
        if log.config is not source.config:
            log.configure(source.config)
        log.high_watermark = max(log.log_start_offset, min(source.high_watermark, log.log_end_offset))
        start_offset = min(source.log_start_offset, log.high_watermark)
        if start_offset > log.log_start_offset:
            log.advance_start_offset(start_offset)

    # --- telling

    async def _tell(self) -> None:
        """Have the controller know where the replica will be, before it is there."""
        directory = None if self.log_dir.meta is None else self.log_dir.meta.directory_id
        if directory is None:
            return
        self._reports.promise(self.partition, directory)
        await self._broker.until(self._is_told)

    def _is_told(self, metadata: Metadata) -> bool:
        """Whether the metadata has the replica where it goes; where it has no word of dirs there is nothing to tell."""
        state = metadata.partition(self.partition.topic_id, self.partition.index)
        if state is None:
            return True
        assert self.log_dir.meta is not None
        return assigned_directory(state, self._broker.node_id) in {None, self.log_dir.meta.directory_id}

    # --- the end

    async def _name(self) -> None:
        """Give the copy the partition's name."""
        name = self.log.name
        if self.log.path == f"{self.log_dir.path}/{name}":
            return
        producers = self._broker.partitions.producer_states()
        try:
            self.log = await self._in_thread(
                lambda: self.log_dir.name_future(name, producers=producers, now_ms=self._broker.clock())
            )
        except StorageFault as fault:
            # It is closed, and will be opened by the next process.
            raise MoveEnded(str(fault)) from fault

    def _switch(self) -> tuple[LogDir, Log] | None:
        """Go on in the copy, if the little that is missing is at hand; where the old log was and what it is.

        All in one turn of the loop: nobody can append to the old log meanwhile, nor truncate it.
        """
        partition, log = self.partition, self.log
        self._check()
        if partition.is_settling or self._disagreement() is not None or not self._copy_tail():
            return None
        source, old_dir = partition.log, self._broker.partitions.log_dir_of(partition)
        log.configure(source.config)
        log.succeed(source, partition.producers)
        self.log_dir.adopt_future(log.name)
        partition.change_log(log)
        self.has_switched = True
        return old_dir, source

    def _copy_tail(self) -> bool:
        source, log = self.partition.log, self.log
        for _ in range(TAIL_READS):
            if log.log_end_offset >= source.log_end_offset:
                break
            try:
                span = source.read(
                    log.log_end_offset, max_bytes=TAIL_BYTES, limit_offset=source.log_end_offset, wait=False
                )
            except NotAtHand:
                return False
            if not span.size or not span.resident():
                return False
            log.append_follower(span.view(), self._broker.clock())
        return log.log_end_offset == source.log_end_offset

    async def _retire(self, old_dir: LogDir, source: Log) -> None:
        """Take the old log out, when the new one needs it no more."""
        await self.partition.flushed()
        if self.log.fault is not None:
            raise MoveEnded(self.log.fault)
        deleted = await self._in_thread(self._take_out, old_dir, source)
        self._broker.housekeeping.remove_later(deleted, self.log.config.file_delete_delay_ms)
        logger.info("replica_moved log=%s from=%s to=%s", source.name, old_dir.path, self.log_dir.path)

    def _take_out(self, old_dir: LogDir, source: Log) -> Any:
        # Before the old log is gone, the new dir's checkpoints must know what they knew in the old one.
        self.log_dir.write_checkpoints()
        self.log_dir.write_high_watermarks()
        return old_dir.delete_log(source.name)
