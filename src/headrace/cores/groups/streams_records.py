"""How the records of streams groups change them: the one place where they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headrace.cores.groups.consumer_group import NO_ASSIGNMENT_EPOCH
from headrace.cores.groups.consumer_records import GONE_EPOCH
from headrace.cores.groups.streams_group import StreamsGroup
from headrace.cores.groups.streams_member import StreamsMember
from headrace.cores.groups.streams_tasks import NO_TASKS, Tasks
from headrace.model.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    TaskIds,
)

if TYPE_CHECKING:
    from headrace.cores.groups.shard import Groups


def _metadata(groups: Groups, key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None) -> None:
    group = groups.told_of(StreamsGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        del groups.groups[key.group_id]
    else:
        group.group_epoch = value.epoch
        group.metadata_hash = value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        configs = value.last_assignment_configs or ()
        group.assignment_configs = tuple(sorted((config.key, config.value) for config in configs))


def _topology(groups: Groups, key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None) -> None:
    group = groups.told_of(StreamsGroup, key.group_id, create=value is not None)
    if group is not None:
        group.set_topology(value)


def _member(groups: Groups, key: StreamsGroupMemberMetadataKey, value: StreamsGroupMemberMetadataValue | None) -> None:
    group = groups.told_of(StreamsGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        group.remove(key.member_id)
    else:
        old = group.members.get(key.member_id) or StreamsMember(member_id=key.member_id)
        group.put(old.with_metadata(value))


def _current(
    groups: Groups,
    key: StreamsGroupCurrentMemberAssignmentKey,
    value: StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    group = groups.told_of(StreamsGroup, key.group_id, create=value is not None)
    if group is None:
        return
    old = group.members.get(key.member_id)
    if value is not None:
        group.put((old or StreamsMember(member_id=key.member_id)).with_assignment(value))
    elif old is not None:
        gone = replace(
            old,
            member_epoch=GONE_EPOCH,
            previous_member_epoch=GONE_EPOCH,
            assigned=NO_TASKS,
            pending_revocation=NO_TASKS,
            epochs={},
        )
        group.put(gone)


def _target(
    groups: Groups,
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    group = groups.told_of(StreamsGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = Tasks(
            active=_tasks(value.active_tasks), standby=_tasks(value.standby_tasks), warmup=_tasks(value.warmup_tasks)
        )


def _tasks(tasks: tuple[TaskIds, ...]) -> dict[str, frozenset[int]]:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks if each.partitions}


def _target_metadata(
    groups: Groups,
    key: StreamsGroupTargetAssignmentMetadataKey,
    value: StreamsGroupTargetAssignmentMetadataValue | None,
) -> None:
    group = groups.told_of(StreamsGroup, key.group_id, create=value is not None)
    if group is not None:
        group.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


REPLAY: dict[type, Callable[[Groups, Any, Any], None]] = {
    StreamsGroupMetadataKey: _metadata,
    StreamsGroupTopologyKey: _topology,
    StreamsGroupMemberMetadataKey: _member,
    StreamsGroupCurrentMemberAssignmentKey: _current,
    StreamsGroupTargetAssignmentMemberKey: _target,
    StreamsGroupTargetAssignmentMetadataKey: _target_metadata,
}
