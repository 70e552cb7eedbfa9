"""What a broker's coming and going means for the partitions it holds."""

from __future__ import annotations

from headrace.cores.controller.partition_change import Intent
from headrace.cores.controller.partition_changes import PartitionChanges, partitions_in_elr, partitions_in_isr
from headrace.cores.controller.policy import Policy
from headrace.cores.metadata import Metadata
from headrace.model.metadata_records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

FENCE = 1
UNFENCE = -1
SHUTTING_DOWN = 1


def fenced(metadata: Metadata, broker: RegisterBrokerRecord, policy: Policy) -> list[MetadataRecord]:
    """A broker is not heard of any more, or stops: others lead what it led, and it is in sync nowhere."""
    changes = PartitionChanges(metadata, policy, leaving=broker.broker_id)
    changes.without_broker(partitions_in_isr(metadata, broker.broker_id), broker.broker_id)
    return [*changes.records, _registration_change(broker, fenced=FENCE)]


def unfenced(metadata: Metadata, broker: RegisterBrokerRecord, policy: Policy) -> list[MetadataRecord]:
    """A broker serves: partitions without a leader may get one."""
    changes = PartitionChanges(metadata, policy, returning=broker.broker_id)
    held = metadata.index.replicas.get(broker.broker_id, set())
    for topic_id, index in held & metadata.index.leaderless:
        topic = metadata.topics_by_id[topic_id]
        changes.change(topic, index, Intent(election=changes.election(topic)))
    return [_registration_change(broker, fenced=UNFENCE), *changes.records]


def shutting_down(metadata: Metadata, broker: RegisterBrokerRecord, policy: Policy) -> list[MetadataRecord]:
    """A broker asked to stop: it leads nothing any more and is in sync nowhere, before it goes."""
    changes = PartitionChanges(metadata, policy, leaving=broker.broker_id)
    changes.without_broker(partitions_in_isr(metadata, broker.broker_id), broker.broker_id)
    if broker.in_controlled_shutdown:
        return changes.records
    return [_registration_change(broker, in_controlled_shutdown=SHUTTING_DOWN), *changes.records]


def started_again(metadata: Metadata, broker_id: int, policy: Policy, *, is_clean: bool) -> list[MetadataRecord]:
    """Another process of a broker registers: what the last one was is over.

    One that did not stop cleanly may have lost what it acknowledged, and is not eligible any more either (KIP-966).
    """
    changes = PartitionChanges(metadata, policy, leaving=broker_id)
    changes.without_broker(partitions_in_isr(metadata, broker_id), broker_id, is_unclean=not is_clean)
    if not is_clean:
        changes.without_broker(partitions_in_elr(metadata, broker_id), broker_id, is_unclean=True)
    return changes.records


def unregistered(metadata: Metadata, broker: RegisterBrokerRecord, policy: Policy) -> list[MetadataRecord]:
    """A broker leaves the cluster for good; it stays a replica of what it held until that is reassigned."""
    changes = PartitionChanges(metadata, policy, leaving=broker.broker_id)
    for keys in (partitions_in_isr, partitions_in_elr):
        changes.without_broker(keys(metadata, broker.broker_id), broker.broker_id)
    gone = UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
    return [*changes.records, gone]


def _registration_change(
    broker: RegisterBrokerRecord, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )
