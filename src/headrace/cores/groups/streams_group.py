"""One streams group (KIP-1071): its topology, its members, and who has which task.

Every change of members, topics or settings raises the group epoch. The target assignment is then made for that epoch
(assignment epoch), and each member follows at its own pace (member epoch):

    Empty -> NotReady -> Assigning -> Reconciling -> Stable
    no members   topics are     group epoch >      a member is      all members are
                 missing        assignment epoch   not there yet    where they should be

Records are the one thing that changes a group: see `REPLAY` in `streams_records`. What the topology comes to on this
cluster is not among them, it is worked out anew from the topics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace.cores.groups.consumer_group import FIRST_EPOCH
from headrace.cores.groups.group import GroupType
from headrace.cores.groups.streams_tasks import NO_TASKS, TaskId, Tasks, each_task
from headrace.cores.groups.streams_topology import read_topics, required_topics
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from headrace.cores.groups.streams_member import StreamsMember
    from headrace.cores.groups.streams_topology import ConfiguredTopology
    from headrace.cores.outcome import Entry

PROTOCOL_TYPE = "streams"

NOT_VALIDATED = -1
"""In place of the epoch of a topology whose topics are not all there."""

TopicsSeen = tuple[tuple["UUID", int] | None, ...]
"""Ids and partitions of the topics that a topology needs, in their order; None for one that is not there."""


class StreamsGroup:
    """The books of one group."""

    __slots__ = (
        "_active",
        "_holders",
        "_sources",
        "assignment_configs",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "configured",
        "delayed_until_ms",
        "endpoint_epoch",
        "group_epoch",
        "group_id",
        "members",
        "metadata_hash",
        "required_topics",
        "revocations",
        "sessions_ms",
        "shutdown_requested_by",
        "targets",
        "topics_seen",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = NOT_VALIDATED
        self.assignment_configs: tuple[tuple[str, str], ...] = ()
        """What the last target was made with, besides members and topics."""
        self.topology: StreamsGroupTopologyValue | None = None
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, Tasks] = {}
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        # What follows is counted from the above.
        self.required_topics: tuple[str, ...] = ()
        self._sources: dict[str, str] = {}
        """Subtopologies by the topics they read."""
        self._active: dict[TaskId, str] = {}
        """Which member has a task as an active one, or has not confirmed that it gave it up."""
        self._holders: dict[TaskId, dict[str, None]] = {}
        """The same for tasks in any role; members in the order in which they got it."""
        # What follows is lost with the coordinator.
        self.configured: ConfiguredTopology | None = None
        self.topics_seen: TopicsSeen = ()
        """The topics for which the topology was configured."""
        self.sessions_ms: dict[str, int] = {}
        """Until when a member must have sent a heartbeat."""
        self.revocations: dict[str, tuple[int, int]] = {}
        """Until when a member must have given up tasks, and the epoch it leaves by that."""
        self.delayed_until_ms = 0
        """When the first assignment of a group that was empty may be made."""
        self.shutdown_requested_by: str | None = None
        self.endpoint_epoch = 0
        """Raised when it changes which tasks can be asked where."""

    # --- what every group is asked

    @property
    def kind(self) -> GroupType:
        """Streams."""
        return GroupType.STREAMS

    @property
    def state_name(self) -> str:
        """Its state in the words that the protocol uses."""
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        stable = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return "Stable" if stable else "Reconciling"

    @property
    def protocol_type(self) -> str:
        """Its members run a streams application."""
        return PROTOCOL_TYPE

    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the topology reads the topic, and there is somebody to read it."""
        return bool(self.members) and topic in self._sources

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> Callable[[str, UUID, int], None] | None:
        """KafkaError unless a member may commit; one in an older epoch may only for tasks it has had since then."""
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch == -1 and not member_id and instance_id is None:
            return None
        member = self.require(member_id)
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _stale(f"Received member epoch {epoch} is newer than current member epoch {member.member_epoch}.")

        def check_partition(topic: str, topic_id: UUID, partition: int) -> None:
            del topic_id
            subtopology = self._sources.get(topic)
            if subtopology is None:
                raise _stale(f"Topic {topic} is not in the topology.")
            got = member.epochs.get((subtopology, partition))
            if got is None:
                raise _stale(f"Task {subtopology}-{partition} is not assigned or pending revocation for member.")
            if epoch < got:
                raise _stale(
                    f"Received member epoch {epoch} is older than assignment epoch {got} "
                    f"for task {subtopology}-{partition}."
                )

        return check_partition

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """KafkaError unless a member is in this epoch; None and -1 ask without claiming to be one."""
        if member_id is None and epoch < 0:
            return
        member = self.require(member_id or "")
        if epoch != member.member_epoch:
            raise _stale(
                f"The received member epoch {epoch} does not match the expected member epoch {member.member_epoch}."
            )

    def check_delete(self) -> None:
        """KafkaError unless the group is empty."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def tombstones(self) -> list[Entry]:
        """The records that make the log forget the group; members' before the group's."""
        group_id = self.group_id
        members = sorted(self.members)
        return [
            *((StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=each), None) for each in members),
            *(
                (StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=each), None)
                for each in sorted(self.targets)
            ),
            (StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
            *((StreamsGroupMemberMetadataKey(group_id=group_id, member_id=each), None) for each in members),
            (StreamsGroupMetadataKey(group_id=group_id), None),
            (StreamsGroupTopologyKey(group_id=group_id), None),
        ]

    def hard_state(self) -> dict[str, Any]:
        """What a replay of the log makes of the group."""
        return {
            "group_epoch": self.group_epoch,
            "metadata_hash": self.metadata_hash,
            "validated_topology_epoch": self.validated_topology_epoch,
            "assignment_configs": self.assignment_configs,
            "topology": self.topology,
            "members": dict(self.members),
            "targets": dict(self.targets),
            "assignment": (self.assignment_epoch, self.assignment_timestamp_ms),
            "active": dict(self._active),
            "holders": {task: set(holders) for task, holders in self._holders.items()},
            "sources": dict(self._sources),
        }

    # --- questions

    def require(self, member_id: str) -> StreamsMember:
        """A member that must be there."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def target_of(self, member_id: str) -> Tasks:
        """The tasks a member is to have."""
        return self.targets.get(member_id, NO_TASKS)

    def is_active_somewhere(self, task: TaskId) -> bool:
        """Whether some member has a task as an active one, or has not confirmed that it gave it up."""
        return task in self._active

    def is_in_process(self, task: TaskId, process_id: str) -> bool:
        """The same for a task in any role at a process."""
        return any(self.members[member_id].process_id == process_id for member_id in self._holders.get(task, ()))

    # --- book-keeping, for replay

    def set_topology(self, topology: StreamsGroupTopologyValue | None) -> None:
        """Have a topology; what it comes to is to be worked out."""
        self.topology = topology
        self.configured = None
        known = StreamsGroupTopologyValue() if topology is None else topology
        self.required_topics = tuple(dict.fromkeys(required_topics(known)))
        self._sources = {name: each.subtopology_id for each in known.subtopologies for name in read_topics(each)}

    def put(self, member: StreamsMember) -> None:
        """Have a member as it is now."""
        self._let_go(self.members.get(member.member_id))
        self.members[member.member_id] = member
        for tasks in (member.assigned, member.pending_revocation):
            self._active |= dict.fromkeys(each_task(tasks.active), member.member_id)
        for task in _all_tasks(member):
            self._holders.setdefault(task, {})[member.member_id] = None

    def remove(self, member_id: str) -> None:
        """Strike a member off."""
        self._let_go(self.members.pop(member_id, None))
        if not self.members:
            self.shutdown_requested_by = None

    def _let_go(self, member: StreamsMember | None) -> None:
        """Free what a member had, unless somebody else has it by now."""
        for task in () if member is None else _all_tasks(member):
            assert member is not None
            if self._active.get(task) == member.member_id:
                del self._active[task]
            holders = self._holders.get(task, {})
            holders.pop(member.member_id, None)
            if not holders:
                self._holders.pop(task, None)


def _all_tasks(member: StreamsMember) -> Iterator[TaskId]:
    return (
        task
        for tasks in (member.assigned, member.pending_revocation)
        for role in tasks.by_role
        for task in each_task(role)
    )


def _stale(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, sentence)
