"""Elections that are asked for (43 ElectLeaders), and those the controller holds by itself from time to time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

from msgspec import Struct

from headrace.cores.controller.outcome import Outcome, check_size
from headrace.cores.controller.partition_change import Election, Intent
from headrace.cores.controller.partition_changes import PartitionChanges
from headrace.cores.controller.policy import DEFAULT_POLICY, Policy
from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError

ELECTIONS_PER_TURN_MAX = 1000
"""Elections the controller holds by itself at once; Kafka's number. The rest comes in the next turn."""


class ElectionType(IntEnum):
    """What may be asked for, by Kafka's numbers."""

    PREFERRED = 0
    UNCLEAN = 1


_NOT_AVAILABLE = {
    ElectionType.PREFERRED: (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."),
    ElectionType.UNCLEAN: (
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "Eligible topic partition leaders are not available.",
    ),
}


class ElectionResult(Struct, frozen=True, kw_only=True):
    """How the election of one partition's leader went."""

    topic: str
    partition: int
    error: KafkaError | None = None


def elect_leaders(
    metadata: Metadata,
    *,
    election_type: int,
    partitions: Sequence[tuple[str, int]] | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> Outcome[list[ElectionResult]]:
    """Elect the leader of each partition named, or of all: of these, those that need none are not in the reply."""
    if election_type not in set(ElectionType):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {election_type}")
    kind = ElectionType(election_type)
    changes = PartitionChanges(metadata, policy)
    results = []
    for topic, partition in _all_partitions(metadata) if partitions is None else partitions:
        error = _elect(metadata, changes, topic, partition, kind)
        if partitions is not None or error is None or error.code != ErrorCode.ELECTION_NOT_NEEDED:
            results.append(ElectionResult(topic=topic, partition=partition, error=error))
    check_size(changes.records)
    return Outcome(changes.records, results)


def _all_partitions(metadata: Metadata) -> Iterator[tuple[str, int]]:
    for topic in metadata.topics.values():
        for index in range(len(topic.partitions)):
            yield topic.name, index


def _elect(
    metadata: Metadata, changes: PartitionChanges, name: str, partition: int, kind: ElectionType
) -> KafkaError | None:
    topic = metadata.topics.get(name)
    if topic is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= partition < len(topic.partitions):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{partition}")
    state = changes.state(topic, partition)
    is_preferred = kind is ElectionType.PREFERRED
    if state.leader == state.replicas[0] if is_preferred else state.leader >= 0:
        return KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    election = Election.PREFERRED if is_preferred else Election.UNCLEAN
    if changes.change(topic, partition, Intent(election=election)) is None:
        return KafkaError(*_NOT_AVAILABLE[kind])
    return None


def balance_leaders(
    metadata: Metadata, *, policy: Policy = DEFAULT_POLICY, elections_max: int = ELECTIONS_PER_TURN_MAX
) -> Outcome[bool]:
    """Let preferred replicas lead again where they can (auto.leader.rebalance.enable); the reply is whether to go on.

    As in Kafka's KRaft mode every such partition counts, whatever leader.imbalance.per.broker.percentage says.
    """
    changes = PartitionChanges(metadata, policy)
    for topic_id, index in metadata.index.imbalanced:
        if len(changes.records) >= elections_max:
            break
        topic = metadata.topics_by_id[topic_id]
        state = topic.partitions[index]
        preferred = state.replicas[0]
        if preferred in state.isr and changes.may_lead(state, preferred):
            changes.change(topic, index, Intent(election=Election.PREFERRED))
    return Outcome(changes.records, len(changes.records) >= elections_max)


def elect_unclean_leaders(
    metadata: Metadata, *, policy: Policy = DEFAULT_POLICY, elections_max: int = ELECTIONS_PER_TURN_MAX
) -> Outcome[bool]:
    """Give partitions without a leader one where the topic allows it uncleanly; the reply is whether to go on.

    They are elected when a broker comes or goes; this is for topics that were allowed it since.
    """
    changes = PartitionChanges(metadata, policy)
    for topic_id, index in metadata.index.leaderless:
        if len(changes.records) >= elections_max:
            break
        topic = metadata.topics_by_id[topic_id]
        if changes.election(topic) is Election.UNCLEAN:
            changes.change(topic, index, Intent(election=Election.UNCLEAN))
    return Outcome(changes.records, len(changes.records) >= elections_max)
