"""ReadShareGroupState, key 84.

Versions: 0.
Behaviour: tells a new leader of share partitions what became of their records; leaders of an older epoch are refused
from then on (FENCED_LEADER_EPOCH). Spoken between brokers.
Deviations: none known.
KIPs: 932.
"""

from __future__ import annotations

from headrace.broker import share_coordinator
from headrace.broker.api import Api, Call
from headrace.broker.share_service import require_share_groups
from headrace.model.errors import KafkaError
from headrace.wire.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateData,
    ReadStateResult,
    StateBatch,
)


async def handle(call: Call, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
    """Read each state."""
    results = [
        ReadStateResult(
            topic_id=topic.topic_id,
            partitions=tuple([await _read(call, request.group_id, topic, one) for one in topic.partitions]),
        )
        for topic in request.topics
    ]
    return ReadShareGroupStateResponse(results=tuple(results))


async def _read(call: Call, group_id: str, topic: ReadStateData, one: PartitionData) -> PartitionResult:
    try:
        require_share_groups(call.broker)
        state = await share_coordinator.read(call.broker, (group_id, topic.topic_id, one.partition), one.leader_epoch)
    except KafkaError as error:
        return PartitionResult(partition=one.partition, error_code=int(error.code), error_message=error.message)
    return PartitionResult(
        partition=one.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=tuple(
            StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in state.batches
        ),
    )


API = Api(key=84, low=0, high=0, handle=handle)
