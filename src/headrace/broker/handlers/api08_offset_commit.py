"""OffsetCommit, key 8.

Versions: 2-10, all of Kafka 4.
Behaviour: answered when the offsets are safe. A group without members can be committed to by anyone; one with members
only by these, in its generation or member epoch; who is a member by epoch needs version 9. Partitions that are not
there are refused one by one, as is a note longer than `offset.metadata.max.bytes`. A retention time (v2-4) takes the
place of `offsets.retention.minutes`.
Deviations: what is committed to a group that has long been empty is kept for the full retention; Kafka counts from when
the group became empty, and forgets it with the next check.
KIPs: 211 (v5), 320 leader epochs (v6), 345 static membership (v7), 848 member epochs (v9), 516 topic ids (v10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.broker.api import Api, Call
from headrace.cores.groups.offsets import CommitCommand, NewOffset, commit
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from headrace.wire.messages.offset_commit import OffsetCommitRequestTopic

MEMBER_EPOCHS_FIRST = 9
TOPIC_IDS_FIRST = 10

Place = tuple[int, int]
"""Which topic of a request, and which partition of it."""


def handle(call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    """Note how far a group has read; at once where nothing has to be waited for."""
    refused: dict[Place, ErrorCode] = {}
    wanted: dict[Place, NewOffset] = {}
    for number, topic in enumerate(request.topics):
        _sort_out(call, number, topic, wanted, refused)
    if not wanted:
        return _response(request, refused)
    try:
        reply = _begin(call, request, tuple(wanted.values()))
    except KafkaError as error:
        return _response(request, refused | dict.fromkeys(wanted, error.code))
    if reply.done():
        return _response(request, refused | _errors(wanted, reply.result()))
    return _finish(request, refused, wanted, reply)


async def _finish(
    request: OffsetCommitRequest,
    refused: dict[Place, ErrorCode],
    wanted: dict[Place, NewOffset],
    reply: asyncio.Future[Any],
) -> OffsetCommitResponse:
    return _response(request, refused | _errors(wanted, await reply))


def _errors(wanted: dict[Place, NewOffset], reply: Any) -> dict[Place, ErrorCode]:
    if isinstance(reply, KafkaError):
        return dict.fromkeys(wanted, reply.code)
    return dict(zip(wanted, reply, strict=True))


def _response(request: OffsetCommitRequest, errors: dict[Place, ErrorCode]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                topic_id=topic.topic_id,
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=int(errors[number, place])
                    )
                    for place, partition in enumerate(topic.partitions)
                ),
            )
            for number, topic in enumerate(request.topics)
        )
    )


def _sort_out(
    call: Call,
    number: int,
    topic: OffsetCommitRequestTopic,
    wanted: dict[Place, NewOffset],
    refused: dict[Place, ErrorCode],
) -> None:
    """Which partitions of a topic are there, by their place in the request."""
    metadata = call.broker.metadata
    by_id = call.version >= TOPIC_IDS_FIRST
    known = metadata.topics_by_id.get(topic.topic_id) if by_id else metadata.topics.get(topic.name)
    for place, partition in enumerate(topic.partitions):
        if known is None:
            refused[number, place] = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif not 0 <= partition.partition_index < len(known.partitions):
            refused[number, place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            wanted[number, place] = NewOffset(
                topic=known.name,
                topic_id=topic.topic_id,
                partition=partition.partition_index,
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata or "",
            )


def _begin(call: Call, request: OffsetCommitRequest, offsets: tuple[NewOffset, ...]) -> asyncio.Future[Any]:
    knows_member_epochs = call.version >= MEMBER_EPOCHS_FIRST
    command = CommitCommand(
        group_id=request.group_id,
        offsets=offsets,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        retention_ms=request.retention_time_ms,
        unknown_group=ErrorCode.GROUP_ID_NOT_FOUND if knows_member_epochs else ErrorCode.ILLEGAL_GENERATION,
        knows_member_epochs=knows_member_epochs,
    )
    shard = call.broker.groups.shard_for(request.group_id)
    return shard.begin(lambda token, now_ms: commit(shard.core, command, token, now_ms))


API = Api(key=8, low=2, high=10, handle=handle)
