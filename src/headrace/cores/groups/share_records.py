"""How the records of share groups change them, the one place where they do; and how such records are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec.structs import replace

from headrace.cores.groups.share_group import NOTHING, Assignment, ShareGroup, ShareMember, StateTopics, TopicState
from headrace.model.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartition,
    TopicPartitions,
    TopicPartitionsInfo,
)

if TYPE_CHECKING:
    from headrace.cores.groups.shard import Groups


def _metadata(groups: Groups, key: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None) -> None:
    group = groups.told_of(ShareGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        del groups.groups[key.group_id]
    else:
        group.group_epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _member(groups: Groups, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None) -> None:
    group = groups.told_of(ShareGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        group.members.pop(key.member_id, None)
        return
    group.members[key.member_id] = replace(
        group.members.get(key.member_id, ShareMember()),
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=value.subscribed_topic_names,
    )


def _target_epoch(
    groups: Groups, key: ShareGroupTargetAssignmentMetadataKey, value: ShareGroupTargetAssignmentMetadataValue | None
) -> None:
    group = groups.told_of(ShareGroup, key.group_id, create=value is not None)
    if group is not None:
        group.assignment_epoch = 0 if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _target(
    groups: Groups, key: ShareGroupTargetAssignmentMemberKey, value: ShareGroupTargetAssignmentMemberValue | None
) -> None:
    group = groups.told_of(ShareGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = _assignment(value.topic_partitions)


def _current(
    groups: Groups, key: ShareGroupCurrentMemberAssignmentKey, value: ShareGroupCurrentMemberAssignmentValue | None
) -> None:
    group = groups.told_of(ShareGroup, key.group_id, create=value is not None)
    if group is None:
        return
    member = group.members.get(key.member_id)
    if value is None:
        if member is not None:
            group.members[key.member_id] = replace(member, epoch=0, previous_epoch=0, assigned=NOTHING)
        return
    group.members[key.member_id] = replace(
        member or ShareMember(),
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=_assignment(value.assigned_partitions),
    )


def _state_topics(
    groups: Groups, key: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue | None
) -> None:
    group = groups.told_of(ShareGroup, key.group_id, create=value is not None)
    if group is None:
        return
    group.state_topics = (
        StateTopics()
        if value is None
        else StateTopics(
            initializing=_topics(value.initializing_topics),
            initialized=_topics(value.initialized_topics),
            deleting={topic.topic_id: topic.topic_name for topic in value.deleting_topics},
        )
    )


def _assignment(topics: Iterable[TopicPartition | TopicPartitions]) -> Assignment:
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)


def _topics(topics: Iterable[TopicPartitionsInfo]) -> dict[UUID, TopicState]:
    return {
        topic.topic_id: TopicState(name=topic.topic_name, partitions=frozenset(topic.partitions)) for topic in topics
    }


REPLAY: Mapping[type, Callable[[Any, Any, Any], None]] = {
    ShareGroupMetadataKey: _metadata,
    ShareGroupMemberMetadataKey: _member,
    ShareGroupTargetAssignmentMetadataKey: _target_epoch,
    ShareGroupTargetAssignmentMemberKey: _target,
    ShareGroupCurrentMemberAssignmentKey: _current,
    ShareGroupStatePartitionMetadataKey: _state_topics,
}


# --- making records


def by_topic(assignment: Assignment) -> list[tuple[UUID, tuple[int, ...]]]:
    """An assignment topic by topic, in an order that does not change from run to run."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(assignment):
        topics.setdefault(topic_id, []).append(index)
    return [(topic_id, tuple(indexes)) for topic_id, indexes in topics.items()]


def target_value(assignment: Assignment) -> ShareGroupTargetAssignmentMemberValue:
    """What a member is to read."""
    return ShareGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TopicPartition(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_topic(assignment)
        )
    )


def current_value(assignment: Assignment, epoch: int, previous_epoch: int) -> ShareGroupCurrentMemberAssignmentValue:
    """What a member reads."""
    return ShareGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=previous_epoch,
        assigned_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_topic(assignment)
        ),
    )


def state_topics_value(topics: StateTopics) -> ShareGroupStatePartitionMetadataValue:
    """Which partitions have a delivery state."""
    return ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(topics.initializing),
        initialized_topics=_infos(topics.initialized),
        deleting_topics=tuple(
            TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in sorted(topics.deleting.items())
        ),
    )


def _infos(topics: Mapping[UUID, TopicState]) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.name, partitions=tuple(sorted(topic.partitions)))
        for topic_id, topic in sorted(topics.items())
        if topic.partitions
    )
