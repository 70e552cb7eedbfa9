"""Offsets, classic and consumer groups as records of `__consumer_offsets`, in Kafka's names; `wire` has their bytes."""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct

from headrace.model.ids import ZERO_ID


class TopicPartitions(Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic, with the epochs they were given in where that is known."""

    topic_id: UUID = ZERO_ID
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = None


class TopicPartition(Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic."""

    topic_id: UUID = ZERO_ID
    partitions: tuple[int, ...] = ()


class ClassicProtocol(Struct, frozen=True, kw_only=True, gc=False):
    """One assignment strategy a classic member knows, with its metadata."""

    name: str = ""
    metadata: bytes = b""


class ClassicMemberMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """What a member on the classic protocol told when it joined."""

    session_timeout_ms: int = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


class PartitionMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """The racks of one partition."""

    partition: int = 0
    racks: tuple[str, ...] = ()


class TopicMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """One topic as a group saw it."""

    topic_id: UUID = ZERO_ID
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: tuple[PartitionMetadata, ...] = ()


class MemberMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """One member of a classic group."""

    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""


class OffsetCommitKey(Struct, frozen=True, kw_only=True, gc=False):
    """Whose offset of which partition."""

    group: str = ""
    topic: str = ""
    partition: int = 0


class OffsetCommitValue(Struct, frozen=True, kw_only=True, gc=False):
    """A committed offset."""

    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: UUID = ZERO_ID


class GroupMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A classic group."""

    group: str = ""


class GroupMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """A classic group as it was when its leader had assigned its partitions, or when it became empty."""

    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: int = -1
    members: tuple[MemberMetadata, ...] = ()


class ConsumerGroupMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A consumer group."""

    group_id: str = ""


class ConsumerGroupMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """A consumer group's epoch."""

    epoch: int = 0
    metadata_hash: int = 0


class ConsumerGroupPartitionMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A consumer group, in a record that Kafka before 4.1 wrote."""

    group_id: str = ""


class ConsumerGroupPartitionMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """The topics a group subscribed to, as Kafka before 4.1 noted them."""

    topics: tuple[TopicMetadata, ...] = ()


class ConsumerGroupMemberMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member of a consumer group."""

    group_id: str = ""
    member_id: str = ""


class ConsumerGroupMemberMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """What a member told about itself and wants."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata()
    """Kafka's default is an empty one, so that None, a member of the new protocol, stands in the record."""


class ConsumerGroupTargetAssignmentMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A consumer group whose target assignment was made."""

    group_id: str = ""


class ConsumerGroupTargetAssignmentMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """For which group epoch the target assignment was made."""

    assignment_epoch: int = 0
    assignment_timestamp: int = 0


class ConsumerGroupTargetAssignmentMemberKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member with a target."""

    group_id: str = ""
    member_id: str = ""


class ConsumerGroupTargetAssignmentMemberValue(Struct, frozen=True, kw_only=True, gc=False):
    """What a member is to own in the end."""

    topic_partitions: tuple[TopicPartition, ...] = ()


class ConsumerGroupCurrentMemberAssignmentKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member that owns partitions."""

    group_id: str = ""
    member_id: str = ""


class ConsumerGroupCurrentMemberAssignmentValue(Struct, frozen=True, kw_only=True, gc=False):
    """What a member owns now and must give up, and its epochs."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()
    partitions_pending_revocation: tuple[TopicPartitions, ...] = ()


class ConsumerGroupRegularExpressionKey(Struct, frozen=True, kw_only=True, gc=False):
    """A regular expression that members of a group subscribed to."""

    group_id: str = ""
    regular_expression: str = ""


class ConsumerGroupRegularExpressionValue(Struct, frozen=True, kw_only=True, gc=False):
    """The topics a regular expression matched."""

    topics: tuple[str, ...] = ()
    version: int = 0
    timestamp: int = 0
