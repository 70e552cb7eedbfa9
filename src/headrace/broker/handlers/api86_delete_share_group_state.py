"""DeleteShareGroupState, key 86.

Versions: 0.
Behaviour: forgets the delivery state of share partitions; what has none is forgotten already. Spoken between brokers.
Deviations: none known.
KIPs: 932.
"""

from __future__ import annotations

from headrace.broker import share_coordinator
from headrace.broker.api import Api, Call
from headrace.broker.share_service import require_share_groups
from headrace.model.errors import KafkaError
from headrace.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateData,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)


async def handle(call: Call, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
    """Forget each state."""
    results = [
        DeleteStateResult(
            topic_id=topic.topic_id,
            partitions=tuple([await _delete(call, request.group_id, topic, one) for one in topic.partitions]),
        )
        for topic in request.topics
    ]
    return DeleteShareGroupStateResponse(results=tuple(results))


async def _delete(call: Call, group_id: str, topic: DeleteStateData, one: PartitionData) -> PartitionResult:
    try:
        require_share_groups(call.broker)
        await share_coordinator.delete(call.broker, (group_id, topic.topic_id, one.partition))
    except KafkaError as error:
        return PartitionResult(partition=one.partition, error_code=int(error.code), error_message=error.message)
    return PartitionResult(partition=one.partition)


API = Api(key=86, low=0, high=0, handle=handle)
