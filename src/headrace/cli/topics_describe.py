"""What `kafka-topics --describe` shows: a line per topic, an indented line per partition."""

from __future__ import annotations

import binascii
import sys
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.cli.administration import (
    DEFAULT_CONFIG,
    PARTITIONS_PER_ANSWER,
    TOPIC,
    PartitionState,
    Place,
    Reassignment,
    TopicState,
    describe_configs,
    describe_topics,
    reassignments,
    topic_of,
)
from headrace.cli.java_order import hash_order
from headrace.cli.topics import REPORTS, find_topics
from headrace.client.fault import NotServed
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError
from headrace.model.ids import ZERO_ID, encode_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session
    from headrace.cli.tool import Values

_ID_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """A topic with all that is printed about it."""

    topic: TopicState
    settings: dict[str, str | None]
    overrides: dict[str, str | None]
    moves: dict[Place, Reassignment]
    live: frozenset[int]

    def move_of(self, partition: PartitionState) -> Reassignment | None:
        return self.moves.get((self.topic.name, partition.index))

    def replication_of(self, partition: PartitionState) -> int:
        """How many replicas there shall be; those that a move only adds do not count."""
        move = self.move_of(partition)
        if move is not None and set(partition.replicas) & {*move.adding, *move.removing}:
            return len(move.replicas) - len(move.adding)
        return len(partition.replicas)

    def leader_of(self, partition: PartitionState) -> int | None:
        return partition.leader if partition.leader in self.live else None

    @property
    def minimum(self) -> int:
        return int(self.settings.get("min.insync.replicas") or 1)


async def show_topics(session: Session) -> None:
    """Ask about the topics and print them."""
    values, cluster, report = session.values, session.cluster, session.report
    topics = await _topics_by_id(session) if values.has("topic-id") else None
    if topics is None:
        limit = _limit(values)
        topics = await describe_topics(
            cluster, await find_topics(session, must_exist=True), partitions_per_answer=limit
        )
    configs = await describe_configs(cluster, [(TOPIC, topic.name) for topic in topics]) if topics else {}
    moves = await _moves(session, topics)
    live = frozenset(await cluster.brokers())
    described = {}
    for topic in topics:
        entries = configs[TOPIC, topic.name]
        described[topic.name] = _Described(
            topic=topic,
            settings={entry.name: entry.value for entry in entries},
            overrides=_overrides(entries),
            moves=moves,
            live=live,
        )
    # Kafka's tool lists topics as its hash table does.
    for name in hash_order(described, table=len(described)):
        for line in _lines(described[name], values):
            report.line(line)
    report.data([_document(described[name], values) for name in sorted(described) if _lines(described[name], values)])


def _limit(values: Values) -> int:
    limit = values.number("partition-size-limit-per-response")
    return PARTITIONS_PER_ANSWER if limit is None else max(limit, 1)


async def _topics_by_id(session: Session) -> list[TopicState] | None:
    """The topic of --topic-id; None where the id is nobody's and the name counts."""
    values = session.values
    if values.has("topic") and values.has("if-exists"):
        session.report.note(
            "Only topic id will be used when both --topic and --topic-id are specified and topicId is not "
            "Uuid.ZERO_UUID"
        )
    text = values.require("topic-id")
    wanted = parse_id(text)
    if wanted == ZERO_ID:
        return None
    metadata = await session.cluster.metadata()
    found = [
        topic_of(topic)
        for topic in metadata.topics
        if topic.topic_id == wanted and not (values.has("exclude-internal") and topic.name in INTERNAL_TOPICS)
    ]
    if not found and not values.has("if-exists"):
        raise HeadraceError(f"TopicId '{text}' does not exist as expected")
    return found


async def _moves(session: Session, topics: Sequence[TopicState]) -> dict[Place, Reassignment]:
    """Partitions on their way elsewhere; none where the broker does not tell."""
    if not topics:
        return {}
    try:
        places = [(topic.name, partition.index) for topic in topics for partition in topic.partitions]
        return await reassignments(session.cluster, places)
    except NotServed:
        return {}
    except KafkaError as error:
        if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        print("Reassignments are not shown: the cluster does not allow us to see them.", file=sys.stderr)
        return {}


def _overrides(entries: Sequence[Any]) -> dict[str, str | None]:
    """Settings that are not Kafka's defaults, in the order Kafka's tool prints them."""
    chosen = {entry.name: entry.value for entry in entries if entry.config_source != DEFAULT_CONFIG}
    return {name: chosen[name] for name in hash_order(entry.name for entry in entries) if name in chosen}


# --- lines


def _lines(described: _Described, values: Values) -> list[str]:
    lines = []
    reports = [name for name in REPORTS if values.has(name)]
    only_overrides = values.has("topics-with-overrides")
    if not reports and (described.overrides or not only_overrides):
        lines.append(_topic_line(described))
    if not only_overrides:
        lines += [_partition_line(described, one) for one in _chosen(described, reports)]
    return lines


def _chosen(described: _Described, reports: Sequence[str]) -> list[PartitionState]:
    """The partitions that some of the reports are about; all where there is no report."""
    return [
        partition
        for partition in described.topic.partitions
        if not reports or any(_is_in_report(described, partition, name) for name in reports)
    ]


def _is_in_report(described: _Described, partition: PartitionState, report: str) -> bool:
    has_leader, in_sync = described.leader_of(partition) is not None, len(partition.isr)
    return {
        "under-replicated-partitions": described.replication_of(partition) > in_sync,
        "unavailable-partitions": not has_leader,
        "under-min-isr-partitions": not has_leader or in_sync < described.minimum,
        "at-min-isr-partitions": in_sync == described.minimum,
    }[report]


def _topic_line(described: _Described) -> str:
    topic = described.topic
    configs = ",".join(f"{name}={_java(value)}" for name, value in described.overrides.items())
    topic_id = f"\tTopicId: {encode_uuid(topic.topic_id)}" if topic.topic_id != ZERO_ID else ""
    replication = described.replication_of(topic.partitions[0]) if topic.partitions else 0
    return (
        f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(topic.partitions)}"
        f"\tReplicationFactor: {replication}\tConfigs: {configs}"
    )


def _partition_line(described: _Described, partition: PartitionState) -> str:
    leader, move = described.leader_of(partition), described.move_of(partition)
    moving = ""
    if move is not None:
        moving = f"\tAdding Replicas: {_ids(move.adding)}\tRemoving Replicas: {_ids(move.removing)}"
    return (
        f"\tTopic: {described.topic.name}\tPartition: {partition.index}\tLeader: {'none' if leader is None else leader}"
        f"\tReplicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}{moving}"
        f"\tElr: {_ids(partition.elr)}\tLastKnownElr: {_ids(partition.last_known_elr)}"
    )


def _ids(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


def _java(value: str | None) -> str:
    return "null" if value is None else value


def _document(described: _Described, values: Values) -> dict[str, Any]:
    topic = described.topic
    partitions = []
    for partition in _chosen(described, [name for name in REPORTS if values.has(name)]):
        move = described.move_of(partition)
        row: dict[str, Any] = {
            "partition": partition.index,
            "leader": described.leader_of(partition),
            "replicas": partition.replicas,
            "isr": partition.isr,
            "elr": partition.elr,
            "lastKnownElr": partition.last_known_elr,
        }
        if move is not None:
            row |= {"addingReplicas": move.adding, "removingReplicas": move.removing}
        partitions.append(row)
    return {
        "topic": topic.name,
        "topicId": encode_uuid(topic.topic_id),
        "partitionCount": len(topic.partitions),
        "replicationFactor": described.replication_of(topic.partitions[0]) if topic.partitions else 0,
        "configs": described.overrides,
        "partitions": partitions,
    }


# --- ids


def parse_id(text: str) -> UUID:
    """An id as Kafka writes it; refused in Kafka's words."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise HeadraceError(f"Input string `{text}` is not a base64-encoded UUID") from None
    if len(raw) != _ID_BYTES:
        raise HeadraceError(
            f"Input string `{text}` decoded as {len(raw)} bytes, which is not equal to the expected 16 bytes of a "
            "base64-encoded UUID"
        )
    return UUID(bytes=raw)
