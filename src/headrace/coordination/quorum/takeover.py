"""How an image comes to what a snapshot says: by records, as always, so that the node can act on each difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.metadata import RESOURCE_TOPIC, Metadata
from headrace.model.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def way_to(image: Metadata, snapshot: Sequence[MetadataRecord]) -> list[MetadataRecord]:
    """The records that bring an image to what the records of a snapshot say, and no others."""
    wanted = Metadata()
    for record in snapshot:
        wanted.replay(record)
    return [*_removals(image, wanted), *(record for record in snapshot if not _is_known(image, wanted, record))]


def _removals(image: Metadata, wanted: Metadata) -> Iterator[MetadataRecord]:
    """What is there and should not be."""
    for topic in image.topics.values():
        if topic.topic_id not in wanted.topics_by_id:
            yield RemoveTopicRecord(topic_id=topic.topic_id)
    for broker in image.brokers.values():
        if broker.broker_id not in wanted.brokers:
            yield UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
    for name in image.features:
        if name not in wanted.features:
            yield FeatureLevelRecord(name=name, feature_level=0)
    yield from _config_removals(image, wanted)


def _config_removals(image: Metadata, wanted: Metadata) -> Iterator[MetadataRecord]:
    for resource_type, resource_name, values in image.all_configs():
        topic = image.topics.get(resource_name) if resource_type == RESOURCE_TOPIC else None
        if topic is not None and topic.topic_id not in wanted.topics_by_id:
            continue  # Its settings go with it.
        kept = wanted.configs(resource_type, resource_name)
        for name in values:
            if name not in kept:
                yield ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=None)


def _is_known(image: Metadata, wanted: Metadata, record: MetadataRecord) -> bool:
    """Whether a record of the snapshot says nothing new."""
    match record:
        case TopicRecord():
            return record.topic_id in image.topics_by_id
        case PartitionRecord():
            known = image.partition(record.topic_id, record.partition_id)
            return known == wanted.partition(record.topic_id, record.partition_id)
        case ConfigRecord():
            if record.resource_type == RESOURCE_TOPIC and not _same_topic(image, wanted, record.resource_name):
                return False
            return image.configs(record.resource_type, record.resource_name).get(record.name) == record.value
        case FeatureLevelRecord():
            return image.features.get(record.name) == record.feature_level
        case RegisterBrokerRecord():
            return image.brokers.get(record.broker_id) == record
        case RegisterControllerRecord():
            return image.controllers.get(record.controller_id) == record
        case _:
            return False


def _same_topic(image: Metadata, wanted: Metadata, name: str) -> bool:
    """Whether a name stands for one topic in both: settings of one that was made anew are news."""
    old, new = image.topics.get(name), wanted.topics.get(name)
    return old is not None and new is not None and old.topic_id == new.topic_id
