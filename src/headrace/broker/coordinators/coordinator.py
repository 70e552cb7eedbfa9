"""One kind of coordinator on this broker: its topic, and a shard for each partition of it that is led here.

Which partition a key belongs to is Kafka's arithmetic, so that every broker and tool agrees; whoever leads that
partition is the key's coordinator. The topic comes to be when somebody first asks for a coordinator.

Leading and resigning follow the metadata and never wait: what a new leader has to wait for, that its log is committed,
may depend on metadata that comes later. Shards load in the background, few at a time.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic

from msgspec import Struct

from headrace.broker.coordinators.leaders import leader_of
from headrace.broker.coordinators.shard import CoreT, Reload, Shard, loading, not_coordinator
from headrace.broker.coordinators.topic_creation import creatable, create_topics
from headrace.model.errors import ErrorCode, KafkaError, StorageFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.settings.broker import BrokerConfig
    from headrace.wire.coordinator_records import RecordCodec

logger = logging.getLogger(__name__)

_INT32 = 0xFFFFFFFF
_RELOAD_DELAY_S = 1.0
_HASHES_KEPT = 4_096
"""The same groups come again and again, and a hash takes as long as all else that it takes to find a shard."""
_HASHED_CHARS_MAX = 256
"""No peer may fill our memory with long names."""

LOADS_AT_ONCE = 1
"""Shards of one coordinator that read their logs at a time; each holds a thread and keeps others from a core."""

SHARDS_AWAITED_S = 1.0
"""Who had the topic made waits so long for its shards, so that clients of a small cluster need not ask twice."""


class CoordinatorTopic(Struct, frozen=True, kw_only=True):
    """A coordinator's topic, and the settings that shape it when it is made."""

    name: str
    partitions: str
    """The setting that says how many; as those below."""
    replication_factor: str
    read_bytes: str
    """How much of a log is read at once when it is loaded."""
    write_timeout_ms: str
    """How long an answer may wait for replicas."""
    configs: Callable[[BrokerConfig], dict[str, str]]


class Coordinator(Generic[CoreT]):
    """The shards of one topic."""

    def __init__(
        self,
        broker: Broker,
        topic: CoordinatorTopic,
        codec: RecordCodec,
        make_core: Callable[[], CoreT],
        on_effect: Callable[[Shard[CoreT], Any], None] | None = None,
    ) -> None:
        self.topic = topic.name
        self._broker = broker
        self._shape = topic
        self._codec = codec
        self._make_core = make_core
        self._handle_effect = on_effect
        self._shards: dict[int, Shard[CoreT]] = {}
        self._creating = asyncio.Lock()
        self._loads = asyncio.Semaphore(LOADS_AT_ONCE)
        self._loading: set[Shard[CoreT]] = set()
        self._loaded = asyncio.Event()
        """Set and cleared whenever a shard has loaded."""

    # --- what handlers ask

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has, or will have."""
        known = self._broker.metadata.topics.get(self.topic)
        count: int = len(known.partitions) if known is not None else self._broker.config[self._shape.partitions]
        return count

    @property
    def shards(self) -> Iterator[Shard[CoreT]]:
        """Those that can answer, in order."""
        return (shard for _, shard in sorted(self._shards.items()) if shard.is_loaded)

    @property
    def held(self) -> Iterator[Shard[CoreT]]:
        """Those that can answer, and those that will."""
        return iter(tuple(self._shards.values()))

    @property
    def is_loading(self) -> bool:
        """Whether a shard is still reading its log, so that a list of everything would be incomplete."""
        return any(not shard.is_loaded for shard in self._shards.values())

    def partition_for(self, key: str) -> int:
        """The partition a key belongs to."""
        return abs(java_hash(key)) % self.partition_count

    def shard_for(self, key: str) -> Shard[CoreT]:
        """The shard that coordinates `key`, or the error that sends the client to look again."""
        return self.shard_at(self.partition_for(key))

    def shard_at(self, index: int) -> Shard[CoreT]:
        """The shard of one partition, or the error that sends the client to look again."""
        shard = self._shards.get(index)
        if shard is None:
            raise self._missing(index)
        if not shard.is_loaded:
            raise loading()
        return shard

    def _missing(self, index: int) -> KafkaError:
        """Why there is no shard for a partition."""
        metadata = self._broker.metadata
        if self.topic not in metadata.topics:
            return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
        if leader_of(metadata, self.topic, index) == self._broker.node_id:
            # We are to lead it, and its log is being made.
            return loading()
        return not_coordinator()

    def leader_for(self, key: str) -> int:
        """The broker that coordinates `key`; -1 if just now none does."""
        return leader_of(self._broker.metadata, self.topic, self.partition_for(key))

    def is_here(self, key: str) -> bool:
        """Whether a question about `key` is one for this broker, by its metadata or because it still leads there."""
        return self.leader_for(key) == self._broker.node_id or self.partition_for(key) in self._shards

    async def ensure_topic(self) -> None:
        """Have the topic made if nobody has yet; when this returns, the coordinators that are here mostly answer."""
        if self.topic in self._broker.metadata.topics and not self._creating.locked():
            return
        # Also who comes while it is being made waits: known to the metadata is not yet served.
        async with self._creating:
            if self.topic not in self._broker.metadata.topics:
                await self._create_topic()
                await self._until_loaded()

    async def _create_topic(self) -> None:
        broker = self._broker
        config = broker.config
        # A small cluster must not be left without groups because the default was made for a large one. A broker that
        # is down counts: with fewer replicas than there could be the topic would stay for good.
        brokers = max(len(broker.metadata.brokers), 1)
        wanted = creatable(
            self.topic,
            partitions=config[self._shape.partitions],
            replication_factor=min(config[self._shape.replication_factor], brokers),
            configs=self._shape.configs(config),
        )
        fault = (await create_topics(broker, [wanted])).get(self.topic)
        if fault is not None:
            logger.warning("coordinator_topic_not_created topic=%s reason=%s", self.topic, fault)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The coordinator is not available: {fault}")

    async def _until_loaded(self) -> None:
        """Wait for the shards that are to be here, for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SHARDS_AWAITED_S):
                while not all(self._is_loaded(index) for index in self._led()):
                    await self._loaded.wait()

    def _led(self) -> list[int]:
        """The partitions that are led here, by the metadata."""
        known = self._broker.metadata.topics.get(self.topic)
        states = known.partitions if known is not None else ()
        return [state.index for state in states if state.leader == self._broker.node_id]

    def _is_loaded(self, index: int) -> bool:
        shard = self._shards.get(index)
        return shard is not None and shard.is_loaded

    # --- coming and going

    async def lead(self, indexes: Iterable[int]) -> None:
        """Become the coordinator of some partitions, in the epoch in which they are led here now."""
        for index in indexes:
            partition = self._broker.partitions.find((self.topic, index))
            known = self._shards.get(index)
            if partition is None or not partition.is_led:
                continue
            if known is not None:
                # A topic that was deleted and made again begins with the same epochs.
                if known.partition is partition and known.epoch == partition.leader_epoch:
                    continue
                known.close()
            shard = self._shards[index] = self._shard_on(partition)
            self._begin_load(shard)

    def _shard_on(self, partition: Partition) -> Shard[CoreT]:
        config = self._broker.config
        return Shard(
            partition,
            self._make_core,
            self._codec,
            clock=self._broker.clock,
            on_effect=self._on_effect,
            read_bytes=config[self._shape.read_bytes],
            write_timeout_s=config[self._shape.write_timeout_ms] / 1000,
        )

    async def lead_all(self) -> None:
        """Become the coordinator of every partition that is led here, and wait until all have loaded."""
        await self.lead(self._led())
        while self._loading:
            await self._loaded.wait()

    def resign(self, indexes: Iterable[int]) -> None:
        """Stop coordinating some partitions: others lead them, or nobody does."""
        for index in indexes:
            shard = self._shards.pop(index, None)
            if shard is not None:
                shard.close()
        self._tell_loaded()

    def resign_all(self) -> None:
        """Stop coordinating: the topic is gone, or the broker goes."""
        self.resign(tuple(self._shards))

    def _begin_load(self, shard: Shard[CoreT]) -> None:
        self._loading.add(shard)
        self._broker.spawn(self._load(shard))

    async def _load(self, shard: Shard[CoreT]) -> None:
        try:
            await shard.load(self._broker.readers, self._loads)
        except (StorageFault, KafkaError) as problem:
            if not shard.is_closed:
                logger.error(  # noqa: TRY400 - the cause is the disk's, and named
                    "coordinator_not_loaded topic=%s partition=%d reason=%s", self.topic, shard.index, problem
                )
        finally:
            self._loading.discard(shard)
            self._tell_loaded()

    def _tell_loaded(self) -> None:
        self._loaded.set()
        self._loaded.clear()

    def _on_effect(self, shard: Shard[CoreT], effect: Any) -> None:
        if isinstance(effect, Reload):
            asyncio.get_running_loop().call_later(_RELOAD_DELAY_S, self._reload, shard)
        elif self._handle_effect is not None:
            self._handle_effect(shard, effect)

    def _reload(self, shard: Shard[CoreT]) -> None:
        """Try again what failed, unless the broker has moved on."""
        if self._shards.get(shard.index) is shard and not shard.is_loaded and shard.partition.fault is None:
            self._begin_load(shard)


def java_hash(text: str) -> int:
    """`String.hashCode` of Java, over UTF-16 code units, as a signed 32-bit number; its minimum counts as 0."""
    return _known_hash(text) if len(text) <= _HASHED_CHARS_MAX else _new_hash(text)


def _new_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _INT32
    value = value - (1 << 32) if value >> 31 else value
    return 0 if value == -(1 << 31) else value


_known_hash = lru_cache(maxsize=_HASHES_KEPT)(_new_hash)
