"""The partitions this broker holds, found by topic name or topic id, and the log dirs they live in."""

from __future__ import annotations

import asyncio
import logging
import os.path
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.lane import Lane
from headrace.broker.partition import Partition, not_led_here
from headrace.broker.steady_clock import steady_ms
from headrace.broker.traffic import Traffics
from headrace.cores.controller.placement import RESERVED_DIRECTORIES_MAX
from headrace.cores.metadata import RESOURCE_TOPIC
from headrace.cores.producers import ProducerStates
from headrace.cores.replication.messages import ReplicationSettings
from headrace.cores.replication.read_replica import preferred_read_replica
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.settings.topic import resolve_log_config
from headrace.wire.primitives import uuid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from concurrent.futures import Executor

    from headrace.broker.flusher import Flusher
    from headrace.broker.held_partition import HeldPartition
    from headrace.cores.metadata import Metadata, PartitionState, Topic
    from headrace.cores.replication.leader import Leader
    from headrace.model.log_config import LogConfig
    from headrace.settings.broker import BrokerConfig
    from headrace.storage.log import Log
    from headrace.storage.log_dir import LogDir

logger = logging.getLogger(__name__)

LANE_QUEUE_MAX = 100
"""Batches of one partition that may wait for a thread's check."""

PREFERENCES_MAX = 10_000
"""For so many partitions that may come one day it is remembered in which log dir they shall be."""

RACK_AWARE = frozenset({"org.apache.kafka.common.replica.RackAwareReplicaSelector"})
"""What `replica.selector.class` says where consumers read from their own rack."""

Key = tuple[str | UUID, int]


def assigned_directory(state: PartitionState, node_id: int) -> UUID | None:
    """The log dir that the metadata has a broker's replica in, None if it was not told (KIP-858)."""
    if node_id not in state.replicas or len(state.directories) != len(state.replicas):
        return None
    return state.directories[state.replicas.index(node_id)]


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
        self._found: dict[str | UUID, dict[int, Partition]] = {}
        self.of = self._found.get
        """The partitions of a topic by their numbers: who wants several looks for the topic once."""
        self.traffics = Traffics()
        self.offline: Collection[str] = ()
        """Names of the logs that are here and cannot be opened."""
        self.on_offline: Callable[[LogDir], None] = lambda log_dir: None
        """Called when a log dir has failed."""
        self.on_all_offline: Callable[[], None] = lambda: None
        """Called when the last one has."""
        self._preferred: dict[tuple[str, int], str] = {}
        """In which log dirs partitions shall be made that are not here yet."""

    def __iter__(self) -> Iterator[Partition]:
        """Each partition once."""
        return (
            partition for topic, held in self._found.items() if isinstance(topic, UUID) for partition in held.values()
        )

    def find(self, key: Key) -> Partition | None:
        """A partition by its topic's name or id and its number, if it is here."""
        held = self._found.get(key[0])
        return None if held is None else held.get(key[1])

    def of_topic(self, topic: str) -> list[Partition]:
        """The partitions of one topic that are served, in order."""
        known = self._metadata.topics.get(topic)
        indexes = range(len(known.partitions)) if known is not None else ()
        held = self._found.get(topic, {})
        return [held[index] for index in indexes if index in held]

    def require(self, topic: str | UUID, index: int) -> Partition:
        """A partition, or the error a client gets for one that is not here."""
        partition = self.find((topic, index))
        if partition is None:
            raise self.missing(topic, index)
        return partition

    def require_led(self, topic: str | UUID, index: int) -> Partition:
        """A partition that this broker leads, or the error a client gets for one that it does not."""
        partition = self.require(topic, index)
        if not partition.is_led:
            raise not_led_here()
        return partition

    def missing(self, topic: str | UUID, index: int) -> KafkaError:
        """What a client hears of a partition that is not here: it may be elsewhere, or nowhere."""
        known = self._metadata.topics_by_id.get(topic) if isinstance(topic, UUID) else self._metadata.topics.get(topic)
        if known is not None and 0 <= index < len(known.partitions):
            if f"{known.name}-{index}" in self.offline:
                return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The log of this partition could not be opened.")
            return not_led_here()
        if isinstance(topic, UUID) and known is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

    def log_config(self, topic: str) -> LogConfig:
        """A topic's settings: its own over the broker's."""
        return resolve_log_config(self._metadata.configs(RESOURCE_TOPIC, topic), self._config())

    def producer_states(self) -> ProducerStates:
        """An empty memory of producers, with the configured limit."""
        return ProducerStates(producers_max=self._config()["producer.ids.max.per.partition"])

    @property
    def selects_by_rack(self) -> bool:
        """Whether consumers are sent to replicas in their own rack (KIP-392)."""
        return self._config()["replica.selector.class"] in RACK_AWARE

    def read_replica_for(self, leader: Leader, client_rack: str, offset: int) -> int:
        """The replica that a consumer of a rack should read from, -1 for the leader."""
        return preferred_read_replica(
            leader,
            leader_id=self._config().node_id,
            client_rack=client_rack,
            fetch_offset=offset,
            racks={number: broker.rack for number, broker in self._metadata.brokers.items() if not broker.fenced},
            now_ms=steady_ms(),
        )

    # --- coming and going

    def adopt(self, topic: Topic, state: PartitionState, log: Log, producers: ProducerStates) -> Partition:
        """Hold a partition whose log is open."""
        partition = Partition(
            topic=topic.name,
            topic_id=topic.topic_id,
            index=state.index,
            log=log,
            producers=producers,
            flusher=self._flusher,
            lane=Lane(self._checkers, self._clock, queue_max=LANE_QUEUE_MAX),
            on_fault=self.on_fault,
        )
        partition.traffic = self.traffics.of(topic.name)
        partition.restore_high_watermark(self.log_dir_of(partition).high_watermark(log.name))
        self._found.setdefault(topic.name, {})[state.index] = partition
        # The very object the wire hands out for this id: a lookup by an equal one would compare in Python.
        self._found.setdefault(uuid_of(topic.topic_id.bytes), {})[state.index] = partition
        return partition

    async def create(self, topic: Topic, indexes: Sequence[int]) -> None:
        """Make the logs of new partitions, in the dirs they belong to, and hold them."""
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
            log = self._place(topic, topic.partitions[index]).create_log(
                f"{topic.name}-{index}",
                topic_id=topic.topic_id,
                config=config,
                now_ms=self._clock(),
                producers=producers,
            )
            made.append((log, producers))

    def is_assigned_elsewhere(self, topic: Topic, index: int) -> bool:
        """Whether the metadata has our replica in a log dir that is not among those that are open."""
        assigned = assigned_directory(topic.partitions[index], self._config().node_id)
        if assigned is None or assigned.int <= RESERVED_DIRECTORIES_MAX:
            return False
        return all(log_dir.meta is None or log_dir.meta.directory_id != assigned for log_dir in self._log_dirs)

    def prefer(self, topic: str, index: int, path: str) -> None:
        """Have a partition that is not here yet made in a log dir, if the metadata leaves that to us (KIP-113)."""
        self._preferred[topic, index] = path
        if len(self._preferred) > PREFERENCES_MAX:
            del self._preferred[next(iter(self._preferred))]

    def _place(self, topic: Topic, state: PartitionState) -> LogDir:
        """The dir a partition was assigned to (KIP-858), else the one it should be in, else that of the fewest."""
        paths = set(map(os.path.abspath, self._config().log_dirs))
        online = [log_dir for log_dir in self._log_dirs if log_dir.online and log_dir.path in paths]
        if not online:
            raise StorageFault("no log dir is online")
        assigned = assigned_directory(state, self._config().node_id)
        for log_dir in online:
            if log_dir.meta is not None and log_dir.meta.directory_id == assigned:
                return log_dir
        preferred = self._preferred.pop((topic.name, state.index), None)
        for log_dir in online:
            if log_dir.path == preferred:
                return log_dir
        return min(online, key=lambda log_dir: len(log_dir.logs))

    def remove(self, topic_id: UUID) -> list[Partition]:
        """Stop serving a topic at once; its files are removed afterwards by `erase`."""
        gone = list(self._found.get(topic_id, {}).values())
        for partition in gone:
            self.let_go(partition, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic was deleted."))
            self.traffics.forget(partition.topic)
        return gone

    def let_go(self, partition: Partition, error: KafkaError) -> None:
        """Stop serving one partition at once; whoever waits is told why."""
        self._drop(partition.topic_id, partition.index)
        # A topic of the same name may have been made since.
        if self.find((partition.topic, partition.index)) is partition:
            self._drop(partition.topic, partition.index)
        partition.is_led = False
        partition.replicated = None
        partition.fail(error)

    def _drop(self, topic: str | UUID, index: int) -> None:
        held = self._found[topic]
        del held[index]
        if not held:
            del self._found[topic]

    def log_dir_of(self, partition: HeldPartition) -> LogDir:
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
        settings = self.replication_settings(config)
        for partition in partitions:
            partition.configure(config, settings)

    def replication_settings(self, config: LogConfig) -> ReplicationSettings:
        """What a topic's replicas are told."""
        return ReplicationSettings(
            min_insync_replicas=config.min_insync_replicas,
            replica_lag_time_max_ms=self._config()["replica.lag.time.max.ms"],
            flushes=config.flush_on_acks_all,
        )

    # --- the disk's failures

    def on_fault(self, partition: HeldPartition, fault: StorageFault | None) -> None:
        """Say that a partition's writes began to fail, and why, or that they succeed again."""
        if fault is None:
            logger.info("storage_recovered partition=%s-%d writes=accepted", partition.topic, partition.index)
            return
        logger.error(
            "storage_fault partition=%s-%d reason=%s writes=%s",
            partition.topic,
            partition.index,
            fault,
            "refused until restart" if partition.log.fault is not None else "refused until there is room",
        )
        if partition.log.fault is not None:
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault))
            self.take_offline(self.log_dir_of(partition), error)

    def take_offline(self, log_dir: LogDir, error: KafkaError) -> None:
        """After the disk failed nothing is acknowledged from that dir again."""
        if not log_dir.online:
            return
        log_dir.online = False
        logger.error("log_dir_offline path=%s reads=served writes=refused", log_dir.path)
        for partition in self:
            if log_dir.logs.get(partition.log.name) is partition.log:
                partition.fail(error)
        self.on_offline(log_dir)
        paths = set(map(os.path.abspath, self._config().log_dirs))
        if not any(other.online for other in self._log_dirs if other.path in paths):
            self.on_all_offline()
