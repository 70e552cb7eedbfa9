"""The cluster's state: what replaying `__cluster_metadata` from its beginning gives.

`replay` is the only mutator, so that leader, follower and restart share one path.
Readers (Metadata, DescribeTopicPartitions, …) look at it directly and never keep what they see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace
from msgspec.structs import replace as replace_fields

from headrace.model.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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


class PartitionState(Struct, frozen=True, kw_only=True):
    """Who holds a partition and who leads it."""

    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int = 0


class Topic(Struct, kw_only=True):
    """One topic; partitions are dense from 0."""

    name: str
    topic_id: UUID
    partitions: list[PartitionState] = field(default_factory=list)


class Metadata:
    """Topics, configs, brokers, features and the next producer id, as committed."""

    __slots__ = ("_configs", "_unified_names", "brokers", "features", "next_producer_id", "topics", "topics_by_id")

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[UUID, Topic] = {}
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._unified_names: dict[str, str] = {}

    def colliding(self, name: str) -> str | None:
        """The topic whose name is `name` but for '.' and '_', which metric names cannot tell apart."""
        return self._unified_names.get(unified_name(name))

    def configs(self, resource_type: int, resource_name: str) -> Mapping[str, str]:
        """The settings overridden for one resource."""
        return self._configs.get((resource_type, resource_name), {})

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
        partitions = self.topics_by_id[record.topic_id].partitions
        state = PartitionState(
            index=record.partition_id,
            replicas=record.replicas,
            isr=record.isr,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )
        if record.partition_id < len(partitions):
            partitions[record.partition_id] = state
        else:
            assert record.partition_id == len(partitions), "partitions are created in order"
            partitions.append(state)

    def _partition_change(self, record: PartitionChangeRecord) -> None:
        partitions = self.topics_by_id[record.topic_id].partitions
        old = partitions[record.partition_id]
        partitions[record.partition_id] = replace(
            old,
            isr=old.isr if record.isr is None else record.isr,
            replicas=old.replicas if record.replicas is None else record.replicas,
            leader=old.leader if record.leader == UNCHANGED_LEADER else record.leader,
            leader_epoch=old.leader_epoch + (record.leader != UNCHANGED_LEADER),
            partition_epoch=old.partition_epoch + 1,
        )

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self.topics_by_id.pop(record.topic_id)
        del self.topics[topic.name]
        del self._unified_names[unified_name(topic.name)]
        self._configs.pop((RESOURCE_TOPIC, topic.name), None)

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
        self.features[record.name] = record.feature_level

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _register(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = record

    def _registration_change(self, record: BrokerRegistrationChangeRecord) -> None:
        old = self.brokers[record.broker_id]
        self.brokers[record.broker_id] = replace_fields(
            old,
            fenced=record.fenced > 0 if record.fenced else old.fenced,
            in_controlled_shutdown=old.in_controlled_shutdown or record.in_controlled_shutdown > 0,
            log_dirs=record.log_dirs or old.log_dirs,
        )

    def _no_op(self, record: NoOpRecord) -> None:
        pass

    _REPLAY: ClassVar[dict[type, Callable[..., None]]] = {
        TopicRecord: _topic,
        PartitionRecord: _partition,
        PartitionChangeRecord: _partition_change,
        RemoveTopicRecord: _remove_topic,
        ConfigRecord: _config,
        FeatureLevelRecord: _feature,
        ProducerIdsRecord: _producer_ids,
        RegisterBrokerRecord: _register,
        BrokerRegistrationChangeRecord: _registration_change,
        NoOpRecord: _no_op,
    }
