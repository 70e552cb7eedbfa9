"""What the pages about topics show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.admin_values import ConfigEntry, ConfigResource, ConfigResourceType, PartitionDescription
from headrace.client.fault import ClientFault
from headrace.client.health import DESCRIBE_LOG_DIRS
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

if TYPE_CHECKING:
    from headrace.client.admin_values import TopicDescription
    from headrace.gateway.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition; None for what could not be had."""

    described: PartitionDescription
    begin: int | None
    end: int | None
    bytes: int | None

    @property
    def records(self) -> int | None:
        """How many offsets lie in its log."""
        return None if self.begin is None or self.end is None else self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """One topic with its partitions."""

    name: str
    is_internal: bool
    partitions: tuple[PartitionView, ...]

    @property
    def replication(self) -> int:
        """How many replicas each partition has."""
        return max((len(one.described.replicas) for one in self.partitions), default=0)

    @property
    def records(self) -> int | None:
        """How many offsets lie in its logs."""
        known = [one.records for one in self.partitions if one.records is not None]
        return sum(known) if known else None

    @property
    def bytes(self) -> int | None:
        """The size of its logs on their leaders."""
        known = [one.bytes for one in self.partitions if one.bytes is not None]
        return sum(known) if known else None

    @property
    def is_well(self) -> bool:
        """Whether every partition is led and all of its replicas are in sync."""
        return all(
            one.described.leader >= 0 and len(one.described.isr) == len(one.described.replicas)
            for one in self.partitions
        )


async def load_topics(services: Services, names: Iterable[str] | None = None) -> list[TopicView]:
    """All topics or some; KafkaError if one of those is not there."""
    topics = await services.admin.describe_topics(names)
    led = [TopicPartition(one.name, part.partition) for one in topics for part in one.partitions if part.leader >= 0]
    begins, ends, sizes = await asyncio.gather(
        _offsets(services, led, "earliest"), _offsets(services, led, "latest"), _sizes(services, topics)
    )
    return [_view(topic, begins, ends, sizes) for topic in topics]


async def load_topic(services: Services, name: str) -> TopicView:
    """One topic."""
    (found,) = await load_topics(services, [name])
    return found


def _view(
    topic: TopicDescription,
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    sizes: Mapping[tuple[str, int, int], int],
) -> TopicView:
    return TopicView(
        name=topic.name,
        is_internal=topic.is_internal or topic.name.startswith("__"),
        partitions=tuple(
            PartitionView(
                described=one,
                begin=begins.get(TopicPartition(topic.name, one.partition)),
                end=ends.get(TopicPartition(topic.name, one.partition)),
                bytes=sizes.get((topic.name, one.partition, one.leader)),
            )
            for one in topic.partitions
        ),
    )


async def _offsets(services: Services, places: list[TopicPartition], when: str) -> dict[TopicPartition, int]:
    if not places:
        return {}
    try:
        found = await services.admin.list_offsets(dict.fromkeys(places, when))
    except KafkaError as error:
        # A topic that was deleted meanwhile is no reason to show none of the others.
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return {}
    return {place: one.offset for place, one in found.items()}


async def _sizes(services: Services, topics: list[TopicDescription]) -> dict[tuple[str, int, int], int]:
    """Bytes by topic, partition and broker; nothing from brokers that do not say."""
    asked = tuple(
        DescribableLogDirTopic(topic=one.name, partitions=tuple(part.partition for part in one.partitions))
        for one in topics
    )
    nodes = sorted({part.leader for one in topics for part in one.partitions if part.leader >= 0})
    found: dict[tuple[str, int, int], int] = {}

    async def ask(node_id: int) -> None:
        try:
            answer = await services.cluster.ask(
                DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=asked), node_id=node_id
            )
        except (ClientFault, KafkaError):
            return
        for directory in answer.results:
            for topic in directory.topics:
                for one in topic.partitions:
                    if not one.is_future_key:
                        found[topic.name, one.partition_index, node_id] = one.partition_size

    await asyncio.gather(*map(ask, nodes))
    return found


async def load_configs(services: Services, topic: str) -> list[ConfigEntry]:
    """The topic's settings, by name."""
    (found,) = await services.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    return [found[name] for name in sorted(found)]


async def change_config(services: Services, topic: str, name: str, value: str | None) -> None:
    """Set one setting, or take it back with None."""
    await services.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})])
