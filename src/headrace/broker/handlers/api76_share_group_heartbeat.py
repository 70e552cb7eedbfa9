"""ShareGroupHeartbeat, key 76.

Versions: 1.
Behaviour: a member joins a share group (epoch 0), stays in it, or leaves (-1), and hears which partitions to read.
Partitions that a group reads for the first time get their delivery state from the share coordinator first; the member
that brought them is answered after that.
Deviations: Kafka answers before the states are begun, so that a first member hears of its partitions one heartbeat
later.
KIPs: 932.
"""

from __future__ import annotations

from msgspec.structs import replace

from headrace.broker.api import Api, Call
from headrace.broker.share_groups import ask_group, begin_states
from headrace.broker.share_service import require_share_groups
from headrace.cores.groups.share import heartbeat
from headrace.cores.groups.share_commands import ShareHeartbeat, ShareHeartbeatAnswer
from headrace.cores.groups.share_records import by_topic
from headrace.model.errors import KafkaError
from headrace.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)


async def handle(call: Call, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    """Let a member join, stay or leave."""
    try:
        require_share_groups(call.broker)
        answer = await _ask(call, request)
        if answer.begin is not None and not await begin_states(call.broker, request.group_id, answer.begin):
            again = replace(request, member_epoch=answer.member_epoch, subscribed_topic_names=None)
            later = await _ask(call, again)
            answer = later if later.assignment is not None else answer
    except KafkaError as error:
        return ShareGroupHeartbeatResponse(error_code=int(error.code), error_message=error.message)
    return ShareGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None
        if answer.assignment is None
        else Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(answer.assignment)
            )
        ),
    )


async def _ask(call: Call, request: ShareGroupHeartbeatRequest) -> ShareHeartbeatAnswer:
    command = ShareHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        client_id=call.header.client_id or "",
        client_host=f"/{call.connection.peer[0]}",
        topics=request.subscribed_topic_names,
    )
    answer: ShareHeartbeatAnswer = await ask_group(
        call.broker, request.group_id, lambda groups, token, now_ms: heartbeat(groups, command, token, now_ms)
    )
    return answer


API = Api(key=76, low=1, high=1, handle=handle)
