"""WriteShareGroupState, key 85.

Versions: 0-1.
Behaviour: takes down what the leader of share partitions decided; refused from an older leader or for a state that was
since set anew (FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH). Spoken between brokers.
Deviations: none known.
KIPs: 932, 1226 records delivered for good (v1).
"""

from __future__ import annotations

from headrace.broker import share_coordinator
from headrace.broker.api import Api, Call
from headrace.broker.share_service import require_share_groups
from headrace.cores.share_state import Write
from headrace.model.errors import KafkaError
from headrace.model.share_state_records import StateBatch
from headrace.wire.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateData,
    WriteStateResult,
)


async def handle(call: Call, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
    """Write each state."""
    results = [
        WriteStateResult(
            topic_id=topic.topic_id,
            partitions=tuple([await _write(call, request.group_id, topic, one) for one in topic.partitions]),
        )
        for topic in request.topics
    ]
    return WriteShareGroupStateResponse(results=tuple(results))


async def _write(call: Call, group_id: str, topic: WriteStateData, one: PartitionData) -> PartitionResult:
    command = Write(
        partition=(group_id, topic.topic_id, one.partition),
        state_epoch=one.state_epoch,
        leader_epoch=one.leader_epoch,
        start_offset=one.start_offset,
        delivery_complete_count=one.delivery_complete_count,
        batches=tuple(
            StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in one.state_batches
        ),
    )
    try:
        require_share_groups(call.broker)
        await share_coordinator.write(call.broker, command)
    except KafkaError as error:
        return PartitionResult(partition=one.partition, error_code=int(error.code), error_message=error.message)
    return PartitionResult(partition=one.partition)


API = Api(key=85, low=0, high=1, handle=handle)
