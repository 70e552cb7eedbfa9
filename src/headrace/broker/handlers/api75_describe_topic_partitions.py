"""DescribeTopicPartitions, key 75.

Versions: 0.
Behaviour: topics in the order of their names, a page at a time: at most as many partitions as the client asks for and
`max.request.partition.size.limit` allows, and a cursor to go on from. Without names all topics are described.
A cursor that cannot be is told as INVALID_REQUEST at each asked topic, the answer having no other place for it.
KIPs: 966.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.authorized_operations import TOPIC_OPERATIONS
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode
from headrace.model.ids import topic_name_fault
from headrace.model.metadata_records import NO_LEADER
from headrace.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.broker.broker import Broker
    from headrace.cores.metadata import PartitionState, Topic


def handle(call: Call, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """Describe one page of topics."""
    topics = call.broker.metadata.topics
    if not _is_sound(request):
        return DescribeTopicPartitionsResponse(topics=tuple(_refused(topic.name) for topic in request.topics))
    limit = call.broker.config["max.request.partition.size.limit"]
    left = max(min(limit, request.response_partition_limit), 1)
    described: list[DescribeTopicPartitionsResponseTopic] = []
    for name in _names(request, topics):
        if left == 0:
            return _page(described, Cursor(topic_name=name, partition_index=0))
        topic = topics.get(name)
        if topic is None:
            described.append(_unknown(name))
            continue
        first = request.cursor.partition_index if request.cursor and request.cursor.topic_name == name else 0
        states = topic.partitions[first : first + left]
        described.append(_topic(call.broker, topic, states))
        left -= len(states)
        if first + len(states) < len(topic.partitions):
            return _page(described, Cursor(topic_name=name, partition_index=first + len(states)))
    return _page(described, None)


def _is_sound(request: DescribeTopicPartitionsRequest) -> bool:
    """Whether the cursor, if there is one, points into what is asked for."""
    cursor = request.cursor
    if cursor is None:
        return True
    inside = not request.topics or any(topic.name == cursor.topic_name for topic in request.topics)
    return inside and cursor.partition_index >= 0


def _names(request: DescribeTopicPartitionsRequest, topics: dict[str, Topic]) -> list[str]:
    """The topics from the cursor on, in order."""
    first = request.cursor.topic_name if request.cursor else ""
    asked = {topic.name for topic in request.topics} or set(topics)
    return sorted(name for name in asked if name >= first)


def _page(
    topics: Sequence[DescribeTopicPartitionsResponseTopic], cursor: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=int(ErrorCode.INVALID_REQUEST), name=name)


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    legal = topic_name_fault(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=int(code),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _topic(broker: Broker, topic: Topic, states: Sequence[PartitionState]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(_partition(broker, topic, state) for state in states),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(broker: Broker, topic: Topic, state: PartitionState) -> DescribeTopicPartitionsResponsePartition:
    ready = broker.cluster.leads(topic, state)
    return DescribeTopicPartitionsResponsePartition(
        error_code=int(ErrorCode.NONE if ready else ErrorCode.LEADER_NOT_AVAILABLE),
        partition_index=state.index,
        leader_id=state.leader if ready else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=state.elr,
        last_known_elr=state.last_known_elr,
        offline_replicas=broker.cluster.offline_replicas(state),
    )


API = Api(key=75, low=0, high=0, handle=handle)
