"""A snapshot: the records that make the cluster's state anew, without its history (KIP-630)."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from headrace.cores.controller.configs import config_records
from headrace.cores.controller.features import METADATA_VERSION
from headrace.cores.metadata import RESOURCE_TOPIC, Metadata, PartitionState, Topic
from headrace.model.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
)

NOBODY = -1


def snapshot_records(metadata: Metadata) -> Iterator[MetadataRecord]:
    """Records whose replay from nothing gives an equal state; the metadata version first, as it says how to read on."""
    for name in sorted(metadata.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=metadata.features[name])
    yield from metadata.brokers.values()
    yield from metadata.controllers.values()
    for topic in metadata.topics.values():
        yield from _topic_records(metadata, topic)
    yield from _other_configs(metadata)
    if metadata.next_producer_id:
        yield ProducerIdsRecord(broker_id=NOBODY, broker_epoch=NOBODY, next_producer_id=metadata.next_producer_id)


def _topic_records(metadata: Metadata, topic: Topic) -> Iterator[MetadataRecord]:
    yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
    yield from config_records(RESOURCE_TOPIC, topic.name, metadata.configs(RESOURCE_TOPIC, topic.name))
    for state in topic.partitions:
        yield partition_record(topic.topic_id, state)


def _other_configs(metadata: Metadata) -> Iterator[MetadataRecord]:
    for resource_type, name, values in metadata.all_configs():
        if resource_type != RESOURCE_TOPIC or name not in metadata.topics:
            yield from config_records(resource_type, name, values)


def partition_record(topic_id: UUID, state: PartitionState) -> PartitionRecord:
    """A partition described whole."""
    return PartitionRecord(
        partition_id=state.index,
        topic_id=topic_id,
        replicas=state.replicas,
        isr=state.isr,
        removing_replicas=state.removing_replicas,
        adding_replicas=state.adding_replicas,
        leader=state.leader,
        leader_recovery_state=state.leader_recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=state.directories,
        eligible_leader_replicas=state.elr or None,
        last_known_elr=state.last_known_elr or None,
    )
