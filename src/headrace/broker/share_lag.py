"""How many records lie ahead of a share group on a partition (KIP-1226), wherever the partition is led."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.share_state import NO_OFFSET
from headrace.net.link import LinkBroken
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.cores.metadata import PartitionState, Topic
    from headrace.cores.share_state import ShareState
    from headrace.wire.messages.list_offsets import ListOffsetsResponse

NO_LAG = -1
LIST_OFFSETS = 2
LATEST = -1
CONSUMER = -1
"""A replica id that is none."""


async def share_lag(broker: Broker, topic: Topic, index: int, state: ShareState) -> int:
    """Records up to the end of the partition, less those that are done out of order; -1 where that is not known."""
    if state.start_offset == NO_OFFSET or state.delivery_complete_count < 0:
        return NO_LAG
    end_offset = await _end_offset(broker, topic, index)
    if end_offset is None:
        return NO_LAG
    return max(end_offset - state.start_offset - state.delivery_complete_count, 0)


async def _end_offset(broker: Broker, topic: Topic, index: int) -> int | None:
    partition = broker.partitions.find((topic.topic_id, index))
    if partition is not None and partition.is_led:
        return partition.log.high_watermark
    state = broker.metadata.partition(topic.topic_id, index)
    if state is None or state.leader in {broker.node_id, -1}:
        return None
    return await _asked(broker, topic, state)


async def _asked(broker: Broker, topic: Topic, state: PartitionState) -> int | None:
    one = ListOffsetsPartition(partition_index=state.index, current_leader_epoch=state.leader_epoch, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=CONSUMER, topics=(ListOffsetsTopic(name=topic.name, partitions=(one,)),), timeout_ms=1000
    )
    try:
        response: ListOffsetsResponse = await broker.peers.ask(state.leader, LIST_OFFSETS, request)
    except LinkBroken:
        return None
    found = [result for told in response.topics for result in told.partitions]
    return found[0].offset if len(found) == 1 and not found[0].error_code else None
