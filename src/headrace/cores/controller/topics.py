"""Creating and deleting topics.

A command that fails for one topic says so in that topic's result and goes on with the others, as Kafka does; only one
that is too large as a whole is refused as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, field

from headrace.cores.controller.configs import config_records
from headrace.cores.controller.outcome import Outcome
from headrace.cores.controller.partition_records import no_live_replica, partition_records
from headrace.cores.controller.placement import (
    Brokers,
    Placement,
    brokers_of,
    check_assignment,
    place_replicas,
    refused_factor,
)
from headrace.cores.metadata import METADATA_TOPIC, RESOURCE_TOPIC, Metadata, unified_name
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import ZERO_ID, topic_name_fault
from headrace.model.metadata_records import MetadataRecord, RemoveTopicRecord, TopicRecord

PARTITIONS_PER_REQUEST_MAX = 10_000
"""Partitions one request may ask for; Kafka's number, so that one request cannot fill the memory or stall the log."""

UNKNOWN_TOPIC = "This server does not host this topic-partition."


class Defaults(Struct, frozen=True, kw_only=True):
    """What applies where a new topic leaves a number out."""

    partitions: int
    replication_factor: int


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


def create_topics(
    metadata: Metadata,
    wanted: Sequence[NewTopic],
    *,
    brokers: Sequence[int] | None = None,
    defaults: Defaults,
    validate_only: bool = False,
) -> Outcome[dict[str, CreatedTopic | KafkaError]]:
    """Create each topic that can be created; the reply has every name that was asked for, once.

    `brokers` names the brokers there are where none registers; otherwise the registered ones are used.
    """
    check_request_size(sum(_partitions_asked(topic, defaults) for topic in wanted))
    known = brokers_of(metadata, brokers)
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
            placement = _place(topic, known, defaults, first=len(metadata.topics) + len(taken))
            partitions = _partition_records(topic, placement, known)
        except KafkaError as error:
            results[topic.name] = error
            continue
        taken[unified_name(topic.name)] = topic.name
        records.extend(_topic_records(topic, partitions))
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


def check_request_size(partitions: int) -> None:
    """Refuse a request for too many partitions, as a whole."""
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


def _place(topic: NewTopic, brokers: Brokers, defaults: Defaults, *, first: int) -> Placement:
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


def _placed_by_hand(topic: NewTopic, brokers: Brokers) -> Placement:
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
        check_assignment(replicas, brokers, factor=len(topic.assignments[0][1]))
    if any(index not in placed for index in range(len(placed))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [placed[index] for index in range(len(placed))]


def _partition_records(topic: NewTopic, placement: Placement, brokers: Brokers) -> list[MetadataRecord]:
    dead = "All brokers are currently fenced or in controlled shutdown."
    return partition_records(
        topic.topic_id,
        placement,
        brokers,
        first=0,
        refuse=no_live_replica if topic.assignments else lambda _: refused_factor(len(placement[0]), dead),
    )


def _topic_records(topic: NewTopic, partitions: Sequence[MetadataRecord]) -> list[MetadataRecord]:
    """The topic, then its settings, then its partitions: whoever makes a partition's log knows its settings."""
    return [
        TopicRecord(name=topic.name, topic_id=topic.topic_id),
        *config_records(RESOURCE_TOPIC, topic.name, topic.configs),
        *partitions,
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
            results.append(_not_deleted(name, ZERO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC))
        elif topic.topic_id in count:
            doomed.pop(topic.topic_id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(_not_deleted(name, topic.topic_id, ErrorCode.INVALID_REQUEST, message))
        else:
            doomed[topic.topic_id] = name
    results.extend(DeletedTopic(name=name, topic_id=topic_id) for topic_id, name in doomed.items())
    return Outcome([RemoveTopicRecord(topic_id=topic_id) for topic_id in doomed], results)


def _not_deleted(name: str | None, topic_id: UUID, code: ErrorCode, message: str) -> DeletedTopic:
    return DeletedTopic(name=name, topic_id=topic_id, error=KafkaError(code, message))
