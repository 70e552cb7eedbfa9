"""The partitions this broker leads, found by topic name or topic id, and the log dirs they live in."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.lane import Lane
from headrace.broker.partition import Partition
from headrace.cores.metadata import RESOURCE_TOPIC
from headrace.cores.producers import ProducerStates
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.settings.topic import resolve_log_config
from headrace.wire.primitives import uuid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

    from headrace.broker.flusher import Flusher
    from headrace.cores.metadata import Metadata, PartitionState, Topic
    from headrace.model.log_config import LogConfig
    from headrace.settings.broker import BrokerConfig
    from headrace.storage.log import Log
    from headrace.storage.log_dir import LogDir

logger = logging.getLogger(__name__)

LANE_QUEUE_MAX = 100
"""Batches of one partition that may wait for a thread's check."""

Key = tuple[str | UUID, int]


class Partitions:
    """Every partition of this broker."""

    def __init__(
        self,
        *,
        metadata: Metadata,
        log_dirs: Sequence[LogDir],
        flusher: Flusher,
        executor: Executor,
        checkers: Executor,
        clock: Callable[[], int],
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._metadata = metadata
        self._log_dirs = log_dirs
        self._flusher = flusher
        self._executor = executor
        self._checkers = checkers
        self._clock = clock
        self._config = config
        self._found: dict[Key, Partition] = {}
        self.find = self._found.get

    def __iter__(self) -> Iterator[Partition]:
        """Each partition once."""
        return (partition for (topic, _), partition in self._found.items() if isinstance(topic, UUID))

    def of_topic(self, topic: str) -> list[Partition]:
        """The partitions of one topic that are served, in order."""
        known = self._metadata.topics.get(topic)
        indexes = range(len(known.partitions)) if known is not None else ()
        return [partition for index in indexes if (partition := self._found.get((topic, index))) is not None]

    def require(self, topic: str | UUID, index: int) -> Partition:
        """A partition, or the error a client gets for one that is not here."""
        partition = self._found.get((topic, index))
        if partition is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if isinstance(topic, UUID) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code, "This server does not host this topic-partition.")
        return partition

    def log_config(self, topic: str) -> LogConfig:
        """A topic's settings: its own over the broker's."""
        return resolve_log_config(self._metadata.configs(RESOURCE_TOPIC, topic), self._config())

    def producer_states(self) -> ProducerStates:
        """An empty memory of producers, with the configured limit."""
        return ProducerStates(producers_max=self._config()["producer.ids.max.per.partition"])

    # --- coming and going

    def adopt(self, topic: Topic, state: PartitionState, log: Log, producers: ProducerStates) -> Partition:
        """Lead a partition whose log is open."""
        partition = Partition(
            topic=topic.name,
            topic_id=topic.topic_id,
            index=state.index,
            log=log,
            producers=producers,
            leader_epoch=state.leader_epoch,
            flusher=self._flusher,
            lane=Lane(self._checkers, self._clock, queue_max=LANE_QUEUE_MAX),
            on_fault=self.on_fault,
        )
        log.assign_epoch(state.leader_epoch, log.log_end_offset)
        self._found[topic.name, state.index] = partition
        # The very object the wire hands out for this id: a lookup by an equal one would compare in Python.
        self._found[uuid_of(topic.topic_id.bytes), state.index] = partition
        return partition

    async def create(self, topic: Topic, indexes: Sequence[int]) -> None:
        """Make the logs of new partitions, in the dirs that hold the fewest, and lead them."""
        config = self.log_config(topic.name)
        made: list[tuple[Log, ProducerStates]] = []
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._make, topic, indexes, config, made)
        finally:
            self._adopt_all(topic, indexes, made)

    def create_now(self, topic: Topic, indexes: Sequence[int]) -> None:
        """The same, blocking, while the broker starts."""
        made: list[tuple[Log, ProducerStates]] = []
        self._make(topic, indexes, self.log_config(topic.name), made)
        self._adopt_all(topic, indexes, made)

    def _adopt_all(self, topic: Topic, indexes: Sequence[int], made: Sequence[tuple[Log, ProducerStates]]) -> None:
        for index, (log, producers) in zip(indexes, made, strict=False):
            self.adopt(topic, topic.partitions[index], log, producers)

    def _make(
        self, topic: Topic, indexes: Sequence[int], config: LogConfig, made: list[tuple[Log, ProducerStates]]
    ) -> None:
        """Make one log after the other; those in `made` are good even if the disk fails the next."""
        for index in indexes:
            producers = self.producer_states()
            log_dir = min((d for d in self._log_dirs if d.online), key=lambda d: len(d.logs), default=None)
            if log_dir is None:
                raise StorageFault("no log dir is online")
            log = log_dir.create_log(
                f"{topic.name}-{index}",
                topic_id=topic.topic_id,
                config=config,
                now_ms=self._clock(),
                producers=producers,
            )
            made.append((log, producers))

    def remove(self, topic_id: UUID) -> list[Partition]:
        """Stop serving a topic at once; its files are removed afterwards by `erase`."""
        # A look at all of them: one that could not be opened may be missing from the row.
        gone = [partition for (topic, _), partition in self._found.items() if topic == topic_id]
        for partition in gone:
            del self._found[topic_id, partition.index]
            if self._found.get((partition.topic, partition.index)) is partition:
                del self._found[partition.topic, partition.index]
            partition.fail(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic was deleted."))
        return gone

    def log_dir_of(self, partition: Partition) -> LogDir:
        """The dir that holds a partition's log."""
        return next(
            d for d in self._log_dirs if partition.log.name in d.logs and d.logs[partition.log.name] is partition.log
        )

    def reconfigure(self, topic: str) -> None:
        """Take over changed settings of a topic."""
        partitions = self.of_topic(topic)
        if not partitions:
            return
        config = self.log_config(topic)
        for partition in partitions:
            partition.log.config = config
            if not config.flush_on_acks_all:
                partition.advance(partition.log.log_end_offset)
            partition.wake_fetches()

    # --- the disk's failures

    def on_fault(self, partition: Partition, fault: StorageFault | None) -> None:
        """Say that a partition's writes began to fail, and why, or that they succeed again."""
        if fault is None:
            logger.info("storage_recovered partition=%s-%d writes=accepted", partition.topic, partition.index)
            return
        logger.error(
            "storage_fault partition=%s-%d reason=%s writes=%s",
            partition.topic,
            partition.index,
            fault,
            "refused until restart" if partition.fault is not None else "refused until there is space",
        )
        if partition.fault is not None:
            self._take_offline(self.log_dir_of(partition), partition.fault)

    def _take_offline(self, log_dir: LogDir, error: KafkaError) -> None:
        """After a failed flush nothing is acknowledged from that dir again."""
        if not log_dir.online:
            return
        log_dir.online = False
        logger.error("log_dir_offline path=%s reads=served writes=refused", log_dir.path)
        for partition in self:
            if partition.fault is None and partition.log in log_dir.logs.values():
                partition.fail(error)
