"""One consumer group (KIP-848): its members, the epochs it has been through, and who owns which partition.

Every change of members, subscriptions or topics raises the group epoch. The target assignment is then made for that
epoch (assignment epoch), and each member follows at its own pace (member epoch):

    Empty -> Assigning -> Reconciling -> Stable
    no members   group epoch >      a member is      all members are
                 assignment epoch   not there yet    where they should be

All of it is in the log; only what timers need is not. Records are the one thing that changes a group: see `REPLAY` in
`consumer_records`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec import Struct

from headrace.cores.groups.assignors.spec import Target
from headrace.cores.groups.consumer_member import ConsumerMember
from headrace.cores.groups.consumer_protocol import PROTOCOL_TYPE
from headrace.cores.groups.group import GroupType
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.outcome import Entry

FIRST_EPOCH = 1
"""The epoch of a group that nobody has joined yet, and of its empty assignment."""

NO_ASSIGNMENT_EPOCH = -1


class ResolvedRegex(Struct, frozen=True, kw_only=True):
    """What a regular expression matched."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup:
    """The books of one group."""

    __slots__ = (
        "_owners",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "has_partition_metadata",
        "is_stale",
        "join_deadlines_ms",
        "members",
        "metadata_hash",
        "names",
        "regexes",
        "resolved",
        "resolved_at_ms",
        "revocations",
        "sessions_ms",
        "static_ids",
        "sync_deadlines_ms",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_ids: dict[str, str] = {}
        """Member ids by instance id."""
        self.targets: dict[str, Target] = {}
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.resolved: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        """Whether the log has a record that Kafka before 4.1 wrote, to be forgotten when there is occasion."""
        self.names: Counter[str] = Counter()
        """How many members subscribed to a topic by its name."""
        self.regexes: Counter[str] = Counter()
        """How many members subscribed by an expression."""
        self._owners: dict[tuple[UUID, int], str] = {}
        # What follows is lost with the coordinator.
        self.sessions_ms: dict[str, int] = {}
        """Until when a member must have sent a heartbeat."""
        self.revocations: dict[str, tuple[int, int]] = {}
        """Until when a member must have given up partitions, and the epoch it leaves by that."""
        self.join_deadlines_ms: dict[str, int] = {}
        self.sync_deadlines_ms: dict[str, int] = {}
        """Until when members on the classic protocol must have joined again, and asked for their assignment."""
        self.is_stale = True
        """Whether topics may have changed since the hash was taken."""
        self.resolved_at_ms = 0

    # --- what every group is asked

    @property
    def kind(self) -> GroupType:
        """Consumer."""
        return GroupType.CONSUMER

    @property
    def state_name(self) -> str:
        """Its state in the words that the protocol uses."""
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        stable = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return "Stable" if stable else "Reconciling"

    @property
    def protocol_type(self) -> str:
        """Its members are consumers."""
        return PROTOCOL_TYPE

    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic, by name or because an expression matched it."""
        return topic in self.names or any(topic in resolved.topics for resolved in self.resolved.values())

    def expires_from(self, commit_timestamp_ms: int) -> int | None:
        """From when on the retention of an offset counts."""
        return commit_timestamp_ms

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> Callable[[str, UUID, int], None] | None:
        """KafkaError unless a member may commit; one in an older epoch may only for what it has owned since then.

        A member that has just moved on may still have commits under way for partitions it keeps (KIP-1251).
        """
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch == -1 and not member_id and instance_id is None:
            return None
        member = self.require(member_id)
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _wrong_epoch(member, f"{epoch} is newer than current member epoch {member.member_epoch}.")

        def check_partition(topic: str, topic_id: UUID, partition: int) -> None:
            got = member.epoch_of(topic_id, partition)
            if got is None:
                raise _wrong_epoch(
                    member, f"{epoch}: partition {topic}-{partition} is not assigned or pending revocation for member."
                )
            if epoch < got:
                raise _wrong_epoch(
                    member, f"{epoch} is older than assignment epoch {got} for partition {topic}-{partition}."
                )

        return check_partition

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """KafkaError unless a member is in this epoch; None and -1 ask without claiming to be one."""
        if member_id is None and epoch < 0:
            return
        member = self.require(member_id or "")
        if epoch != member.member_epoch:
            raise _wrong_epoch(member, f"{epoch} does not match the expected member epoch {member.member_epoch}.")

    def check_delete(self) -> None:
        """KafkaError unless the group is empty."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def tombstones(self) -> list[Entry]:
        """The records that make the log forget the group; members' before the group's."""
        group_id = self.group_id
        members = sorted(self.members)
        return [
            *(
                (ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member), None)
                for member in members
            ),
            *(
                (ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member), None)
                for member in sorted(self.targets)
            ),
            (ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
            *((ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member), None) for member in members),
            *(
                (ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)
                for regex in sorted(self.resolved)
            ),
            (ConsumerGroupPartitionMetadataKey(group_id=group_id), None),
            (ConsumerGroupMetadataKey(group_id=group_id), None),
        ]

    def hard_state(self) -> dict[str, Any]:
        """What a replay of the log makes of the group."""
        return {
            "group_epoch": self.group_epoch,
            "metadata_hash": self.metadata_hash,
            "assignment": (self.assignment_epoch, self.assignment_timestamp_ms),
            "members": dict(self.members),
            "static_ids": dict(self.static_ids),
            "targets": dict(self.targets),
            "resolved": dict(self.resolved),
            "names": dict(self.names),
            "regexes": dict(self.regexes),
            "owners": dict(self._owners),
            "has_partition_metadata": self.has_partition_metadata,
        }

    # --- questions

    def require(self, member_id: str) -> ConsumerMember:
        """A member that must be there."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that goes by an instance id."""
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def owner(self, topic_id: UUID, partition: int) -> str | None:
        """Who owns a partition, or has not confirmed yet that it gave it up."""
        return self._owners.get((topic_id, partition))

    def subscribed_topics(self) -> set[str]:
        """All topics that some member reads, whether they exist or not."""
        return set(self.names).union(*(resolved.topics for resolved in self.resolved.values()))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics one member reads."""
        resolved = self.resolved.get(member.regex)
        return member.topics if resolved is None else member.topics | resolved.topics

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members have the same subscription."""
        count = len(self.members)
        if self.regexes:
            return not self.names and set(self.regexes.values()) == {count}
        return all(subscribers == count for subscribers in self.names.values())

    def preferred_assignor(self) -> str | None:
        """The assignor that most members ask for."""
        votes = Counter(member.server_assignor for member in self.members.values() if member.server_assignor)
        return votes.most_common(1)[0][0] if votes else None

    @property
    def classic_members(self) -> list[ConsumerMember]:
        """Members that still speak the classic protocol."""
        return [member for member in self.members.values() if member.classic is not None]

    # --- book-keeping, for replay

    def put(self, member: ConsumerMember) -> None:
        """Have a member as it is now."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, -1)
        self._count(member, +1)
        self._disown(old)
        for topic_id, partition in _partitions(member):
            self._owners[topic_id, partition] = member.member_id
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Strike a member off."""
        member = self.members.pop(member_id, None)
        self._count(member, -1)
        self._disown(member)
        if member is not None and self.static_ids.get(member.instance_id or "") == member_id:
            del self.static_ids[member.instance_id or ""]

    def _count(self, member: ConsumerMember | None, by: int) -> None:
        if member is None:
            return
        _add(self.names, member.topics, by)
        _add(self.regexes, [member.regex] if member.regex else [], by)

    def _disown(self, member: ConsumerMember | None) -> None:
        """Free what a member owned, unless somebody else has it by now."""
        if member is None:
            return
        for partition in _partitions(member):
            if self._owners.get(partition) == member.member_id:
                del self._owners[partition]


def _partitions(member: ConsumerMember) -> list[tuple[UUID, int]]:
    """All that a member owns or has not given up yet."""
    return [
        (topic_id, partition)
        for owned in (member.assigned, member.pending_revocation)
        for topic_id, epochs in owned.items()
        for partition in epochs
    ]


def _add(counter: Counter[str], names: Any, by: int) -> None:
    """Count up or down; what nobody has is not in the counter."""
    for name in names:
        counter[name] += by
        if not counter[name]:
            del counter[name]


def _wrong_epoch(member: ConsumerMember, what: str) -> KafkaError:
    """The error for a commit or fetch that is out of its time, in the words of the member's protocol."""
    if member.classic is not None:
        return KafkaError(ErrorCode.ILLEGAL_GENERATION, f"Received generation id {what}")
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, f"Received member epoch {what}")
