"""Changes of the in-sync replicas, as leaders ask for them (56 AlterPartition)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from headrace.cores.controller.broker_epochs import check_broker_epoch
from headrace.cores.controller.outcome import Outcome
from headrace.cores.controller.partition_change import RECOVERED, RECOVERING, Intent
from headrace.cores.controller.partition_changes import PartitionChanges
from headrace.cores.controller.policy import DEFAULT_POLICY, Policy
from headrace.cores.metadata import UNCHANGED_LEADER, Metadata, PartitionState
from headrace.model.errors import ErrorCode

UNTOLD_EPOCH = -1
"""The epoch of a broker in a new ISR that is not to be checked."""


class IsrChange(Struct, frozen=True, kw_only=True):
    """The in-sync replicas as a partition's leader wants them."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[tuple[int, int]]
    """Brokers, each with its epoch or UNTOLD_EPOCH."""
    leader_recovery_state: int = RECOVERED


class AlteredPartition(Struct, frozen=True, kw_only=True):
    """How the change of one partition went, and, if it did, the partition as it is now."""

    topic_id: UUID
    partition: int
    error: ErrorCode
    state: PartitionState | None = None


def alter_partitions(
    metadata: Metadata,
    *,
    broker_id: int,
    broker_epoch: int,
    wanted: Sequence[IsrChange],
    policy: Policy = DEFAULT_POLICY,
) -> Outcome[list[AlteredPartition]]:
    """Change the ISR of each partition as its leader asks; the reply has an entry for each change, in order."""
    check_broker_epoch(metadata, broker_id, broker_epoch)
    changes = PartitionChanges(metadata, policy)
    reply = []
    for one in wanted:
        error, state = _alter(metadata, changes, broker_id, one)
        reply.append(AlteredPartition(topic_id=one.topic_id, partition=one.partition, error=error, state=state))
    return Outcome(changes.records, reply)


def _alter(
    metadata: Metadata, changes: PartitionChanges, broker_id: int, one: IsrChange
) -> tuple[ErrorCode, PartitionState | None]:
    topic = metadata.topics_by_id.get(one.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, None
    if not 0 <= one.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    state = changes.state(topic, one.partition)
    fault = _epoch_fault(state, broker_id, one) or _isr_fault(state, one) or _broker_fault(metadata, one)
    if fault is not None:
        return fault, None
    intent = Intent(
        isr=tuple(broker for broker, _ in one.isr),
        recovery_state=one.leader_recovery_state,
        election=changes.election(topic),
    )
    record = changes.change(topic, one.partition, intent)
    if record is not None and record.leader not in {broker_id, UNCHANGED_LEADER}:
        # The change completed a reassignment after which the leader is another; it learns that from the metadata.
        return ErrorCode.NEW_LEADER_ELECTED, None
    return ErrorCode.NONE, changes.state(topic, one.partition)


def _epoch_fault(state: PartitionState, broker_id: int, one: IsrChange) -> ErrorCode | None:
    """Whether the change comes from who leads now, and is made of the state as it is now."""
    if one.leader_epoch > state.leader_epoch or one.partition_epoch > state.partition_epoch:
        # Somebody knows more than this controller: it is not the active one any more.
        return ErrorCode.NOT_CONTROLLER
    if one.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_UPDATE_VERSION if one.partition_epoch < state.partition_epoch else None


def _isr_fault(state: PartitionState, one: IsrChange) -> ErrorCode | None:
    """Whether the ISR is a set of replicas with the leader in it, and alone in it while it recovers."""
    isr = [broker for broker, _ in one.isr]
    is_sound = len(set(isr)) == len(isr) and set(isr).issubset(state.replicas) and state.leader in isr
    is_recovering = one.leader_recovery_state == RECOVERING
    may_recover = not is_recovering or (len(isr) == 1 and state.leader_recovery_state == RECOVERING)
    is_known_state = one.leader_recovery_state in {RECOVERED, RECOVERING}
    return None if is_sound and may_recover and is_known_state else ErrorCode.INVALID_REQUEST


def _broker_fault(metadata: Metadata, one: IsrChange) -> ErrorCode | None:
    """Whether everyone in the ISR serves, and is the process the leader took it for (KIP-903)."""
    for broker_id, epoch in one.isr:
        if not metadata.is_active(broker_id):
            return ErrorCode.INELIGIBLE_REPLICA
        if epoch not in {UNTOLD_EPOCH, metadata.brokers[broker_id].broker_epoch}:
            return ErrorCode.INELIGIBLE_REPLICA
    return None
