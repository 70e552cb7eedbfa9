"""The share group records of `__consumer_offsets`, in Kafka's names; `wire` knows how each looks in bytes."""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct

from headrace.model.ids import ZERO_ID


class TopicInfo(Struct, frozen=True, kw_only=True, gc=False):
    """A topic."""

    topic_id: UUID = ZERO_ID
    topic_name: str = ""


class TopicPartitionsInfo(Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic, by id and name."""

    topic_id: UUID = ZERO_ID
    topic_name: str = ""
    partitions: tuple[int, ...] = ()


class TopicPartitions(Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic, with the epochs they were given in where that is known."""

    topic_id: UUID = ZERO_ID
    partitions: tuple[int, ...] = ()


class TopicPartition(Struct, frozen=True, kw_only=True, gc=False):
    """Partitions of one topic."""

    topic_id: UUID = ZERO_ID
    partitions: tuple[int, ...] = ()


class ShareGroupMemberMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member of a share group."""

    group_id: str = ""
    member_id: str = ""


class ShareGroupMemberMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """What a member of a share group told about itself."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()


class ShareGroupMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A share group."""

    group_id: str = ""


class ShareGroupMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """A share group's epoch."""

    epoch: int = 0
    metadata_hash: int = 0


class ShareGroupTargetAssignmentMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A share group whose target assignment was made."""

    group_id: str = ""


class ShareGroupTargetAssignmentMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """For which group epoch the target assignment was made."""

    assignment_epoch: int = 0
    assignment_timestamp: int = 0


class ShareGroupTargetAssignmentMemberKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member of a share group with a target."""

    group_id: str = ""
    member_id: str = ""


class ShareGroupTargetAssignmentMemberValue(Struct, frozen=True, kw_only=True, gc=False):
    """What a member is to read from."""

    topic_partitions: tuple[TopicPartition, ...] = ()


class ShareGroupCurrentMemberAssignmentKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member of a share group that reads."""

    group_id: str = ""
    member_id: str = ""


class ShareGroupCurrentMemberAssignmentValue(Struct, frozen=True, kw_only=True, gc=False):
    """What a member reads from now, and its epochs."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()


class ShareGroupStatePartitionMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A share group whose partitions have a state."""

    group_id: str = ""


class ShareGroupStatePartitionMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """Which partitions of a share group have a state, or are about to get or lose it."""

    initializing_topics: tuple[TopicPartitionsInfo, ...] = ()
    initialized_topics: tuple[TopicPartitionsInfo, ...] = ()
    deleting_topics: tuple[TopicInfo, ...] = ()
