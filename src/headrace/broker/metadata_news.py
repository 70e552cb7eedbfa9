"""What a committed batch of metadata means for a broker: which partitions, topics and settings it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC
from headrace.model.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from headrace.cores.metadata import Metadata


class MetadataNews(Struct):
    """What changed, by what has to be done about it."""

    changed: dict[tuple[UUID, int], None] = field(default_factory=dict)
    """Partitions that are new or are held or led by others than before, each once, in order."""
    created: set[UUID] = field(default_factory=set)
    """Topics that have new partitions."""
    deleted: list[tuple[str, UUID]] = field(default_factory=list)
    configured_topics: set[str] = field(default_factory=set)
    configured_brokers: bool = False


class TopicNames:
    """The names of the topics there are, for when one is gone and only its id is told."""

    def __init__(self) -> None:
        self._names: dict[UUID, str] = {}

    def learn(self, metadata: Metadata) -> None:
        """Take over all there are."""
        self._names = {topic.topic_id: topic.name for topic in metadata.topics.values()}

    def news(self, records: Iterable[MetadataRecord]) -> MetadataNews:
        """What a batch of records means."""
        news = MetadataNews()
        for record in records:
            match record:
                case TopicRecord():
                    self._names[record.topic_id] = record.name
                case PartitionRecord():
                    news.changed[record.topic_id, record.partition_id] = None
                    news.created.add(record.topic_id)
                case PartitionChangeRecord():
                    news.changed[record.topic_id, record.partition_id] = None
                case RemoveTopicRecord():
                    news.deleted.append((self._names.pop(record.topic_id, ""), record.topic_id))
                case ConfigRecord(resource_type=kind) if kind == RESOURCE_TOPIC:
                    news.configured_topics.add(record.resource_name)
                case ConfigRecord(resource_type=kind) if kind == RESOURCE_BROKER:
                    news.configured_brokers = True
                case _:
                    pass
        return news
