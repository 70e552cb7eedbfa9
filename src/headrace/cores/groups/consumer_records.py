"""How the records of consumer groups change them: the one place where they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headrace.cores.groups.consumer_group import NO_ASSIGNMENT_EPOCH, ConsumerGroup, ResolvedRegex
from headrace.cores.groups.consumer_member import ConsumerMember
from headrace.model.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from headrace.cores.groups.shard import Groups

GONE_EPOCH = -1


def _metadata(groups: Groups, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None) -> None:
    group = groups.told_of(ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        del groups.groups[key.group_id]
    else:
        group.group_epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _partition_metadata(
    groups: Groups, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
) -> None:
    group = groups.told_of(ConsumerGroup, key.group_id, create=value is not None)
    if group is not None:
        group.has_partition_metadata = value is not None


def _member(
    groups: Groups, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    group = groups.told_of(ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        group.remove(key.member_id)
    else:
        old = group.members.get(key.member_id) or ConsumerMember(member_id=key.member_id)
        group.put(old.with_metadata(value))


def _current(
    groups: Groups,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    group = groups.told_of(ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    old = group.members.get(key.member_id)
    if value is not None:
        group.put((old or ConsumerMember(member_id=key.member_id)).with_assignment(value))
    elif old is not None:
        gone = replace(
            old, member_epoch=GONE_EPOCH, previous_member_epoch=GONE_EPOCH, assigned={}, pending_revocation={}
        )
        group.put(gone)


def _target(
    groups: Groups,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    group = groups.told_of(ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions if topic.partitions
        }


def _target_metadata(
    groups: Groups,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group = groups.told_of(ConsumerGroup, key.group_id, create=value is not None)
    if group is not None:
        group.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _regex(
    groups: Groups, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    group = groups.told_of(ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        group.resolved.pop(key.regular_expression, None)
    else:
        group.resolved[key.regular_expression] = ResolvedRegex(
            topics=frozenset(value.topics), version=value.version, timestamp_ms=value.timestamp
        )


REPLAY: dict[type, Callable[[Groups, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _metadata,
    ConsumerGroupPartitionMetadataKey: _partition_metadata,
    ConsumerGroupMemberMetadataKey: _member,
    ConsumerGroupCurrentMemberAssignmentKey: _current,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupTargetAssignmentMetadataKey: _target_metadata,
    ConsumerGroupRegularExpressionKey: _regex,
}
