"""What administration tools ask a cluster: topics, settings, reassignments; errors raised, pages put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.client.cluster import METADATA, Cluster
from headrace.client.fault import NotServed
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from headrace.wire.messages.describe_configs import DescribeConfigsResourceResult

DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 44
LIST_PARTITION_REASSIGNMENTS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 46, 60, 75

UNKNOWN, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
"""The kinds of things that have settings."""

SET, DELETE = 0, 1
DEFAULT_CONFIG = 5
PARTITIONS_PER_ANSWER = 2000
_CONTROLLERS = 2
_TIMEOUT_MS = 30_000

Place = tuple[str, int]
Resource = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition as the brokers know it."""

    index: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic as the brokers know it, its partitions in order."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A partition on its way to other brokers."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def check(code: int, message: str | None = None) -> None:
    """Raise what a broker answered, unless it is no error."""
    if code:
        raise KafkaError(ErrorCode(code), message or "")


# --- topics


async def describe_topics(
    cluster: Cluster, names: Iterable[str], *, partitions_per_answer: int = PARTITIONS_PER_ANSWER
) -> list[TopicState]:
    """The topics of these names; KafkaError if one does not exist."""
    from headrace.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest

    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in sorted(names)), response_partition_limit=partitions_per_answer
    )
    found: dict[str, TopicState] = {}
    while request.topics:
        try:
            answer = await cluster.ask(DESCRIBE_TOPIC_PARTITIONS, request)
        except NotServed:
            return await _topics_in_metadata(cluster, [topic.name for topic in request.topics])
        for topic in answer.topics:
            check(topic.error_code)
            _extend(found, topic)
        cursor = answer.next_cursor
        if cursor is None:
            break
        rest = tuple(topic for topic in request.topics if topic.name >= cursor.topic_name)
        request = DescribeTopicPartitionsRequest(
            topics=rest, response_partition_limit=partitions_per_answer, cursor=cursor
        )
    return list(found.values())


def _extend(found: dict[str, TopicState], topic: Any) -> None:
    partitions = tuple(
        PartitionState(
            index=one.partition_index,
            leader=one.leader_id,
            replicas=tuple(one.replica_nodes),
            isr=tuple(one.isr_nodes),
            elr=tuple(one.eligible_leader_replicas or ()),
            last_known_elr=tuple(one.last_known_elr or ()),
        )
        for one in topic.partitions
    )
    known = found.get(topic.name)
    if known is not None:
        partitions = known.partitions + partitions
    found[topic.name] = TopicState(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(sorted(partitions, key=lambda partition: partition.index)),
    )


async def _topics_in_metadata(cluster: Cluster, names: Sequence[str]) -> list[TopicState]:
    return [topic_of(one) for one in (await cluster.metadata(names)).topics]


def topic_of(answer: Any) -> TopicState:
    """A topic as the Metadata API shows it, which knows nothing of eligible leaders."""
    check(answer.error_code)
    partitions = tuple(
        PartitionState(
            index=one.partition_index,
            leader=one.leader_id,
            replicas=tuple(one.replica_nodes),
            isr=tuple(one.isr_nodes),
        )
        for one in sorted(answer.partitions, key=lambda partition: int(partition.partition_index))
    )
    return TopicState(name=answer.name, topic_id=answer.topic_id, is_internal=answer.is_internal, partitions=partitions)


async def reassignments(cluster: Cluster, places: Iterable[Place] | None = None) -> dict[Place, Reassignment]:
    """Partitions that are being moved, of these or of all."""
    from headrace.wire.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsTopics,
    )

    asked = None
    if places is not None:
        asked = tuple(
            ListPartitionReassignmentsTopics(name=name, partition_indexes=tuple(indexes))
            for name, indexes in by_topic(places).items()
        )
    answer = await ask_controller(
        cluster, LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(timeout_ms=_TIMEOUT_MS, topics=asked)
    )
    check(answer.error_code, answer.error_message)
    return {
        (topic.name, one.partition_index): Reassignment(
            replicas=tuple(one.replicas), adding=tuple(one.adding_replicas), removing=tuple(one.removing_replicas)
        )
        for topic in answer.topics
        for one in topic.partitions
    }


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """Partitions by their topic."""
    found: dict[str, list[int]] = {}
    for name, index in places:
        found.setdefault(name, []).append(index)
    return found


# --- settings


async def describe_configs(
    cluster: Cluster, resources: Sequence[Resource], *, synonyms: bool = False
) -> dict[Resource, Sequence[DescribeConfigsResourceResult]]:
    """The settings of things; a broker is asked about its own."""
    from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    found: dict[Resource, Sequence[DescribeConfigsResourceResult]] = {}
    for node_id, asked in (await _by_node(cluster, resources)).items():
        request = DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
                for kind, name in asked
            ),
            include_synonyms=synonyms,
        )
        answer = await cluster.ask(DESCRIBE_CONFIGS, request, node_id=node_id)
        for one in answer.results:
            check(one.error_code, one.error_message)
            found[one.resource_type, one.resource_name] = one.configs
    return found


async def alter_configs(cluster: Cluster, changes: Mapping[Resource, Sequence[tuple[str, int, str | None]]]) -> None:
    """Change settings: name, SET or DELETE, and the value, by resource; a broker is told its own."""
    from headrace.wire.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    for node_id, asked in (await _by_node(cluster, list(changes))).items():
        request = IncrementalAlterConfigsRequest(
            resources=tuple(
                AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=tuple(
                        AlterableConfig(name=setting, config_operation=operation, value=value)
                        for setting, operation, value in changes[kind, name]
                    ),
                )
                for kind, name in asked
            )
        )
        answer = await cluster.ask(INCREMENTAL_ALTER_CONFIGS, request, node_id=node_id)
        for one in answer.responses:
            check(one.error_code, one.error_message)


async def _by_node(cluster: Cluster, resources: Sequence[Resource]) -> dict[int | None, list[Resource]]:
    """Who must be asked: the broker itself about its settings and loggers, anybody about the rest."""
    anybody = await is_of_controllers(cluster)
    found: dict[int | None, list[Resource]] = {}
    for kind, name in resources:
        own = kind in {BROKER, BROKER_LOGGER} and name and not anybody
        found.setdefault(int(name) if own else None, []).append((kind, name))
    return found


# --- who answers


async def is_of_controllers(cluster: Cluster) -> bool:
    """Whether the addresses we were given are those of controllers, which know nothing of topics."""
    return METADATA not in (await cluster.any_channel()).versions


async def ask_controller(cluster: Cluster, api_key: int, message: Any) -> Any:
    """Ask the node that decides: a broker of today hands on, one of ZooKeeper's time must be the controller."""
    if await is_of_controllers(cluster):
        return await _ask_active_controller(cluster, api_key, message)
    metadata = await cluster.metadata(())
    known = {broker.node_id for broker in metadata.brokers}
    controller = metadata.controller_id
    return await cluster.ask(api_key, message, node_id=controller if controller in known else None)


async def _ask_active_controller(cluster: Cluster, api_key: int, message: Any) -> Any:
    answer = await _describe_controllers(cluster)
    where = next(((one.host, one.port) for one in answer.brokers if one.broker_id == answer.controller_id), None)
    if where is None or set(cluster.options.bootstrap) == {where}:
        return await cluster.ask(api_key, message)
    async with Cluster(replace(cluster.options, bootstrap=(where,))) as active:
        return await active.ask(api_key, message)


async def node_ids(cluster: Cluster) -> list[int]:
    """The brokers, or the controllers where we talk to those."""
    if await is_of_controllers(cluster):
        return sorted(one.broker_id for one in (await _describe_controllers(cluster)).brokers)
    return list(await cluster.brokers())


async def _describe_controllers(cluster: Cluster) -> Any:
    from headrace.wire.messages.describe_cluster import DescribeClusterRequest

    answer = await cluster.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=_CONTROLLERS))
    check(answer.error_code, answer.error_message)
    return answer
