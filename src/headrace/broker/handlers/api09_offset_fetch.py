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

from typing import TYPE_CHECKING, Any

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
    import asyncio
    from collections.abc import Awaitable, Iterable
    from uuid import UUID

    from headrace.cores.groups.offsets import FetchedOffsets

ERROR_FIRST = 2
SEVERAL_GROUPS_FIRST = 8
TOPIC_IDS_FIRST = 10

Begun = tuple[OffsetFetchRequestGroup, "list[FetchedTopic | None] | None", "asyncio.Future[Any] | KafkaError"]
"""What is asked of a group, its topics by their names, and the reply to come or what stands in its way."""


def handle(call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    """Tell how far each group has read; at once where nothing has to be waited for."""
    asked = request.groups if call.version >= SEVERAL_GROUPS_FIRST else (_only_group(request),)
    begun = [_begin(call, group, require_stable=request.require_stable) for group in asked]
    if all(isinstance(reply, KafkaError) or reply.done() for _, _, reply in begun):
        return _response(call, begun)
    return _finish(call, begun)


async def _finish(call: Call, begun: list[Begun]) -> OffsetFetchResponse:
    for _, _, reply in begun:
        if not isinstance(reply, KafkaError):
            await reply
    return _response(call, begun)


def _response(call: Call, begun: list[Begun]) -> OffsetFetchResponse:
    groups = tuple([_group(call, each) for each in begun])
    if call.version >= SEVERAL_GROUPS_FIRST:
        return OffsetFetchResponse(groups=groups)
    return _of_one_group(begun[0][0], groups[0], call.version)


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """What the versions that know one group ask, in the form of the later ones."""
    topics = request.topics
    if topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=tuple(
            OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes) for each in topics
        ),
    )


def _begin(call: Call, asked: OffsetFetchRequestGroup, *, require_stable: bool) -> Begun:
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
        reply = shard.begin_look(lambda token, now_ms: fetch(shard.core, command, token, now_ms))
    except KafkaError as error:
        return asked, named, error
    return asked, named, reply


def _group(call: Call, begun: Begun) -> OffsetFetchResponseGroup:
    asked, named, reply = begun
    fetched: FetchedOffsets | KafkaError = reply if isinstance(reply, KafkaError) else reply.result()
    if isinstance(fetched, KafkaError):
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=int(fetched.code))
    if asked.topics is None or named is None:
        topics = _all(call, fetched, by_id=call.version >= TOPIC_IDS_FIRST)
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
