"""What the admin clients take and give, under kafka-python's names where it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from uuid import UUID

from headrace.client.records import TopicPartition

BROKER_DEFAULT = -1


class ConfigResourceType(IntEnum):
    """What can have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 leaves a number to the broker."""

    name: str
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    replica_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    topic_configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """How many partitions a topic shall have, and perhaps where the new ones lie."""

    total_count: int
    new_assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """Something with settings; None as a value takes a setting back."""

    resource_type: ConfigResourceType | str
    name: str
    configs: Mapping[str, str | None] | None = None

    @property
    def kind(self) -> ConfigResourceType:
        """The type, also where it was given by name."""
        given = self.resource_type
        return given if isinstance(given, ConfigResourceType) else ConfigResourceType[str(given).upper()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    """Where a setting's value comes from, or would come from if it were not set nearer."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One setting as it is in force."""

    name: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: int
    synonyms: tuple[ConfigSynonym, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """One partition."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """One topic."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A partition on its way to other brokers."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AclDescription:
    """Who may do what to which resources, or must not, in Kafka's words."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDescription:
    """One broker."""

    node_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The cluster."""

    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """One group in the list of all."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """One member of a group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """One group."""

    group_id: str
    group_type: str
    state: str
    assignor: str
    members: tuple[MemberDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSize:
    """A replica in a log directory."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool
    """Whether it is on its way here from another directory of the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    """A log directory of a broker; -1 bytes where the broker does not say."""

    path: str
    error: str | None
    """The name of the error that makes it unusable."""
    total_bytes: int
    usable_bytes: int
    replicas: tuple[ReplicaSize, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    """A node with a copy of the metadata log; times are -1 where they are not known."""

    node_id: int
    directory_id: UUID
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    endpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    """The controllers, and how far everybody has read what they write."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """One transactional id in the list of all."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """One transactional id, and what its transaction has written to."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    """None while no transaction is open."""
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerDescription:
    """A producer as the leader of a partition knows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int | None
    """Where its open transaction begins in the partition; None if it has none there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingTransaction:
    """A transaction that is open in a partition and that no coordinator will ever end."""

    partition: TopicPartition
    producer: ProducerDescription
