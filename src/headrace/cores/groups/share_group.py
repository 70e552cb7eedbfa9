"""One share group (KIP-932): its members, who reads which partitions, and which partitions have a delivery state.

A share group is simpler than a consumer group: several members may read one partition at once, so nobody waits until
another has given something up, and a member takes over its target as soon as it hears of it.
Only partitions whose delivery state was begun in the share coordinator are given to members.
All of it is in the log but the sessions. Records are the one thing that changes a group: see `share_records`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec import Struct, field

from headrace.cores.groups.group import GroupType
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headrace.cores.outcome import Entry

PROTOCOL_TYPE = "share"

Partition = tuple[UUID, int]
"""A partition, by its topic's id."""

Assignment = frozenset[Partition]
NOTHING: Assignment = frozenset()


class ShareMember(Struct, kw_only=True):
    """One member."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Assignment = NOTHING


class TopicState(Struct, frozen=True, kw_only=True):
    """The partitions of a topic that have a delivery state, or are to get one."""

    name: str
    partitions: frozenset[int]


class StateTopics(Struct, frozen=True, kw_only=True):
    """Which partitions have a delivery state, by topic id."""

    initializing: Mapping[UUID, TopicState] = field(default_factory=dict)
    initialized: Mapping[UUID, TopicState] = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)


class ShareGroup:
    """The books of one group."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "initialize_deadlines_ms",
        "members",
        "metadata_hash",
        "sessions_ms",
        "state_topics",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.assignment_epoch = 0
        self.assignment_timestamp_ms = 0
        self.state_topics = StateTopics()
        # What follows is lost with the coordinator.
        self.sessions_ms: dict[str, int] = {}
        """Until when a member must have sent a heartbeat."""
        self.initialize_deadlines_ms: dict[Partition, int] = {}
        """When to ask again for the state of a partition that was asked for."""

    # --- what every group is asked

    @property
    def kind(self) -> GroupType:
        """Share."""
        return GroupType.SHARE

    @property
    def state_name(self) -> str:
        """Its state in the words that the protocol uses."""
        return "Stable" if self.members else "Empty"

    @property
    def protocol_type(self) -> str:
        """Its members are share consumers."""
        return PROTOCOL_TYPE

    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return any(topic in member.topics for member in self.members.values())

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> Callable[[str, UUID, int], None] | None:
        """A share group has no offsets to commit."""
        raise self._no_consumer_group()

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """A share group has no committed offsets."""
        raise self._no_consumer_group()

    def _no_consumer_group(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def check_delete(self) -> None:
        """KafkaError if it has members."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def tombstones(self) -> list[Entry]:
        """The records that make the log forget the group; the state of its partitions is the share coordinator's."""
        group_id = self.group_id
        gone = [entry for member_id in self.members for entry in member_tombstones(group_id, member_id)]
        return [
            *gone,
            (ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
            (ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
            (ShareGroupMetadataKey(group_id=group_id), None),
        ]

    def hard_state(self) -> Any:
        """What a replay of the log makes of the group."""
        return {
            "epochs": (self.group_epoch, self.assignment_epoch),
            "assigned_at": self.assignment_timestamp_ms,
            "metadata_hash": self.metadata_hash,
            "members": dict(self.members),
            "targets": dict(self.targets),
            "state_topics": self.state_topics,
        }

    # --- what its steps ask

    @property
    def subscribed_topics(self) -> set[str]:
        """The names that members subscribed to."""
        return {name for member in self.members.values() for name in member.topics}

    @property
    def initialized(self) -> dict[UUID, frozenset[int]]:
        """The partitions that have a delivery state."""
        return {topic_id: topic.partitions for topic_id, topic in self.state_topics.initialized.items()}


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """The records that make the log forget a member."""
    return [
        (ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]
