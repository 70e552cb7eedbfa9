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

from itertools import repeat
from typing import TYPE_CHECKING, Any

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.shard import responded
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
    from collections.abc import Awaitable, Iterator

    from headrace.wire.messages.offset_commit import OffsetCommitRequestTopic

MEMBER_EPOCHS_FIRST = 9
TOPIC_IDS_FIRST = 10

_UNKNOWN_GROUP = ErrorCode.GROUP_ID_NOT_FOUND
_UNKNOWN_GROUP_BEFORE = ErrorCode.ILLEGAL_GENERATION

Refused = list[ErrorCode | None]
"""For each partition of a request, in order: why it is refused, None where the group decides."""


def handle(call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    """Note how far a group has read; at once where nothing has to be waited for."""
    refused: Refused = []
    wanted: list[NewOffset] = []
    for topic in request.topics:
        _sort_out(call, topic, wanted, refused)
    if not wanted:
        return _response(request, refused, iter(()))
    try:
        reply = _begin(call, request, tuple(wanted))
    except KafkaError as error:
        return _response(request, refused, repeat(error.code))
    return responded(reply, lambda answer: _response(request, refused, _errors(answer)))


def _errors(reply: Any) -> Iterator[ErrorCode]:
    """What the group says to each offset it was given."""
    return repeat(reply.code) if isinstance(reply, KafkaError) else iter(reply)


def _response(request: OffsetCommitRequest, refused: Refused, decided: Iterator[ErrorCode]) -> OffsetCommitResponse:
    errors = iter([next(decided) if error is None else error for error in refused])
    return OffsetCommitResponse(
        topics=tuple(
            [
                OffsetCommitResponseTopic(
                    topic_id=topic.topic_id,
                    name=topic.name,
                    partitions=tuple(
                        [
                            OffsetCommitResponsePartition(
                                partition_index=partition.partition_index, error_code=next(errors)
                            )
                            for partition in topic.partitions
                        ]
                    ),
                )
                for topic in request.topics
            ]
        )
    )


def _sort_out(call: Call, topic: OffsetCommitRequestTopic, wanted: list[NewOffset], refused: Refused) -> None:
    """Which partitions of a topic are there."""
    metadata = call.broker.metadata
    by_id = call.version >= TOPIC_IDS_FIRST
    topic_id = topic.topic_id
    known = metadata.topics_by_id.get(topic_id) if by_id else metadata.topics.get(topic.name)
    if known is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        refused += [error] * len(topic.partitions)
        return
    name, count = known.name, len(known.partitions)
    for partition in topic.partitions:
        index = partition.partition_index
        if not 0 <= index < count:
            refused.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        refused.append(None)
        wanted.append(
            NewOffset(
                topic=name,
                topic_id=topic_id,
                partition=index,
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata or "",
            )
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
        unknown_group=_UNKNOWN_GROUP if knows_member_epochs else _UNKNOWN_GROUP_BEFORE,
        knows_member_epochs=knows_member_epochs,
    )
    shard = call.broker.groups.shard_for(request.group_id)
    return shard.begin(lambda token, now_ms: commit(shard.core, command, token, now_ms))


API = Api(key=8, low=2, high=10, handle=handle)
