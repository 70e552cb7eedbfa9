"""ListOffsets, key 2.

Versions: 1-11.
Behaviour: earliest (-2), latest (-1: the high watermark, or the last stable offset under read_committed), the offset
of the largest timestamp (-3, v7, KIP-734), earliest local (-4, v8: the same as earliest, nothing is tiered), latest
tiered (-5, v9) and earliest pending upload (-6, v11): none; otherwise the first record at or after a timestamp, which
may need the disk and runs in a thread.
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

Found = tuple[int, int, int]
"""timestamp, offset, leader epoch."""
NOTHING: Found = (-1, -1, -1)


async def handle(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look up one offset per partition asked for."""
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=tuple(
                [await _partition(call, topic.name, asked, request.isolation_level) for asked in topic.partitions]
            ),
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=tuple(topics))


async def _partition(
    call: Call, topic: str, asked: ListOffsetsPartition, isolation_level: int
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    try:
        partition = call.broker.partitions.require(topic, index)
        check_epoch(partition, asked.current_leader_epoch)
        timestamp, offset, epoch = await _look_up(call, partition, asked.timestamp, committed=isolation_level == 1)
    except KafkaError as error:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=int(error.code))
    except StorageFault as fault:
        logger.error("lookup_failed partition=%s-%d reason=%s", topic, index, fault)  # noqa: TRY400
        return ListOffsetsPartitionResponse(partition_index=index, error_code=int(ErrorCode.KAFKA_STORAGE_ERROR))
    return ListOffsetsPartitionResponse(partition_index=index, timestamp=timestamp, offset=offset, leader_epoch=epoch)


async def _look_up(call: Call, partition: Partition, timestamp: int, *, committed: bool) -> Found:
    log = partition.log
    readable = partition.last_stable_offset if committed else log.high_watermark
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
