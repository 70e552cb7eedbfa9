"""The controller's mind: given the cluster's state and a command, which records would change it, and what to answer.

Every function here reads `Metadata` and returns an `Outcome`; none changes anything.
The records take effect when they have been committed and replayed, which is also when the reply is sent.
A command that fails for one topic says so in that topic's result and goes on with the others, as Kafka does; only one
that is too large as a whole is refused as a whole.
Refusals are worded as Kafka words them, because scripts read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar
from uuid import UUID

from msgspec import Struct, field

from headrace.cores.metadata import METADATA_TOPIC, RESOURCE_BROKER, RESOURCE_TOPIC, Metadata, unified_name
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import ZERO_ID, topic_name_fault
from headrace.model.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)

PRODUCER_ID_BLOCK = 1000
"""Ids given to a broker at once: few enough to waste at a restart, enough to write a record seldom."""

PARTITIONS_PER_REQUEST_MAX = 10_000
"""Partitions one request may ask for; Kafka's number, so that one request cannot fill the memory or stall the log."""

Reply = TypeVar("Reply")


class Outcome(Struct, Generic[Reply], frozen=True):
    """What a command decided: records to commit, and the reply that is true once they are."""

    records: Sequence[MetadataRecord]
    reply: Reply


Command = Callable[[Metadata], Outcome[Reply]]
"""A decision to be taken against the state as it is when its turn comes."""


class Defaults(Struct, frozen=True, kw_only=True):
    """What applies where a new topic leaves a number out."""

    partitions: int
    replication_factor: int


# --- topics


class NewTopic(Struct, frozen=True, kw_only=True):
    """A topic someone wants."""

    name: str
    topic_id: UUID
    """A fresh random id: chance is an argument."""
    partitions: int = -1
    """-1 takes the default; must be -1 with assignments."""
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """Partition index and replicas, where the creator placed them by hand."""
    configs: Mapping[str, str] = field(default_factory=dict)
    config_fault: KafkaError | None = None
    """Why the configs cannot be, told by whoever knows the settings; reported in its order among other faults."""


class CreatedTopic(Struct, frozen=True, kw_only=True):
    """A topic that a command creates."""

    name: str
    topic_id: UUID
    partitions: int
    replication_factor: int


Placement = Sequence[Sequence[int]]
"""The replicas of each partition, the leader first."""


def create_topics(
    metadata: Metadata,
    wanted: Sequence[NewTopic],
    *,
    brokers: Sequence[int],
    defaults: Defaults,
    validate_only: bool = False,
) -> Outcome[dict[str, CreatedTopic | KafkaError]]:
    """Create each topic that can be created; the reply has every name that was asked for, once."""
    _check_request_size(sum(_partitions_asked(topic, defaults) for topic in wanted))
    count = Counter(topic.name for topic in wanted)
    records: list[MetadataRecord] = []
    results: dict[str, CreatedTopic | KafkaError] = {}
    taken: dict[str, str] = {}
    for topic in wanted:
        try:
            if count[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            _check_new_name(metadata, topic.name, taken)
            if topic.config_fault is not None:
                raise topic.config_fault
            placement = _place(topic, brokers, defaults, first=len(metadata.topics) + len(taken))
        except KafkaError as error:
            results[topic.name] = error
            continue
        taken[unified_name(topic.name)] = topic.name
        records.extend(_topic_records(topic, placement))
        results[topic.name] = CreatedTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=len(placement),
            replication_factor=len(placement[0]),
        )
    return Outcome([] if validate_only else records, results)


def _partitions_asked(topic: NewTopic, defaults: Defaults) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return defaults.partitions if topic.partitions == -1 else max(topic.partitions, 0)


def _check_request_size(partitions: int) -> None:
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _check_new_name(metadata: Metadata, name: str, taken: Mapping[str, str]) -> None:
    """Refuse a name that cannot be, or that another topic has; `taken` are those this command creates already."""
    if name == METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    fault = topic_name_fault(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name in metadata.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = metadata.colliding(name) or taken.get(unified_name(name))
    if other is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _place(topic: NewTopic, brokers: Sequence[int], defaults: Defaults, *, first: int) -> Placement:
    """The replicas of each partition of a new topic, or the reason why there can be none."""
    if topic.assignments:
        return _placed_by_hand(topic, brokers)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.partitions < -1 or topic.partitions == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    return place_replicas(
        brokers,
        partitions=defaults.partitions if topic.partitions == -1 else topic.partitions,
        factor=defaults.replication_factor if topic.replication_factor == -1 else topic.replication_factor,
        first=first,
    )


def _placed_by_hand(topic: NewTopic, brokers: Sequence[int]) -> Placement:
    """Check an assignment the creator made."""
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    placed: dict[int, Sequence[int]] = {}
    for index, replicas in topic.assignments:
        if index in placed:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        placed[index] = replicas
        _check_assignment(replicas, brokers, factor=len(topic.assignments[0][1]))
    if any(index not in placed for index in range(len(placed))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [placed[index] for index in range(len(placed))]


def _check_assignment(replicas: Sequence[int], brokers: Sequence[int], *, factor: int) -> None:
    """Whether a hand-made replica list names known brokers, each once, as many as its siblings do."""
    if not replicas:
        raise _refused_assignment("an empty replica list.")
    for broker, times in sorted(Counter(replicas).items()):
        if broker not in brokers:
            raise _refused_assignment(f"broker {broker}, but no such broker is registered.")
        if times > 1:
            raise _refused_assignment(f"the broker {broker} more than once.")
    if len(replicas) != factor:
        raise _refused_assignment(
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions, "
            f"which have {factor} replica(s)."
        )


def _refused_assignment(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {what}")


def place_replicas(brokers: Sequence[int], *, partitions: int, factor: int, first: int) -> Placement:
    """Spread partitions, and the leadership of each, round the brokers, starting at a place that moves."""
    if factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {len(brokers)} broker(s) are registered.",
        )
    ring = sorted(brokers)
    return [tuple(ring[(first + index + step) % len(ring)] for step in range(factor)) for index in range(partitions)]


def _topic_records(topic: NewTopic, placement: Placement) -> list[MetadataRecord]:
    """The topic, then its settings, then its partitions: whoever makes a partition's log knows its settings."""
    return [
        TopicRecord(name=topic.name, topic_id=topic.topic_id),
        *_config_records(RESOURCE_TOPIC, topic.name, topic.configs),
        *_partition_records(topic.topic_id, placement, first=0),
    ]


def _partition_records(topic_id: UUID, placement: Placement, *, first: int) -> list[MetadataRecord]:
    return [
        PartitionRecord(
            partition_id=first + index,
            topic_id=topic_id,
            replicas=tuple(replicas),
            isr=tuple(replicas),
            leader=replicas[0],
        )
        for index, replicas in enumerate(placement)
    ]


class DeletedTopic(Struct, frozen=True, kw_only=True):
    """How the deletion of one topic went; a topic that was not found has only what it was asked by."""

    name: str | None
    topic_id: UUID
    error: KafkaError | None = None


def delete_topics(
    metadata: Metadata, *, names: Sequence[str] = (), topic_ids: Sequence[UUID] = ()
) -> Outcome[list[DeletedTopic]]:
    """Delete the topics that are named, by name or by id; one that is named twice is not deleted."""
    results: list[DeletedTopic] = []
    doomed: dict[UUID, str] = {}
    count = Counter(topic_ids)
    for topic_id, times in count.items():
        topic = metadata.topics_by_id.get(topic_id)
        if times > 1:
            results.append(_not_deleted(None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id."))
        elif topic is None:
            results.append(
                _not_deleted(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
            )
        else:
            doomed[topic_id] = topic.name
    for name, times in Counter(names).items():
        topic = metadata.topics.get(name)
        if times > 1:
            results.append(_not_deleted(name, ZERO_ID, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif topic is None:
            results.append(_not_deleted(name, ZERO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN_TOPIC))
        elif topic.topic_id in count:
            doomed.pop(topic.topic_id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(_not_deleted(name, topic.topic_id, ErrorCode.INVALID_REQUEST, message))
        else:
            doomed[topic.topic_id] = name
    results.extend(DeletedTopic(name=name, topic_id=topic_id) for topic_id, name in doomed.items())
    return Outcome([RemoveTopicRecord(topic_id=topic_id) for topic_id in doomed], results)


_UNKNOWN_TOPIC = "This server does not host this topic-partition."


def _not_deleted(name: str | None, topic_id: UUID, code: ErrorCode, message: str) -> DeletedTopic:
    return DeletedTopic(name=name, topic_id=topic_id, error=KafkaError(code, message))


# --- partitions


class MorePartitions(Struct, frozen=True, kw_only=True):
    """A topic that shall have more partitions."""

    name: str
    count: int
    """How many it shall have in all."""
    assignments: Placement | None = None
    """The replicas of each new partition, where the caller placed them by hand."""


def create_partitions(
    metadata: Metadata, wanted: Sequence[MorePartitions], *, brokers: Sequence[int], validate_only: bool = False
) -> Outcome[dict[str, KafkaError | None]]:
    """Raise the partition count of each topic that can grow; the reply has every name that was asked for, once."""
    have = {
        topic.name: len(metadata.topics[topic.name].partitions) for topic in wanted if topic.name in metadata.topics
    }
    _check_request_size(sum(max(topic.count - have.get(topic.name, topic.count), 0) for topic in wanted))
    count = Counter(topic.name for topic in wanted)
    records: list[MetadataRecord] = []
    results: dict[str, KafkaError | None] = {}
    for topic in wanted:
        try:
            if count[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records.extend(_grow(metadata, topic, brokers))
            results[topic.name] = None
        except KafkaError as error:
            results[topic.name] = error
    return Outcome([] if validate_only else records, results)


def _grow(metadata: Metadata, wanted: MorePartitions, brokers: Sequence[int]) -> list[MetadataRecord]:
    topic = metadata.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN_TOPIC)
    have = len(topic.partitions)
    if wanted.count == have:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if wanted.count < have:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {wanted.name} currently has {have} partition(s); {wanted.count} would not be an increase.",
        )
    extra = wanted.count - have
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        placement = place_replicas(brokers, partitions=extra, factor=factor, first=len(metadata.topics) + have)
        return _partition_records(topic.topic_id, placement, first=have)
    if len(wanted.assignments) != extra:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {extra} additional partition(s), but only {len(wanted.assignments)} assignment(s) "
            "were specified.",
        )
    for replicas in wanted.assignments:
        _check_assignment(replicas, brokers, factor=factor)
    return _partition_records(topic.topic_id, wanted.assignments, first=have)


# --- settings


class ConfigChange(Struct, frozen=True, kw_only=True):
    """A change of the settings of one topic or broker."""

    resource_type: int
    resource_name: str
    change: Callable[[Mapping[str, str]], Mapping[str, str]]
    """From the overrides the resource has to those it shall have; KafkaError where they cannot be."""


def change_configs(
    metadata: Metadata, wanted: Sequence[ConfigChange], *, brokers: Sequence[int], validate_only: bool = False
) -> Outcome[list[KafkaError | None]]:
    """Change the settings of each resource, wholly or not at all; the reply has one entry for each change."""
    records: list[MetadataRecord] = []
    results: list[KafkaError | None] = []
    for one in wanted:
        try:
            old = metadata.configs(one.resource_type, one.resource_name)
            changed = _difference(old, one.change(old))
            _check_exists(metadata, one.resource_type, one.resource_name, brokers)
            records.extend(_config_records(one.resource_type, one.resource_name, changed))
            results.append(None)
        except KafkaError as error:
            results.append(error)
    return Outcome([] if validate_only else records, results)


def _check_exists(metadata: Metadata, resource_type: int, name: str, brokers: Sequence[int]) -> None:
    if resource_type == RESOURCE_TOPIC and name not in metadata.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if resource_type == RESOURCE_BROKER and name and name not in map(str, brokers):
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")


def _difference(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """What turns `old` into `new`; None removes."""
    changed: dict[str, str | None] = {name: value for name, value in new.items() if old.get(name) != value}
    changed.update({name: None for name in old if name not in new})
    return changed


def _config_records(resource_type: int, name: str, values: Mapping[str, str | None]) -> list[MetadataRecord]:
    return [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        for key, value in sorted(values.items())
    ]


# --- producers


def allocate_producer_ids(metadata: Metadata, *, broker_id: int, broker_epoch: int) -> Outcome[range]:
    """Give a broker its next block of producer ids."""
    first = metadata.next_producer_id
    block = range(first, first + PRODUCER_ID_BLOCK)
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop)
    return Outcome([record], block)
