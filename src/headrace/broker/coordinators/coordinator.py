"""One kind of coordinator on this broker: its topic, and a shard for each partition of it that is led here.

Which partition a key belongs to is Kafka's arithmetic, so that every broker and tool agrees; whoever leads that
partition is the key's coordinator. The topic comes to be when somebody first asks for a coordinator.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from msgspec import Struct

from headrace.broker.coordinators.shard import CoreT, Reload, Shard
from headrace.broker.topic_defaults import topic_defaults
from headrace.cores.controller import NewTopic, create_topics
from headrace.model.errors import ErrorCode, KafkaError, StorageFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headrace.broker.broker import Broker
    from headrace.settings.broker import BrokerConfig
    from headrace.wire.coordinator_records import RecordCodec

logger = logging.getLogger(__name__)

_INT32 = 0xFFFFFFFF
_RELOAD_DELAY_S = 1.0


class CoordinatorTopic(Struct, frozen=True, kw_only=True):
    """A coordinator's topic, and the settings that shape it when it is made."""

    name: str
    partitions: str
    """The setting that says how many; as those below."""
    replication_factor: str
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
            known = self.topic in self._broker.metadata.topics
            code = ErrorCode.NOT_COORDINATOR if known else ErrorCode.COORDINATOR_NOT_AVAILABLE
            raise KafkaError(code, "This is not the correct coordinator.")
        if not shard.is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is loading its state; try again.")
        return shard

    async def ensure_topic(self) -> None:
        """Make the topic if nobody has yet; when this returns its coordinators answer."""
        if self.topic in self._broker.metadata.topics and not self._creating.locked():
            return
        # Also who comes while it is being made waits: known to the metadata is not yet served.
        async with self._creating:
            if self.topic in self._broker.metadata.topics:
                return
            config = self._broker.config
            brokers = self._broker.live_brokers
            wanted = NewTopic(
                name=self.topic,
                topic_id=self._broker.new_uuid(),
                partitions=config[self._shape.partitions],
                # A small cluster must not be left without groups because the default was made for a large one.
                replication_factor=min(config[self._shape.replication_factor], len(brokers)),
                configs=self._shape.configs(config),
            )
            command = partial(create_topics, wanted=[wanted], brokers=brokers, defaults=topic_defaults(config))
            result = (await self._broker.controller.run(command))[self.topic]
            if isinstance(result, KafkaError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise result

    # --- coming and going

    async def lead(self, indexes: Sequence[int]) -> None:
        """Become the coordinator of some partitions: read their logs, then answer."""
        new = [index for index in indexes if index not in self._shards]
        for index in new:
            partition = self._broker.partitions.find((self.topic, index))
            if partition is not None:
                self._shards[index] = Shard(
                    partition, self._make_core, self._codec, clock=self._broker.clock, on_effect=self._on_effect
                )
        await asyncio.gather(*(self._load(self._shards[index]) for index in new if index in self._shards))

    async def lead_all(self) -> None:
        """Become the coordinator of every partition that is led here."""
        known = self._broker.metadata.topics.get(self.topic)
        if known is not None:
            await self.lead(range(len(known.partitions)))

    def resign_all(self) -> None:
        """Stop coordinating: the topic is gone, or the broker goes."""
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.close()

    async def _load(self, shard: Shard[CoreT]) -> None:
        try:
            await shard.load(self._broker.readers)
        except (StorageFault, KafkaError) as problem:
            logger.error(  # noqa: TRY400 - the cause is the disk's, and named
                "coordinator_not_loaded topic=%s partition=%d reason=%s", self.topic, shard.index, problem
            )

    def _on_effect(self, shard: Shard[CoreT], effect: Any) -> None:
        if isinstance(effect, Reload):
            asyncio.get_running_loop().call_later(_RELOAD_DELAY_S, self._reload, shard)
        elif self._handle_effect is not None:
            self._handle_effect(shard, effect)

    def _reload(self, shard: Shard[CoreT]) -> None:
        """Try again what failed, unless the broker has moved on."""
        if self._shards.get(shard.index) is shard and not shard.is_loaded and shard.partition.fault is None:
            self._broker.spawn(self._load(shard))


def java_hash(text: str) -> int:
    """`String.hashCode` of Java, over UTF-16 code units, as a signed 32-bit number; its minimum counts as 0."""
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _INT32
    value = value - (1 << 32) if value >> 31 else value
    return 0 if value == -(1 << 31) else value
