"""ReadShareGroupStateSummary, key 87.

Versions: 0-1.
Behaviour: tells where share partitions stand, -1 where they never began. Spoken between brokers.
Deviations: none known.
KIPs: 932, 1226 records delivered for good (v1).
"""

from __future__ import annotations

from headrace.broker import share_coordinator
from headrace.broker.api import Api, Call
from headrace.broker.share_service import require_share_groups
from headrace.cores.share_state import NO_OFFSET
from headrace.model.errors import KafkaError
from headrace.wire.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryData,
    ReadStateSummaryResult,
)


async def handle(call: Call, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
    """Read each summary."""
    results = [
        ReadStateSummaryResult(
            topic_id=topic.topic_id,
            partitions=tuple([await _read(call, request.group_id, topic, one) for one in topic.partitions]),
        )
        for topic in request.topics
    ]
    return ReadShareGroupStateSummaryResponse(results=tuple(results))


async def _read(call: Call, group_id: str, topic: ReadStateSummaryData, one: PartitionData) -> PartitionResult:
    try:
        require_share_groups(call.broker)
        state = await share_coordinator.read_summary(call.broker, (group_id, topic.topic_id, one.partition))
    except KafkaError as error:
        return PartitionResult(partition=one.partition, error_code=int(error.code), error_message=error.message)
    if state is None:
        return PartitionResult(partition=one.partition, start_offset=NO_OFFSET)
    return PartitionResult(
        partition=one.partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )


API = Api(key=87, low=0, high=1, handle=handle)
