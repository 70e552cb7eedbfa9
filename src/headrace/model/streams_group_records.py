"""The streams group records of `__consumer_offsets`, in Kafka's names; `wire` knows how each looks in bytes."""

from __future__ import annotations

from msgspec import Struct


class CopartitionGroup(Struct, frozen=True, kw_only=True, gc=False):
    """Topics of a subtopology that must have the same number of partitions; as places in its lists."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class TopicConfig(Struct, frozen=True, kw_only=True, gc=False):
    """One setting of a topic that a topology needs."""

    key: str = ""
    value: str = ""


class TopicInfo(Struct, frozen=True, kw_only=True, gc=False):
    """A topic."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: tuple[TopicConfig, ...] = ()


class Subtopology(Struct, frozen=True, kw_only=True, gc=False):
    """A part of a topology whose tasks can be placed on their own."""

    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


class EpochTaskIds(Struct, frozen=True, kw_only=True, gc=False):
    """Tasks of one subtopology, with the epochs they were given in where that is known."""

    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = None


class TaskIds(Struct, frozen=True, kw_only=True, gc=False):
    """Tasks of one subtopology."""

    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()


class KeyValue(Struct, frozen=True, kw_only=True, gc=False):
    """One tag of a member."""

    key: str = ""
    value: str = ""


class Endpoint(Struct, frozen=True, kw_only=True, gc=False):
    """Where a member's state can be asked for."""

    host: str = ""
    port: int = 0


class LastAssignmentConfig(Struct, frozen=True, kw_only=True, gc=False):
    """One setting of the last assignment."""

    key: str = ""
    value: str = ""


class StreamsGroupMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A streams group."""

    group_id: str = ""


class StreamsGroupMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """A streams group's epoch, and what its last assignment was made with."""

    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: tuple[LastAssignmentConfig, ...] | None = None


class StreamsGroupMemberMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member of a streams group."""

    group_id: str = ""
    member_id: str = ""


class StreamsGroupMemberMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """What a member of a streams group told about itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()


class StreamsGroupTargetAssignmentMetadataKey(Struct, frozen=True, kw_only=True, gc=False):
    """A streams group whose target assignment was made."""

    group_id: str = ""


class StreamsGroupTargetAssignmentMetadataValue(Struct, frozen=True, kw_only=True, gc=False):
    """For which group epoch the target assignment was made."""

    assignment_epoch: int = 0
    assignment_timestamp: int = 0


class StreamsGroupTargetAssignmentMemberKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member of a streams group with a target."""

    group_id: str = ""
    member_id: str = ""


class StreamsGroupTargetAssignmentMemberValue(Struct, frozen=True, kw_only=True, gc=False):
    """The tasks a member is to have in the end."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


class StreamsGroupCurrentMemberAssignmentKey(Struct, frozen=True, kw_only=True, gc=False):
    """A member of a streams group that has tasks."""

    group_id: str = ""
    member_id: str = ""


class StreamsGroupCurrentMemberAssignmentValue(Struct, frozen=True, kw_only=True, gc=False):
    """The tasks a member has now and must give up, and its epochs."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: tuple[EpochTaskIds, ...] = ()
    standby_tasks: tuple[EpochTaskIds, ...] = ()
    warmup_tasks: tuple[EpochTaskIds, ...] = ()
    active_tasks_pending_revocation: tuple[EpochTaskIds, ...] = ()
    standby_tasks_pending_revocation: tuple[EpochTaskIds, ...] = ()
    warmup_tasks_pending_revocation: tuple[EpochTaskIds, ...] = ()


class StreamsGroupTopologyKey(Struct, frozen=True, kw_only=True, gc=False):
    """A streams group with a topology."""

    group_id: str = ""


class StreamsGroupTopologyValue(Struct, frozen=True, kw_only=True, gc=False):
    """The topology of a streams group."""

    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] = ()
