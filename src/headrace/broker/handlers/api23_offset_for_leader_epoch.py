"""OffsetForLeaderEpoch, key 23.

Versions: 2-4.
Behaviour: where the given leader epoch ended in this log, so that a client can tell whether what it read is still
there (KIP-320); -1 for an epoch the log does not know. Only the leader answers.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.fetcher import check_epoch
from headrace.model.errors import KafkaError
from headrace.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Answer every partition asked for."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_partition(call, topic.topic, asked) for asked in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _partition(call: Call, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = call.broker.partitions.require_led(topic, asked.partition)
        check_epoch(partition, asked.current_leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=int(error.code), leader_epoch=-1, end_offset=-1)
    epoch, end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)


API = Api(key=23, low=2, high=4, handle=handle)
