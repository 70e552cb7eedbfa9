"""Moving replicas: 45 AlterPartitionReassignments, 46 ListPartitionReassignments.

A reassignment first adds the new replicas; when all that shall stay are in sync, those that shall go are taken away.
The partition remembers both lists meanwhile, so that the change can be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from headrace.cores.controller.outcome import Outcome, check_size
from headrace.cores.controller.partition_change import RECOVERING, Election, Intent, without
from headrace.cores.controller.partition_changes import PartitionChanges
from headrace.cores.controller.placement import check_assignment
from headrace.cores.controller.policy import DEFAULT_POLICY, Policy
from headrace.cores.metadata import Metadata, PartitionState, Topic
from headrace.model.errors import ErrorCode, KafkaError


class Reassignment(Struct, frozen=True, kw_only=True):
    """The replicas one partition shall have; None cancels the reassignment under way."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


class ReassignmentResult(Struct, frozen=True, kw_only=True):
    """Whether the reassignment of one partition was accepted."""

    topic: str
    partition: int
    error: KafkaError | None = None


class OngoingReassignment(Struct, frozen=True, kw_only=True):
    """A partition whose replicas are moving."""

    topic: str
    state: PartitionState


def alter_reassignments(
    metadata: Metadata,
    wanted: Sequence[Reassignment],
    *,
    allow_factor_change: bool = True,
    policy: Policy = DEFAULT_POLICY,
) -> Outcome[list[ReassignmentResult]]:
    """Begin, change or cancel the reassignment of each partition; the reply has an entry for each, in order."""
    changes = PartitionChanges(metadata, policy)
    results = []
    for one in wanted:
        error = None
        try:
            _reassign(metadata, changes, one, allow_factor_change=allow_factor_change)
        except KafkaError as fault:
            error = fault
        results.append(ReassignmentResult(topic=one.topic, partition=one.partition, error=error))
    check_size(changes.records)
    return Outcome(changes.records, results)


def _reassign(metadata: Metadata, changes: PartitionChanges, one: Reassignment, *, allow_factor_change: bool) -> None:
    topic = metadata.topics.get(one.topic)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {one.topic}.")
    if not 0 <= one.partition < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {one.topic}:{one.partition}.")
    state = changes.state(topic, one.partition)
    if one.replicas is None:
        changes.change(topic, one.partition, _cancellation(changes, topic, state))
        return
    if not allow_factor_change and len(one.replicas) != len(_stable(state)):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(_stable(state))} to {len(one.replicas)}",
        )
    check_assignment(one.replicas, metadata.brokers, factor=None)
    changes.change(topic, one.partition, _move(state, tuple(one.replicas)))


def _original(state: PartitionState) -> tuple[int, ...]:
    """The replicas from before the reassignment."""
    return without(state.replicas, state.adding_replicas)


def _stable(state: PartitionState) -> tuple[int, ...]:
    """The replicas there will be when the reassignment is done."""
    return without(state.replicas, state.removing_replicas)


def _move(state: PartitionState, target: tuple[int, ...]) -> Intent:
    """From whatever is there to the target: a replica that came with an unfinished reassignment counts as new."""
    removing = tuple(sorted(set(state.replicas).difference(target)))
    original = _original(state)
    replicas = target + removing
    return Intent(
        replicas=replicas,
        adding=tuple(sorted(set(replicas).difference(original))),
        removing=removing,
    )


def _cancellation(changes: PartitionChanges, topic: Topic, state: PartitionState) -> Intent:
    if not state.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    replicas = _original(state)
    isr = without(state.isr, state.adding_replicas)
    election = changes.election(topic)
    if not isr:
        if election is not Election.UNCLEAN:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{state.index} because it would require an "
                "unclean leader election.",
            )
        # It does not have what the new replicas were given since; its leader must say when its log is in order.
        return Intent(
            isr=replicas[:1], replicas=replicas, adding=(), removing=(), recovery_state=RECOVERING, election=election
        )
    return Intent(isr=isr, replicas=replicas, adding=(), removing=(), election=election)


def list_reassignments(
    metadata: Metadata, wanted: Sequence[tuple[str, Sequence[int]]] | None = None
) -> list[OngoingReassignment]:
    """Partitions whose replicas are moving: all, or those among the ones named."""
    if wanted is None:
        keys = sorted((metadata.topics_by_id[topic_id].name, index) for topic_id, index in metadata.index.reassigning)
    else:
        keys = [(topic, index) for topic, indexes in wanted for index in indexes]
    ongoing = []
    for name, index in keys:
        topic = metadata.topics.get(name)
        state = None if topic is None else metadata.partition(topic.topic_id, index)
        if state is not None and state.is_reassigning:
            ongoing.append(OngoingReassignment(topic=name, state=state))
    return ongoing
