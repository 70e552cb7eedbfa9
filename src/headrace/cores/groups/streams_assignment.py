"""Raising a streams group's epoch, and making the target assignment for it.

The target is what every member is to have in the end; only what changed of it is written. A group that was empty waits
a while for more members before its first target, and between two targets lies an interval, so that many members coming
and going at once do not each move everyone's tasks. A target that had to wait is made at the first heartbeat after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.groups.streams_assignor import StreamsMemberSpec, SubtopologySpec, assign
from headrace.cores.groups.streams_tasks import NO_TASKS, TaskIds, Tasks
from headrace.cores.groups.streams_topology import Status, StatusCode
from headrace.model.streams_group_records import (
    LastAssignmentConfig,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
)
from headrace.model.streams_group_records import (
    TaskIds as TaskIdsRecord,
)

if TYPE_CHECKING:
    from headrace.cores.groups.shard import Groups
    from headrace.cores.groups.streams_group import StreamsGroup
    from headrace.cores.groups.streams_limits import StreamsLimits
    from headrace.cores.groups.streams_topology import ConfiguredTopology
    from headrace.cores.outcome import Outcome


def raise_epoch(
    groups: Groups,
    group: StreamsGroup,
    outcome: Outcome,
    *,
    metadata_hash: int,
    validated_topology_epoch: int,
    configs: tuple[tuple[str, str], ...],
) -> None:
    """Note that something has changed, and what everything is like now."""
    value = StreamsGroupMetadataValue(
        epoch=group.group_epoch + 1,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=tuple(LastAssignmentConfig(key=key, value=value) for key, value in configs),
    )
    groups.emit(outcome, StreamsGroupMetadataKey(group_id=group.group_id), value)


def assign_if_due(
    groups: Groups, group: StreamsGroup, limits: StreamsLimits, outcome: Outcome, now_ms: int
) -> Status | None:
    """Make the target for the current epoch, or tell why it has to wait."""
    if now_ms < group.delayed_until_ms:
        return _delayed("Assignment delayed due to the configured initial rebalance delay.")
    if group.assignment_epoch >= group.group_epoch:
        return None
    if group.assignment_timestamp_ms and now_ms < group.assignment_timestamp_ms + limits.assignment_interval_ms:
        return _delayed("Assignment delayed due to the configured assignment interval.")
    assert group.configured is not None
    targets = _targets(group, group.configured, limits.standby_replicas)
    for member_id in sorted(group.members):
        target = targets.get(member_id, NO_TASKS)
        if group.targets.get(member_id) != target:
            _emit_target(groups, group.group_id, member_id, target, outcome)
    groups.emit(
        outcome,
        StreamsGroupTargetAssignmentMetadataKey(group_id=group.group_id),
        StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=group.group_epoch, assignment_timestamp=now_ms),
    )
    return None


def _delayed(sentence: str) -> Status:
    return Status(code=StatusCode.ASSIGNMENT_DELAYED, detail=sentence)


def _targets(group: StreamsGroup, configured: ConfiguredTopology, standby_replicas: int) -> dict[str, Tasks]:
    """Who is to have which tasks; nobody any as long as topics are missing."""
    if not configured.is_ready:
        return {}
    members = {
        member_id: StreamsMemberSpec(process_id=member.process_id, target=group.target_of(member_id))
        for member_id, member in group.members.items()
    }
    subtopologies = {
        name: SubtopologySpec(tasks=configured.task_counts[name], is_stateful=bool(each.state_changelog_topics))
        for name, each in configured.subtopologies.items()
    }
    return assign(members, subtopologies, standby_replicas)


def _emit_target(groups: Groups, group_id: str, member_id: str, target: Tasks, outcome: Outcome) -> None:
    groups.emit(
        outcome,
        StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        StreamsGroupTargetAssignmentMemberValue(
            active_tasks=_to_record(target.active),
            standby_tasks=_to_record(target.standby),
            warmup_tasks=_to_record(target.warmup),
        ),
    )


def _to_record(tasks: TaskIds) -> tuple[TaskIdsRecord, ...]:
    return tuple(TaskIdsRecord(subtopology_id=name, partitions=tuple(sorted(tasks[name]))) for name in sorted(tasks))
