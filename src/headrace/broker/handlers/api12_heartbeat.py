"""Heartbeat, key 12.

Versions: 0-4, all.
Behaviour: keeps a member of a classic group in it; REBALANCE_IN_PROGRESS asks it to join again. While the coordinator
still reads its log every heartbeat is welcome, so that members stay calm.
Deviations: none known.
KIPs: 345 static membership (v3).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.cores.groups.classic import heartbeat
from headrace.cores.groups.classic_commands import HeartbeatCommand
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    """Note that a member lives."""
    command = HeartbeatCommand(
        group_id=request.group_id,
        member_id=request.member_id,
        generation_id=request.generation_id,
        instance_id=request.group_instance_id,
    )
    try:
        shard = call.broker.groups.shard_for(request.group_id)
        answer = await shard.look(lambda token, now_ms: heartbeat(shard.core, command, token, now_ms))
    except KafkaError as error:
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=0 if loading else int(error.code))
    return HeartbeatResponse(error_code=int(answer.error))


API = Api(key=12, low=0, high=4, handle=handle)
