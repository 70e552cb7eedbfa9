"""The moves of a broker's replicas between its log dirs: begun on request, gone on with after a start, given up."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from headrace.broker.future_replica import FutureReplica, MoveEnded
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.storage.directory_names import NAME_BYTES_MAX, future_name

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.broker.replica_directories import DirectoryReports
    from headrace.storage.log_dir import LogDir

logger = logging.getLogger(__name__)

RETRY_S = 5.0
"""Before a move that failed is tried again: there may be room by then."""


class ReplicaMoves:
    """The moves of one broker, `num.replica.alter.log.dirs.threads` at a time."""

    def __init__(self, broker: Broker, reports: DirectoryReports) -> None:
        self._broker = broker
        self._reports = reports
        self._moves: dict[Partition, tuple[FutureReplica, asyncio.Task[None]]] = {}
        self._changing = asyncio.Lock()
        """Held while a move is begun or given up, so that a partition has one at most."""
        self._is_stopped = False

    @cached_property
    def _executor(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="move")

    @cached_property
    def _turns(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self._threads)

    @property
    def _threads(self) -> int:
        set_to: int | None = self._broker.config["num.replica.alter.log.dirs.threads"]
        return max(1, set_to or len(self._broker.store.log_dirs))

    def go_on(self) -> None:
        """Go on with the moves that the last process did not end."""
        for log_dir in self._broker.store.log_dirs:
            for name in log_dir.futures:
                topic, _, index = name.rpartition("-")
                self._begin(self._broker.partitions.require(topic, int(index)), log_dir)

    async def stop(self) -> None:
        """Leave every move as it is, for the next process."""
        self._is_stopped = True
        tasks = [task for _, task in self._moves.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if "_executor" in vars(self):
            self._executor.shutdown()

    async def ended(self) -> None:
        """Wait until no move is under way."""
        while self._moves:
            await asyncio.wait([task for _, task in self._moves.values()])

    # --- on request

    async def move(self, topic: str, index: int, path: str) -> None:
        """Begin to move a replica to a log dir; KafkaError if that cannot be. One under way elsewhere is given up."""
        if len(future_name(f"{topic}-{index}")) > NAME_BYTES_MAX:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        log_dir = self._online(path)
        async with self._changing:
            partition = self._broker.partitions.find((topic, index))
            if partition is None:
                raise self._absent(topic, index, path)
            if partition.is_broken:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {topic}-{index} is offline.")
            under_way = self._moves.get(partition)
            if under_way is not None and under_way[0].log_dir is not log_dir:
                await self._give_up(partition)
            if partition in self._moves or self._broker.partitions.log_dir_of(partition) is log_dir:
                return
            await self._create(partition, log_dir)

    def _online(self, path: str) -> LogDir:
        """The log dir of a path, in words as the settings give it."""
        if path not in self._broker.log_dir_paths:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")
        for log_dir in self._broker.store.log_dirs:
            if log_dir.path == path and log_dir.online:
                return log_dir
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline.")

    def _absent(self, topic: str, index: int, path: str) -> KafkaError:
        """What to say of a partition that is not here, and may be made here one day: then in that dir."""
        if f"{topic}-{index}" in self._broker.store.offline:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {topic}-{index} is offline.")
        missing = self._broker.partitions.missing(topic, index)
        if missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return missing
        self._broker.partitions.prefer(topic, index, path)
        return KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"There is no replica of {topic}-{index} here.")

    async def _create(self, partition: Partition, log_dir: LogDir) -> None:
        store, partitions = self._broker.store, self._broker.partitions
        if store.failed_dirs or not all(one.online for one in store.log_dirs):
            # The dir that failed may hold a copy of this partition already.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "While a log dir is offline no replica is moved.")
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._executor,
                lambda: log_dir.create_future(
                    partition.log.name,
                    topic_id=partition.topic_id,
                    config=partition.config,
                    producers=partitions.producer_states(),
                    now_ms=self._broker.clock(),
                ),
            )
        except StorageFault as fault:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)) from fault
        logger.info("replica_move_begun log=%s to=%s", partition.log.name, log_dir.path)
        self._begin(partition, log_dir)

    # --- while they go on

    def _begin(self, partition: Partition, log_dir: LogDir) -> None:
        move = FutureReplica(
            self._broker,
            partition,
            log_dir,
            log_dir.futures[partition.log.name],
            reports=self._reports,
            executor=self._executor,
        )
        task = asyncio.get_running_loop().create_task(self._run(move), name=f"move-{partition.log.name}")
        self._moves[partition] = (move, task)

    async def _run(self, move: FutureReplica) -> None:
        try:
            async with self._turns:
                while True:
                    if await self._try(move):
                        return
                    await asyncio.sleep(RETRY_S)
        finally:
            self._moves.pop(move.partition, None)
            if not self._is_stopped:
                self._reports.forget(move.partition)

    async def _try(self, move: FutureReplica) -> bool:
        """Whether a move is over, well or not."""
        try:
            await move.run()
        except MoveEnded as reason:
            logger.error("replica_move_ended log=%s to=%s reason=%s", move.log.name, move.log_dir.path, reason)  # noqa: TRY400
        except (KafkaError, StorageFault) as fault:
            logger.error("replica_move_failed log=%s to=%s reason=%s", move.log.name, move.log_dir.path, fault)  # noqa: TRY400
            if move.has_switched:
                return True
            if move.log.fault is None:
                return False
            self._broker.partitions.take_offline(move.log_dir, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)))
        return True

    def on_offline(self, log_dir: LogDir) -> None:
        """A log dir failed: nothing moves there, or away from there, nor is that told to the controller any more."""
        for move, task in tuple(self._moves.values()):
            if not move.has_switched and (move.log_dir is log_dir or move.partition.is_broken):
                logger.error("replica_move_ended log=%s to=%s reason=disk failed", move.log.name, move.log_dir.path)
                task.cancel()
        log_dir.futures.clear()

    # --- giving up

    async def abandon(self, partition: Partition) -> None:
        """Give a partition's move up: the partition is not held here any longer."""
        async with self._changing:
            await self._give_up(partition)

    async def _give_up(self, partition: Partition) -> None:
        if partition in self._moves:
            move, task = self._moves[partition]
            if not move.has_switched:
                task.cancel()
            await asyncio.wait({task})
        name = partition.log.name
        for log_dir in self._broker.store.log_dirs:
            if name in log_dir.futures:
                deleted = await asyncio.get_running_loop().run_in_executor(self._executor, log_dir.discard_future, name)
                self._broker.housekeeping.remove_later(deleted, partition.config.file_delete_delay_ms)
