"""ListOffsets, key 2.

Versions: 1-11.
Behaviour: earliest (-2), latest (-1: the high watermark, or the last stable offset under read_committed), the offset
of the largest timestamp (-3, v7, KIP-734), earliest local (-4, v8: the same as earliest, nothing is tiered), latest
tiered (-5, v9) and earliest pending upload (-6, v11): none; otherwise the first record at or after a timestamp, which
may need the disk and runs in a thread. Only the leader answers. A new leader that does not know yet how far the last
one got says OFFSET_NOT_AVAILABLE (v5, before that LEADER_NOT_AVAILABLE) rather than an offset that goes back (KIP-207).
For a follower the latest offset is where the log ends.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.fetcher import check_epoch
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from headrace.broker.partition import Partition

logger = logging.getLogger(__name__)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6

NOT_AVAILABLE_FIRST = 5

Found = tuple[int, int, int]
"""timestamp, offset, leader epoch."""
NOTHING: Found = (-1, -1, -1)


async def handle(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look up one offset per partition asked for."""
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=tuple([await _partition(call, topic.name, asked, request) for asked in topic.partitions]),
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=tuple(topics))


async def _partition(
    call: Call, topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    try:
        partition = call.broker.partitions.require_led(topic, index)
        check_epoch(partition, asked.current_leader_epoch)
        readable = _readable(partition, request)
        timestamp, offset, epoch = await _look_up(call, partition, asked.timestamp, readable)
        if request.replica_id < 0:
            _check_known(call, partition, asked.timestamp, offset)
    except KafkaError as error:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=int(error.code))
    except StorageFault as fault:
        logger.error("lookup_failed partition=%s-%d reason=%s", topic, index, fault)  # noqa: TRY400
        return ListOffsetsPartitionResponse(partition_index=index, error_code=int(ErrorCode.KAFKA_STORAGE_ERROR))
    return ListOffsetsPartitionResponse(partition_index=index, timestamp=timestamp, offset=offset, leader_epoch=epoch)


def _readable(partition: Partition, request: ListOffsetsRequest) -> int:
    """Where the log ends for whoever asks."""
    if request.replica_id >= 0:
        return partition.log.log_end_offset
    return partition.last_stable_offset if request.isolation_level == 1 else partition.log.high_watermark


def _check_known(call: Call, partition: Partition, timestamp: int, offset: int) -> None:
    """Refuse what depends on how far everything is committed, while a new leader does not know that."""
    leader = partition.replicated
    if leader is None or leader.high_watermark >= leader.epoch_start_offset:
        return
    if timestamp == LATEST or (timestamp >= 0 and offset < 0):
        code = ErrorCode.OFFSET_NOT_AVAILABLE if call.version >= NOT_AVAILABLE_FIRST else ErrorCode.LEADER_NOT_AVAILABLE
        raise KafkaError(code, "The high watermark of the last leader is not known yet.")


async def _look_up(call: Call, partition: Partition, timestamp: int, readable: int) -> Found:
    log = partition.log
    if timestamp == LATEST:
        return (-1, readable, partition.leader_epoch)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return (-1, log.log_start_offset, log.epoch_at(log.log_start_offset))
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING}:
        return NOTHING
    if timestamp < MAX_TIMESTAMP:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{timestamp} is no timestamp and no known marker.")
    loop = asyncio.get_running_loop()
    if timestamp == MAX_TIMESTAMP:
        found = await loop.run_in_executor(call.broker.readers, log.offset_of_max_timestamp)
    else:
        found = await loop.run_in_executor(call.broker.readers, log.offset_for_timestamp, timestamp)
    if found is None or found[1] >= readable:
        return NOTHING
    return found


API = Api(key=2, low=1, high=11, handle=handle)
