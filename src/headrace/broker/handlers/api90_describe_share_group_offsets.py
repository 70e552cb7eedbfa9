"""DescribeShareGroupOffsets, key 90.

Versions: 0-1.
Behaviour: where each partition of a share group stands; all the group has read, or those asked for. From v1 on also how
many records lie ahead: up to the end of the partition, less those that are done out of order; -1 where that is not
known. The start is the one that was written down with the last answer, before it moved: where everything is done the
lag is 0 though the start is not the end yet, as in Kafka. A group that is not there, or is of another kind, has read
nothing, which is no error.
Deviations: a group without a name is INVALID_GROUP_ID; Kafka says nothing of it, or UNKNOWN_SERVER_ERROR.
KIPs: 932, 1226 lag (v1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker import share_persister
from headrace.broker.api import Api, Call
from headrace.broker.share_groups import look_at_group
from headrace.broker.share_lag import share_lag
from headrace.broker.share_service import require_share_groups
from headrace.cores.groups.share_offsets import initialized_topics
from headrace.cores.share_state import NO_OFFSET
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from headrace.cores.metadata import Topic


async def handle(call: Call, request: DescribeShareGroupOffsetsRequest) -> DescribeShareGroupOffsetsResponse:
    """Describe each group's offsets."""
    return DescribeShareGroupOffsetsResponse(groups=tuple([await _group(call, group) for group in request.groups]))


async def _group(call: Call, asked: DescribeShareGroupOffsetsRequestGroup) -> DescribeShareGroupOffsetsResponseGroup:
    group_id = asked.group_id
    try:
        require_share_groups(call.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group must have a name.")
        known: Mapping[str, tuple[UUID, tuple[int, ...]]] = await look_at_group(
            call.broker, group_id, lambda groups, token, _: initialized_topics(groups, group_id, token)
        )
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=group_id, error_code=int(error.code), error_message=error.message
        )
    wanted = (
        [
            DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes)
            for name, (_, indexes) in known.items()
        ]
        if asked.topics is None
        else asked.topics
    )
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, topics=tuple([await _topic(call, group_id, topic) for topic in wanted])
    )


async def _topic(
    call: Call, group_id: str, asked: DescribeShareGroupOffsetsRequestTopic
) -> DescribeShareGroupOffsetsResponseTopic:
    topic = call.broker.metadata.topics.get(asked.topic_name)
    if topic is None:
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        return DescribeShareGroupOffsetsResponseTopic(
            topic_name=asked.topic_name, partitions=tuple(_failed(index, error) for index in asked.partitions)
        )
    partitions = [await _partition(call, group_id, topic, index) for index in asked.partitions]
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name, topic_id=topic.topic_id, partitions=tuple(partitions)
    )


async def _partition(call: Call, group_id: str, topic: Topic, index: int) -> DescribeShareGroupOffsetsResponsePartition:
    try:
        state = await share_persister.read_summary(call.broker, (group_id, topic.topic_id, index))
    except KafkaError as error:
        return _failed(index, error)
    if state is None:
        return DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=NO_OFFSET)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=state.start_offset,
        leader_epoch=state.leader_epoch,
        lag=await share_lag(call.broker, topic, index, state),
    )


def _failed(index: int, error: KafkaError) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=NO_OFFSET, error_code=int(error.code), error_message=error.message
    )


API = Api(key=90, low=0, high=1, handle=handle)
