"""OffsetFetch, key 9.

Versions: 1-10, all of Kafka 4.
Behaviour: how far groups have read; -1 where they have not. From v2 on all there is of a group if no topics are named,
from v8 on several groups at once. With `require_stable` (v7) a partition whose offset a transaction is about to commit
is UNSTABLE_OFFSET_COMMIT. What is told is safe: a crash does not take it back.
Deviations: none known.
KIPs: 88 (v2), 320 leader epochs (v5), 447 stable offsets (v7), 709 several groups (v8), 848 member epochs (v9), 516
topic ids (v10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.groups.offsets import FetchCommand, FetchedOffset, FetchedTopic, fetch
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import ZERO_ID
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from headrace.cores.groups.offsets import FetchedOffsets

ERROR_FIRST = 2
SEVERAL_GROUPS_FIRST = 8
TOPIC_IDS_FIRST = 10


async def handle(call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Tell how far each group has read."""
    if call.version >= SEVERAL_GROUPS_FIRST:
        groups = [await _fetch(call, group, require_stable=request.require_stable) for group in request.groups]
        return OffsetFetchResponse(groups=tuple(groups))
    topics = request.topics
    asked = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else tuple(
            OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes) for each in topics
        ),
    )
    return _of_one_group(asked, await _fetch(call, asked, require_stable=request.require_stable), call.version)


async def _fetch(call: Call, asked: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
    by_id = call.version >= TOPIC_IDS_FIRST
    named = None if asked.topics is None else [_named(call, topic, by_id=by_id) for topic in asked.topics]
    command = FetchCommand(
        group_id=asked.group_id,
        topics=None if named is None else tuple(topic for topic in named if topic is not None),
        member_id=asked.member_id,
        member_epoch=asked.member_epoch,
        require_stable=require_stable,
    )
    try:
        shard = call.broker.groups.shard_for(asked.group_id)
        fetched: FetchedOffsets = await shard.look(lambda token, now_ms: fetch(shard.core, command, token, now_ms))
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=int(error.code))
    if asked.topics is None or named is None:
        topics = _all(call, fetched, by_id=by_id)
    else:
        answers = iter(fetched)
        topics = [
            _unknown(topic) if known is None else _topic(topic.name, topic.topic_id, next(answers)[1])
            for topic, known in zip(asked.topics, named, strict=True)
        ]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=tuple(topics))


def _named(call: Call, topic: OffsetFetchRequestTopics, *, by_id: bool) -> FetchedTopic | None:
    """The topic by its name, whatever the client calls it by; None if there is none of that id."""
    name = topic.name
    if by_id:
        known = call.broker.metadata.topics_by_id.get(topic.topic_id)
        if known is None:
            return None
        name = known.name
    return FetchedTopic(topic=name, topic_id=topic.topic_id, partitions=topic.partition_indexes)


def _all(call: Call, fetched: FetchedOffsets, *, by_id: bool) -> list[OffsetFetchResponseTopics]:
    """All topics a group has offsets of; one without an id cannot be told to who wants ids."""
    if not by_id:
        return [_topic(name, ZERO_ID, offsets) for name, offsets in fetched]
    known = call.broker.metadata.topics
    return [_topic(name, known[name].topic_id, offsets) for name, offsets in fetched if name in known]


def _topic(name: str, topic_id: UUID, offsets: Iterable[FetchedOffset]) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=offset.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                metadata=offset.metadata,
                error_code=int(offset.error),
            )
            for offset in offsets
        ),
    )


def _unknown(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    offsets = (FetchedOffset(partition=index, error=ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes)
    return _topic(topic.name, topic.topic_id, offsets)


def _of_one_group(asked: OffsetFetchRequestGroup, group: OffsetFetchResponseGroup, version: int) -> OffsetFetchResponse:
    """The form of the versions that know one group; the first has no place for an error but the partitions."""
    topics = group.topics
    if group.error_code and version < ERROR_FIRST:
        failed = ErrorCode(group.error_code)
        topics = tuple(
            _topic(
                topic.name, ZERO_ID, [FetchedOffset(partition=index, error=failed) for index in topic.partition_indexes]
            )
            for topic in asked.topics or ()
        )
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in topics
        ),
    )


API = Api(key=9, low=1, high=10, handle=handle)
