"""Log dirs of replicas (KIP-858): 73 AssignReplicasToDirs, and dirs that fail."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from headrace.cores.controller.broker_epochs import check_broker_epoch
from headrace.cores.controller.outcome import Outcome
from headrace.cores.controller.partition_change import Intent, without
from headrace.cores.controller.partition_changes import NOBODY, PartitionChanges
from headrace.cores.controller.placement import is_online
from headrace.cores.controller.policy import DEFAULT_POLICY, Policy
from headrace.cores.metadata import Metadata
from headrace.cores.partition_index import PartitionKey
from headrace.model.errors import ErrorCode
from headrace.model.metadata_records import BrokerRegistrationChangeRecord, MetadataRecord, RegisterBrokerRecord


class DirectoryAssignment(Struct, frozen=True, kw_only=True):
    """A replica is in this log dir now."""

    directory: UUID
    topic_id: UUID
    partition: int


def assign_replicas_to_dirs(
    metadata: Metadata,
    *,
    broker_id: int,
    broker_epoch: int,
    wanted: Sequence[DirectoryAssignment],
    policy: Policy = DEFAULT_POLICY,
) -> Outcome[list[ErrorCode]]:
    """Note which log dirs a broker keeps its replicas in; the reply has a code for each assignment.

    One that names a dir which the broker has lost takes the replica out of the ISR.
    """
    broker = check_broker_epoch(metadata, broker_id, broker_epoch)
    changes = PartitionChanges(metadata, policy)
    results = []
    for one in wanted:
        fault = _assignment_fault(metadata, broker_id, one)
        if fault is ErrorCode.NONE:
            topic = metadata.topics_by_id[one.topic_id]
            intent = Intent(directory=(broker_id, one.directory))
            if not is_online(broker, one.directory):
                isr = without(changes.state(topic, one.partition).isr, (broker_id,))
                intent = replace(intent, isr=isr, election=changes.election(topic))
            changes.change(topic, one.partition, intent)
        results.append(fault)
    return Outcome(changes.records, results)


def _assignment_fault(metadata: Metadata, broker_id: int, one: DirectoryAssignment) -> ErrorCode:
    if one.topic_id not in metadata.topics_by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID
    state = metadata.partition(one.topic_id, one.partition)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in state.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def newly_offline(broker: RegisterBrokerRecord, offline: Sequence[UUID]) -> set[UUID]:
    """Log dirs a broker says it has lost, and of which that is not known yet."""
    return set(offline).intersection(broker.log_dirs)


def directories_offline(
    metadata: Metadata, broker: RegisterBrokerRecord, lost: set[UUID], policy: Policy, *, moves_leaders: bool
) -> list[MetadataRecord]:
    """A broker lost log dirs: what it has in them is led by others, and not in sync.

    `moves_leaders` is False where another decision takes the broker out of all its partitions anyway.
    """
    if not lost:
        return []
    changes = PartitionChanges(metadata, policy, leaving=broker.broker_id if moves_leaders else NOBODY)
    if moves_leaders:
        changes.without_broker(_partitions_in(metadata, broker.broker_id, lost), broker.broker_id)
    left = tuple(directory for directory in broker.log_dirs if directory not in lost)
    if not left:
        # No record can say that none is left; such a broker is fenced instead.
        return changes.records
    change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, log_dirs=left)
    return [*changes.records, change]


def _partitions_in(metadata: Metadata, broker_id: int, directories: set[UUID]) -> list[PartitionKey]:
    """Partitions of which a broker has its replica in one of these directories."""
    found = []
    for topic_id, index in metadata.index.replicas.get(broker_id, ()):
        state = metadata.topics_by_id[topic_id].partitions[index]
        if state.directories and state.directories[state.replicas.index(broker_id)] in directories:
            found.append((topic_id, index))
    return found
