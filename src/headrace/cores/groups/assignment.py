"""Raising a group's epoch, and making the target assignment for it.

The target is what every member is to own in the end; it is made by an assignor on the server, and only what changed of
it is written. Between two targets lies `group.consumer.assignment.interval.ms`, so that many members coming and going
at once do not each move everyone's partitions; a timer sees to it that the last change is not forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.cores.groups.assignors import ASSIGNORS
from headrace.cores.groups.assignors.spec import GroupSpec, MemberSpec, Target
from headrace.cores.groups.regex import matching_topics
from headrace.cores.groups.subscription import metadata_hash, topic_ids
from headrace.model.group_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
)

if TYPE_CHECKING:
    from headrace.cores.groups.consumer_group import ConsumerGroup
    from headrace.cores.groups.consumer_limits import ConsumerLimits
    from headrace.cores.groups.shard import Groups
    from headrace.cores.metadata import Metadata
    from headrace.cores.outcome import Outcome

ASSIGN_TIMER = "consumer-assign"

REGEX_VERSION = 0
"""Kafka notes which metadata an expression was matched against; here it is matched whenever topics come or go."""


def refresh(groups: Groups, group: ConsumerGroup, outcome: Outcome, now_ms: int, *, changed: bool) -> None:
    """Look at the topics again, and raise the epoch if something about them or the members has changed."""
    changed |= resolve_regexes(groups, group, outcome, now_ms)
    seen = metadata_hash(group.subscribed_topics(), groups.metadata)
    group.is_stale = False
    if changed or seen != group.metadata_hash:
        value = ConsumerGroupMetadataValue(epoch=group.group_epoch + 1, metadata_hash=seen)
        groups.emit(outcome, ConsumerGroupMetadataKey(group_id=group.group_id), value)
    if group.has_partition_metadata:
        groups.emit(outcome, ConsumerGroupPartitionMetadataKey(group_id=group.group_id), None)


def resolve_regexes(groups: Groups, group: ConsumerGroup, outcome: Outcome, now_ms: int) -> bool:
    """Match all expressions that members have against all topics, and forget those nobody has; was anything new?"""
    changed = False
    for regex in sorted(group.regexes):
        topics = matching_topics(regex, groups.metadata.topics)
        known = group.resolved.get(regex)
        if known is not None and known.topics == topics:
            continue
        changed = True
        key = ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=regex)
        value = ConsumerGroupRegularExpressionValue(
            topics=tuple(sorted(topics)), version=REGEX_VERSION, timestamp=now_ms
        )
        groups.emit(outcome, key, value)
    group.resolved_at_ms = now_ms
    for regex in sorted(group.resolved.keys() - group.regexes.keys()):
        changed = True
        groups.emit(outcome, ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=regex), None)
    return changed


def assign_if_due(groups: Groups, group: ConsumerGroup, limits: ConsumerLimits, outcome: Outcome, now_ms: int) -> None:
    """Make the target for the current epoch, now or when the time since the last one is up."""
    if group.assignment_epoch >= group.group_epoch or not group.members:
        return
    due_ms = assignment_due_ms(group, limits)
    if now_ms < due_ms:
        outcome.wake((ASSIGN_TIMER, group.group_id), due_ms)
        return
    preferred = group.preferred_assignor()
    assignor = ASSIGNORS[preferred if preferred in limits.assignors else limits.assignors[0]]
    targets = assignor(group_spec(group, groups.metadata))
    for member_id in sorted(group.members):
        target = targets.get(member_id, {})
        if group.targets.get(member_id) != target:
            emit_target(groups, group, member_id, target, outcome)
    emit_target_epoch(groups, group.group_id, group.group_epoch, now_ms, outcome)


def assignment_due_ms(group: ConsumerGroup, limits: ConsumerLimits) -> int:
    """When the next target may be made."""
    return group.assignment_timestamp_ms + limits.assignment_interval_ms if group.assignment_timestamp_ms else 0


def emit_target(groups: Groups, group: ConsumerGroup, member_id: str, target: Target, outcome: Outcome) -> None:
    """Give a member another target."""
    topics = tuple(
        TopicPartition(topic_id=topic_id, partitions=tuple(sorted(target[topic_id]))) for topic_id in sorted(target)
    )
    groups.emit(
        outcome,
        ConsumerGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics),
    )


def emit_target_epoch(groups: Groups, group_id: str, epoch: int, timestamp_ms: int, outcome: Outcome) -> None:
    """Say for which epoch the targets are."""
    groups.emit(
        outcome,
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def group_spec(group: ConsumerGroup, metadata: Metadata) -> GroupSpec:
    """The group as an assignor sees it."""
    by_subscription: dict[tuple[frozenset[str], str], frozenset[UUID]] = {}
    members = {}
    for member_id, member in group.members.items():
        subscription = (member.topics, member.regex)
        if subscription not in by_subscription:
            by_subscription[subscription] = topic_ids(group.topics_of(member), metadata)
        members[member_id] = MemberSpec(
            topics=by_subscription[subscription],
            target=group.targets.get(member_id, {}),
            instance_id=member.instance_id,
        )
    read = frozenset().union(*by_subscription.values())
    counts = {topic_id: len(metadata.topics_by_id[topic_id].partitions) for topic_id in read}
    return GroupSpec(members=members, partition_counts=counts, homogeneous=group.is_homogeneous)
