"""One member of a consumer group (KIP-848): what it wants, what it owns, and how far it has followed its group.

A member's epoch is the group epoch it has caught up with. On the way there it first gives up what it is not to own any
more (UNREVOKED_PARTITIONS, in its old epoch), then gets what others have given up (UNRELEASED_PARTITIONS while some
have not yet), then is STABLE.
Members are values: a change makes a new one, and its records are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import replace

from headrace.model.group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)

JOINING_EPOCH = 0
"""The epoch of one who (re)joins."""

LEAVING_EPOCH = -1
LEAVING_STATIC_EPOCH = -2
"""The epoch of a static member that leaves for a while; what it owns waits for it."""

OwnedPartitions = Mapping[UUID, Mapping[int, int]]
"""By topic and partition: the epoch in which the member got it. A commit from before that epoch is not its own."""


class MemberState(IntEnum):
    """How a member stands to its target, by Kafka's numbers."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127
    """Written by a version of tomorrow."""


_STATES = {int(state): state for state in MemberState}


class ConsumerMember(Struct, frozen=True, kw_only=True):
    """A member as the log knows it."""

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    server_assignor: str | None = None
    assigned: OwnedPartitions = field(default_factory=dict)
    pending_revocation: OwnedPartitions = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None
    """Set while the member speaks the classic protocol."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it owns exactly its target of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def with_epoch(self, epoch: int, **changes: object) -> ConsumerMember:
        """The member in another epoch, knowing which one it comes from."""
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch, **changes)

    def epoch_of(self, topic_id: UUID, partition: int) -> int | None:
        """In which epoch it got a partition that it owns; None if it does not."""
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    # --- records

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        """The member as a record says it wants to be."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def metadata_record(self) -> ConsumerGroupMemberMetadataValue:
        """What it wants, as a record."""
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=tuple(sorted(self.topics)),
            subscribed_topic_regex=self.regex,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        """The member with what a record says it owns."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=_STATES.get(value.state, MemberState.UNKNOWN),
            assigned=_from_record(value.assigned_partitions, value.member_epoch),
            pending_revocation=_from_record(value.partitions_pending_revocation, value.member_epoch),
        )

    def assignment_record(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """What it owns, as a record."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=int(self.state),
            assigned_partitions=_to_record(self.assigned),
            partitions_pending_revocation=_to_record(self.pending_revocation),
        )


def _to_record(partitions: OwnedPartitions) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(
            topic_id=topic_id,
            partitions=tuple(sorted(partitions[topic_id])),
            assignment_epochs=tuple(epoch for _, epoch in sorted(partitions[topic_id].items())),
        )
        for topic_id in sorted(partitions)
    )


def _from_record(topics: tuple[TopicPartitions, ...], member_epoch: int) -> dict[UUID, dict[int, int]]:
    """Owned partitions; where a record of an older version has no epochs, the member's own stands for them."""
    fallback = max(member_epoch, 0)
    owned = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (fallback,) * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned
