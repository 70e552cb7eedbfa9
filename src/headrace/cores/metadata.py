"""The cluster's state: what replaying `__cluster_metadata` from its beginning gives.

`replay` is the only mutator, so that leader, follower and restart share one path.
Readers (Metadata, DescribeTopicPartitions, …) look at it directly and never keep what they see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from headrace.cores.partition_index import PartitionIndex
from headrace.model.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from uuid import UUID

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_GROUP = 32
"""Kinds of resources that have settings, by Kafka's numbers."""

METADATA_TOPIC = "__cluster_metadata"
"""The log this state is made of; no topic may have its name."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that coordinators keep their state in."""


UNCHANGED_LEADER = -2
"""What a change of a partition says of its leader when it says nothing."""


def unified_name(topic: str) -> str:
    """A topic's name as it looks in a metric, where '.' and '_' are one."""
    return topic.replace(".", "_")


class PartitionState(Struct, frozen=True, kw_only=True, gc=False):
    """Who holds a partition and who leads it."""

    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int = 0
    leader_recovery_state: int = 0
    """1 while a leader that was elected uncleanly has not said yet that its log is in order."""
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    """Replicas that left the ISR when it was already small, and so have everything that was committed (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    """Who led last, while nobody does."""
    directories: tuple[UUID, ...] = ()
    """The log dir of each replica (KIP-858); empty where none was ever told."""

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.adding_replicas or self.removing_replicas)


def merged(old: PartitionState, change: PartitionChangeRecord) -> PartitionState:
    """A partition after a change."""
    recovery = change.leader_recovery_state
    return PartitionState(
        index=old.index,
        replicas=old.replicas if change.replicas is None else change.replicas,
        isr=old.isr if change.isr is None else change.isr,
        leader=old.leader if change.leader == UNCHANGED_LEADER else change.leader,
        leader_epoch=old.leader_epoch + (change.leader != UNCHANGED_LEADER),
        partition_epoch=old.partition_epoch + 1,
        leader_recovery_state=old.leader_recovery_state if recovery < 0 else recovery,
        adding_replicas=old.adding_replicas if change.adding_replicas is None else change.adding_replicas,
        removing_replicas=old.removing_replicas if change.removing_replicas is None else change.removing_replicas,
        elr=old.elr if change.eligible_leader_replicas is None else change.eligible_leader_replicas,
        last_known_elr=old.last_known_elr if change.last_known_elr is None else change.last_known_elr,
        directories=old.directories if change.directories is None else change.directories,
    )


class Topic(Struct, kw_only=True):
    """One topic; partitions are dense from 0."""

    name: str
    topic_id: UUID
    partitions: list[PartitionState] = field(default_factory=list)


class Metadata:
    """Topics, configs, brokers, controllers, features and the next producer id, as committed."""

    __slots__ = (
        "_configs",
        "_shared",
        "_unified_names",
        "brokers",
        "controllers",
        "features",
        "index",
        "next_producer_id",
        "topics",
        "topics_by_id",
    )

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[UUID, Topic] = {}
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        """Every registered broker as it is now: what changed since it registered is in."""
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.index = PartitionIndex()
        self._shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        """One tuple for all partitions that have the same replicas, or the same directories; many do."""
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._unified_names: dict[str, str] = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Metadata):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__ if name != "_shared")

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> Metadata:
        """A state of its own to run ahead with: what an active controller decides on before it is committed."""
        other = Metadata()
        for topic in self.topics.values():
            own = Topic(name=topic.name, topic_id=topic.topic_id, partitions=list(topic.partitions))
            other.topics[topic.name] = own
            other.topics_by_id[topic.topic_id] = own
        other.brokers = dict(self.brokers)
        other.controllers = dict(self.controllers)
        other.features = dict(self.features)
        other.next_producer_id = self.next_producer_id
        other.index = self.index.copy()
        other._shared = dict(self._shared)
        other._configs = {key: dict(values) for key, values in self._configs.items()}
        other._unified_names = dict(self._unified_names)
        return other

    def colliding(self, name: str) -> str | None:
        """The topic whose name is `name` but for '.' and '_', which metric names cannot tell apart."""
        return self._unified_names.get(unified_name(name))

    def configs(self, resource_type: int, resource_name: str) -> Mapping[str, str]:
        """The settings overridden for one resource."""
        return self._configs.get((resource_type, resource_name), {})

    def partition(self, topic_id: UUID, index: int) -> PartitionState | None:
        """A partition, if there is one."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker is registered, lives, and means to stay: it may lead, and be in an ISR."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def all_configs(self) -> Iterator[tuple[int, str, Mapping[str, str]]]:
        """Every resource with overrides: its type, its name, its settings."""
        for (resource_type, name), values in self._configs.items():
            yield resource_type, name, values

    def config_resources(self, resource_type: int) -> list[str]:
        """Names of the resources of a type that have overrides."""
        return [name for kind, name in self._configs if kind == resource_type]

    def replay(self, record: MetadataRecord) -> None:
        """Apply one committed record."""
        self._REPLAY[type(record)](self, record)

    def _topic(self, record: TopicRecord) -> None:
        topic = Topic(name=record.name, topic_id=record.topic_id)
        self.topics[record.name] = topic
        self.topics_by_id[record.topic_id] = topic
        self._unified_names[unified_name(record.name)] = record.name

    def _partition(self, record: PartitionRecord) -> None:
        topic = self.topics_by_id[record.topic_id]
        partitions = topic.partitions
        replicas = self._shared.setdefault(record.replicas, record.replicas)
        state = PartitionState(
            index=record.partition_id,
            replicas=replicas,
            isr=replicas if record.isr == replicas else record.isr,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
            adding_replicas=record.adding_replicas,
            removing_replicas=record.removing_replicas,
            elr=record.eligible_leader_replicas or (),
            last_known_elr=record.last_known_elr or (),
            directories=self._shared.setdefault(record.directories, record.directories),
        )
        old = None
        if record.partition_id < len(partitions):
            old = partitions[record.partition_id]
            partitions[record.partition_id] = state
        else:
            assert record.partition_id == len(partitions), "partitions are created in order"
            partitions.append(state)
        self.index.replace((topic.topic_id, record.partition_id), old, state)

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        self._replace_partition(self.topics_by_id[record.topic_id], record)

    def _replace_partition(self, topic: Topic, change: PartitionChangeRecord) -> None:
        old = topic.partitions[change.partition_id]
        new = merged(old, change)
        topic.partitions[change.partition_id] = new
        self.index.replace((topic.topic_id, change.partition_id), old, new)

    def _clear_elr(self, record: ClearElrRecord) -> None:
        for topic in [self.topics[record.topic_name]] if record.topic_name else self.topics.values():
            for state in topic.partitions:
                if state.elr or state.last_known_elr:
                    change = PartitionChangeRecord(
                        partition_id=state.index, eligible_leader_replicas=(), last_known_elr=()
                    )
                    self._replace_partition(topic, change)

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self.topics_by_id.pop(record.topic_id)
        del self.topics[topic.name]
        del self._unified_names[unified_name(topic.name)]
        self._configs.pop((RESOURCE_TOPIC, topic.name), None)
        for state in topic.partitions:
            self.index.replace((topic.topic_id, state.index), state, None)

    def _config(self, record: ConfigRecord) -> None:
        key = (record.resource_type, record.resource_name)
        values = self._configs.setdefault(key, {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if not values:
            del self._configs[key]

    def _feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _register(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = record

    def _unregister(self, record: UnregisterBrokerRecord) -> None:
        del self.brokers[record.broker_id]

    def _registration_change(self, record: BrokerRegistrationChangeRecord) -> None:
        old = self.brokers[record.broker_id]
        self.brokers[record.broker_id] = replace(
            old,
            fenced=record.fenced > 0 if record.fenced else old.fenced,
            in_controlled_shutdown=old.in_controlled_shutdown or record.in_controlled_shutdown > 0,
            log_dirs=record.log_dirs or old.log_dirs,
            cordoned_log_dirs=(old.cordoned_log_dirs if record.cordoned_log_dirs is None else record.cordoned_log_dirs),
        )

    def _register_controller(self, record: RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = record

    def _no_op(self, record: NoOpRecord) -> None:
        pass

    _REPLAY: ClassVar[dict[type, Callable[..., None]]] = {
        TopicRecord: _topic,
        PartitionRecord: _partition,
        PartitionChangeRecord: _partition_change,
        ClearElrRecord: _clear_elr,
        RemoveTopicRecord: _remove_topic,
        ConfigRecord: _config,
        FeatureLevelRecord: _feature,
        ProducerIdsRecord: _producer_ids,
        RegisterBrokerRecord: _register,
        UnregisterBrokerRecord: _unregister,
        BrokerRegistrationChangeRecord: _registration_change,
        RegisterControllerRecord: _register_controller,
        NoOpRecord: _no_op,
        # Whoever reads a log holds back what is between these; by themselves they change nothing.
        BeginTransactionRecord: _no_op,
        EndTransactionRecord: _no_op,
        AbortTransactionRecord: _no_op,
    }
