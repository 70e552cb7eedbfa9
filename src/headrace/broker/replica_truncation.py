"""A follower whose log is not a part of the leader's: cutting it, in a thread, and asking what the leader has."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.cores.replication.follower import Truncate
from headrace.cores.replication.messages import LeaderRange
from headrace.model.errors import StorageFault
from headrace.net.link import LinkBroken
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.cores.replication.follower import StartOver
    from headrace.cores.replication.messages import FetchPosition
    from headrace.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse

logger = logging.getLogger(__name__)

LIST_OFFSETS = 2
LATEST, EARLIEST = -1, -2


async def truncate(broker: Broker, partition: Partition, action: Truncate | StartOver) -> bool:
    """Cut a partition's log as the core says; False if the disk does not let us.

    Meanwhile nobody reads it, and its part in the cluster does not change.
    """
    log, log_dir = partition.log, broker.partitions.log_dir_of(partition)
    if action.lost_high_watermark >= 0:
        logger.error(
            "committed_records_lost partition=%s-%d high_watermark=%d truncated_to=%d",
            partition.topic,
            partition.index,
            action.lost_high_watermark,
            action.offset,
        )
    cut = log_dir.truncate if isinstance(action, Truncate) else log_dir.start_over
    done = partition.begin_settling()
    end_offset = log.log_end_offset
    try:
        # A flush under way would meet segments that are gone, and one that ends late would take back the lowered mark.
        await partition.flushed()
        await asyncio.get_running_loop().run_in_executor(broker.readers, cut, log, action.offset)
    except StorageFault as fault:
        if log.fault is not None:
            partition.on_flush_failed(fault)
        logger.error("truncation_failed partition=%s-%d reason=%s", partition.topic, partition.index, fault)  # noqa: TRY400
        return False
    finally:
        done()
    # The producers were read again from what is left.
    partition.producers.advance(log.high_watermark)
    if partition.replica is not None:
        partition.advance(partition.replica.high_watermark)
    logger.info(
        "replica_truncated partition=%s-%d end_offset=%d was=%d",
        partition.topic,
        partition.index,
        log.log_end_offset,
        end_offset,
    )
    return True


async def find_range(broker: Broker, leader_id: int, partition: Partition, asked: FetchPosition) -> LeaderRange | None:
    """Which offsets the leader has; None if it does not say now."""
    try:
        first = await _offset(broker, leader_id, partition, asked, EARLIEST)
        last = await _offset(broker, leader_id, partition, asked, LATEST)
    except LinkBroken as reason:
        logger.info("leader_range_unknown partition=%s-%d reason=%s", partition.topic, partition.index, reason)
        return None
    if first.error_code or last.error_code:
        return None
    return LeaderRange(start_offset=first.offset, end_offset=last.offset, end_epoch=last.leader_epoch)


async def _offset(
    broker: Broker, leader_id: int, partition: Partition, asked: FetchPosition, timestamp: int
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(
        partition_index=partition.index, current_leader_epoch=asked.leader_epoch, timestamp=timestamp
    )
    request = ListOffsetsRequest(
        replica_id=broker.node_id, topics=(ListOffsetsTopic(name=partition.topic, partitions=(wanted,)),)
    )
    response: ListOffsetsResponse = await broker.peers.ask(leader_id, LIST_OFFSETS, request)
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        raise LinkBroken(f"broker {leader_id} answered something else than was asked")
    return response.topics[0].partitions[0]
