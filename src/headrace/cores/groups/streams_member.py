"""One member of a streams group (KIP-1071): what it told of itself, the tasks it has, and how far it has followed.

A member's epoch is the group epoch it has caught up with. On the way there it first gives up tasks it is not to have
any more (UNREVOKED_TASKS, in an older epoch), then gets those that others have given up (UNRELEASED_TASKS while some
have not yet), then is STABLE.
Members are values: a change makes a new one, and its records are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from msgspec import Struct, field
from msgspec.structs import replace

from headrace.cores.groups.consumer_member import JOINING_EPOCH
from headrace.cores.groups.streams_tasks import NO_TASKS, TaskId, TaskIds, Tasks, each_task
from headrace.model.streams_group_records import (
    Endpoint,
    EpochTaskIds,
    KeyValue,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)


class MemberState(IntEnum):
    """How a member stands to its target, by Kafka's numbers."""

    STABLE = 0
    UNREVOKED_TASKS = 1
    UNRELEASED_TASKS = 2
    UNKNOWN = 127
    """Written by a version of tomorrow."""


_STATES = {int(state): state for state in MemberState}


class StreamsMember(Struct, frozen=True, kw_only=True):
    """A member as the log knows it."""

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """Members of one process share its state directory: a task is there once, in whatever role."""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    """In order."""
    assigned: Tasks = NO_TASKS
    pending_revocation: Tasks = NO_TASKS
    epochs: Mapping[TaskId, int] = field(default_factory=dict)
    """In which epoch it got each active task that it has. A commit from before that epoch is not its own."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has exactly its target of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    # --- records

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
        """The member as a record says it described itself."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=value.user_endpoint,
            client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
        )

    def metadata_record(self) -> StreamsGroupMemberMetadataValue:
        """What it told of itself, as a record."""
        return StreamsGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=self.user_endpoint,
            client_tags=tuple(KeyValue(key=key, value=value) for key, value in self.client_tags),
        )

    def with_assignment(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
        """The member with the tasks that a record says it has."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=_STATES.get(value.state, MemberState.UNKNOWN),
            assigned=Tasks(
                active=_from_record(value.active_tasks),
                standby=_from_record(value.standby_tasks),
                warmup=_from_record(value.warmup_tasks),
            ),
            pending_revocation=Tasks(
                active=_from_record(value.active_tasks_pending_revocation),
                standby=_from_record(value.standby_tasks_pending_revocation),
                warmup=_from_record(value.warmup_tasks_pending_revocation),
            ),
            epochs={
                **_epochs(value.active_tasks_pending_revocation, value.member_epoch),
                **_epochs(value.active_tasks, value.member_epoch),
            },
        )

    def assignment_record(self) -> StreamsGroupCurrentMemberAssignmentValue:
        """The tasks it has, as a record."""
        return StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=int(self.state),
            active_tasks=self._with_epochs(self.assigned.active),
            standby_tasks=_to_record(self.assigned.standby),
            warmup_tasks=_to_record(self.assigned.warmup),
            active_tasks_pending_revocation=self._with_epochs(self.pending_revocation.active),
            standby_tasks_pending_revocation=_to_record(self.pending_revocation.standby),
            warmup_tasks_pending_revocation=_to_record(self.pending_revocation.warmup),
        )

    def _with_epochs(self, tasks: TaskIds) -> tuple[EpochTaskIds, ...]:
        return tuple(
            EpochTaskIds(
                subtopology_id=subtopology,
                partitions=tuple(sorted(tasks[subtopology])),
                assignment_epochs=tuple(
                    self.epochs[subtopology, partition] for partition in sorted(tasks[subtopology])
                ),
            )
            for subtopology in sorted(tasks)
        )


def epochs_of(tasks: Tasks, pending: Tasks, known: Mapping[TaskId, int], epoch: int) -> dict[TaskId, int]:
    """The epochs of all active tasks; those that are not known are new in `epoch`."""
    return {task: known.get(task, epoch) for part in (tasks, pending) for task in each_task(part.active)}


def _to_record(tasks: TaskIds) -> tuple[EpochTaskIds, ...]:
    return tuple(
        EpochTaskIds(subtopology_id=subtopology, partitions=tuple(sorted(tasks[subtopology])))
        for subtopology in sorted(tasks)
    )


def _from_record(tasks: tuple[EpochTaskIds, ...]) -> dict[str, frozenset[int]]:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks if each.partitions}


def _epochs(tasks: tuple[EpochTaskIds, ...], member_epoch: int) -> dict[TaskId, int]:
    """When active tasks were given; where a record does not say, the member's epoch stands for it."""
    fallback = max(member_epoch, 0)
    epochs: dict[TaskId, int] = {}
    for each in tasks:
        known = each.assignment_epochs
        if known is None or len(known) != len(each.partitions):
            known = (fallback,) * len(each.partitions)
        epochs |= {
            (each.subtopology_id, partition): epoch for partition, epoch in zip(each.partitions, known, strict=True)
        }
    return epochs
