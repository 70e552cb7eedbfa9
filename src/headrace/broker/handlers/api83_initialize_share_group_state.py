"""InitializeShareGroupState, key 83.

Versions: 0.
Behaviour: begins the delivery state of share partitions, or sets it anew under a state epoch that is not older
(FENCED_STATE_EPOCH). Spoken between brokers.
Deviations: none known.
KIPs: 932.
"""

from __future__ import annotations

from headrace.broker import share_coordinator
from headrace.broker.api import Api, Call
from headrace.broker.share_service import require_share_groups
from headrace.cores.share_state import Initialize
from headrace.model.errors import KafkaError
from headrace.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateData,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)


async def handle(call: Call, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse:
    """Begin each state."""
    results = [
        InitializeStateResult(
            topic_id=topic.topic_id,
            partitions=tuple([await _initialize(call, request.group_id, topic, one) for one in topic.partitions]),
        )
        for topic in request.topics
    ]
    return InitializeShareGroupStateResponse(results=tuple(results))


async def _initialize(call: Call, group_id: str, topic: InitializeStateData, one: PartitionData) -> PartitionResult:
    command = Initialize(
        partition=(group_id, topic.topic_id, one.partition),
        state_epoch=one.state_epoch,
        start_offset=one.start_offset,
    )
    try:
        require_share_groups(call.broker)
        await share_coordinator.initialize(call.broker, command)
    except KafkaError as error:
        return PartitionResult(partition=one.partition, error_code=int(error.code), error_message=error.message)
    return PartitionResult(partition=one.partition)


API = Api(key=83, low=0, high=0, handle=handle)
