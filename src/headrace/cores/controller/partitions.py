"""Raising the number of partitions of topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

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
from headrace.cores.controller.topics import UNKNOWN_TOPIC, check_request_size
from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import MetadataRecord


class MorePartitions(Struct, frozen=True, kw_only=True):
    """A topic that shall have more partitions."""

    name: str
    count: int
    """How many it shall have in all."""
    assignments: Placement | None = None
    """The replicas of each new partition, where the caller placed them by hand."""


def create_partitions(
    metadata: Metadata,
    wanted: Sequence[MorePartitions],
    *,
    brokers: Sequence[int] | None = None,
    validate_only: bool = False,
) -> Outcome[dict[str, KafkaError | None]]:
    """Raise the partition count of each topic that can grow; the reply has every name that was asked for, once."""
    have = {
        topic.name: len(metadata.topics[topic.name].partitions) for topic in wanted if topic.name in metadata.topics
    }
    check_request_size(sum(max(topic.count - have.get(topic.name, topic.count), 0) for topic in wanted))
    known = brokers_of(metadata, brokers)
    count = Counter(topic.name for topic in wanted)
    records: list[MetadataRecord] = []
    results: dict[str, KafkaError | None] = {}
    for topic in wanted:
        try:
            if count[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records.extend(_grow(metadata, topic, known))
            results[topic.name] = None
        except KafkaError as error:
            results[topic.name] = error
    return Outcome([] if validate_only else records, results)


def _grow(metadata: Metadata, wanted: MorePartitions, brokers: Brokers) -> list[MetadataRecord]:
    topic = metadata.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC)
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
        dead = refused_factor(factor, "All brokers are currently fenced or in controlled shutdown.")
        return partition_records(topic.topic_id, placement, brokers, first=have, refuse=lambda _: dead)
    if len(wanted.assignments) != extra:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {extra} additional partition(s), but only {len(wanted.assignments)} assignment(s) "
            "were specified.",
        )
    for replicas in wanted.assignments:
        check_assignment(replicas, brokers, factor=factor)
    return partition_records(topic.topic_id, wanted.assignments, brokers, first=have, refuse=no_live_replica)
