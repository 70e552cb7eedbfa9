"""What tools ask a cluster about streams groups (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.group_queries import ask_for_group, check

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.client.cluster import Cluster
    from headrace.model.errors import KafkaError
    from headrace.wire.messages.streams_group_describe import DescribedGroup, Subtopology

    Place = tuple[str, int]

STREAMS_GROUP_DESCRIBE, DELETE_TOPICS = 89, 20
TYPES_OF_STREAMS = ("Streams",)
_INTERNAL_ENDINGS = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
_FOREIGN_KEY_JOINS = r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"


async def describe_streams_group(cluster: Cluster, group_id: str) -> DescribedGroup:
    """A streams group; KafkaError if there is none."""
    return await cluster.persist(lambda: _describe(cluster, group_id))


async def _describe(cluster: Cluster, group_id: str) -> DescribedGroup:
    from headrace.wire.messages.streams_group_describe import StreamsGroupDescribeRequest

    request = StreamsGroupDescribeRequest(group_ids=(group_id,))
    answer, _ = await ask_for_group(cluster, group_id, STREAMS_GROUP_DESCRIBE, request)
    described: DescribedGroup = answer.groups[0]
    check(described.error_code, described.error_message)
    return described


def subtopologies(group: DescribedGroup) -> Sequence[Subtopology]:
    """The parts of the group's topology, none if it is not known yet."""
    return (group.topology.subtopologies if group.topology else None) or ()


def input_topics(group: DescribedGroup) -> set[str]:
    """The topics the application reads that it did not make itself."""
    return {topic for part in subtopologies(group) for topic in part.source_topics}


def source_topics(group: DescribedGroup) -> set[str]:
    """All topics the application reads."""
    return input_topics(group) | {
        topic.name for part in subtopologies(group) for topic in part.repartition_source_topics
    }


def active_places(group: DescribedGroup) -> list[Place]:
    """The partitions that the active tasks of the members read, in the order of the tasks."""
    read: dict[str, list[str]] = {
        part.subtopology_id: [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
        for part in subtopologies(group)
    }
    places = (
        (topic, index)
        for member in group.members
        for task in member.assignment.active_tasks
        for topic in read.get(task.subtopology_id, ())
        for index in task.partitions
    )
    return list(dict.fromkeys(places))


def internal_topics(group: DescribedGroup) -> list[str]:
    """The topics the application made for itself, by the topology."""
    own = [
        topic.name
        for part in subtopologies(group)
        for topic in (*part.repartition_source_topics, *part.state_changelog_topics)
    ]
    return [topic for topic in own if topic not in input_topics(group)]


def is_internal_by_name(topic: str, group_id: str) -> bool:
    """Whether a topic is named as Kafka Streams names its own."""
    import re

    return topic.startswith(f"{group_id}-") and (
        topic.endswith(_INTERNAL_ENDINGS) or re.fullmatch(_FOREIGN_KEY_JOINS, topic) is not None
    )


async def delete_topics(cluster: Cluster, topics: Iterable[str]) -> dict[str, KafkaError]:
    """Delete topics; those that could not be, and why."""
    from headrace.cli.administration import ask_controller
    from headrace.model.errors import ErrorCode, KafkaError
    from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    names = tuple(topics)
    request = DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(name=name) for name in names),
        topic_names=names,
        timeout_ms=int(1000 * cluster.options.request_timeout_s),
    )
    answer: Any = await ask_controller(cluster, DELETE_TOPICS, request)
    return {
        one.name: KafkaError(ErrorCode(one.error_code), one.error_message or "")
        for one in answer.responses
        if one.error_code
    }
