"""The records of `__cluster_metadata`, in Kafka's names: the cluster's state is what replaying them gives.

Each class is one record type of Kafka's metadata log; `wire` knows how each looks in bytes.
"""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct

from headrace.model.ids import ZERO_ID

NO_LEADER = -1


class TopicRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A topic was created."""

    name: str = ""
    topic_id: UUID = ZERO_ID


class PartitionRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A partition was created, or is described whole."""

    partition_id: int = -1
    topic_id: UUID = ZERO_ID
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[UUID, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


class PartitionChangeRecord(Struct, frozen=True, kw_only=True, gc=False):
    """Parts of a partition's state changed; what is None stays as it was."""

    partition_id: int = -1
    topic_id: UUID = ZERO_ID
    isr: tuple[int, ...] | None = None
    leader: int = -2
    """-2 means unchanged, -1 means no leader."""
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    leader_recovery_state: int = -1
    directories: tuple[UUID, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


class RemoveTopicRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A topic was deleted, with all of its partitions."""

    topic_id: UUID = ZERO_ID


class ConfigRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One setting of one resource was set, or removed where the value is None."""

    resource_type: int = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = ""


class FeatureLevelRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A feature was finalized at a level."""

    name: str = ""
    feature_level: int = 0


class ProducerIdsRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A block of producer ids was given to a broker; the next block starts at `next_producer_id`."""

    broker_id: int = 0
    broker_epoch: int = -1
    next_producer_id: int = 0


class BrokerEndpoint(Struct, frozen=True, kw_only=True, gc=False):
    """One address of a broker."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


class BrokerFeature(Struct, frozen=True, kw_only=True, gc=False):
    """A feature a broker supports."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


class RegisterBrokerRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A broker registered with the controller."""

    broker_id: int = 0
    is_migrating_zk_broker: bool = False
    incarnation_id: UUID = ZERO_ID
    broker_epoch: int = -1
    end_points: tuple[BrokerEndpoint, ...] = ()
    features: tuple[BrokerFeature, ...] = ()
    rack: str | None = None
    fenced: bool = False
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    """Those that shall get no new partitions (KIP-1066); None if the broker has not said."""


class UnregisterBrokerRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A broker is no longer part of the cluster."""

    broker_id: int = 0
    broker_epoch: int = 0


class BrokerRegistrationChangeRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A broker was fenced (1) or unfenced (-1), began its shutdown (1), lost log dirs; 0, () and None are no change."""

    broker_id: int = 0
    broker_epoch: int = 0
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None


class ControllerEndpoint(Struct, frozen=True, kw_only=True, gc=False):
    """One address of a controller."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


class ControllerFeature(Struct, frozen=True, kw_only=True, gc=False):
    """A feature a controller supports."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


class RegisterControllerRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A controller told the active one where it is and what it supports (KIP-919)."""

    controller_id: int = 0
    incarnation_id: UUID = ZERO_ID
    zk_migration_ready: bool = False
    end_points: tuple[ControllerEndpoint, ...] = ()
    features: tuple[ControllerFeature, ...] = ()


class ClearElrRecord(Struct, frozen=True, kw_only=True, gc=False):
    """The eligible leader replicas of a topic, or of all where no name stands, are void: the rules changed."""

    topic_name: str = ""


class NoOpRecord(Struct, frozen=True, kw_only=True, gc=False):
    """Nothing happened; it shows that the log moves."""


class BeginTransactionRecord(Struct, frozen=True, kw_only=True, gc=False):
    """What follows holds only once it is complete (KIP-868)."""

    name: str | None = None


class EndTransactionRecord(Struct, frozen=True, kw_only=True, gc=False):
    """All of a transaction holds from here on."""


class AbortTransactionRecord(Struct, frozen=True, kw_only=True, gc=False):
    """Nothing of a transaction ever holds."""

    reason: str | None = None


MetadataRecord = (
    TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | ConfigRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | RegisterControllerRecord
    | ClearElrRecord
    | NoOpRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
)
