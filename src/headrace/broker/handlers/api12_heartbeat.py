"""Heartbeat, key 12.

Versions: 0-4, all.
Behaviour: keeps a member of a classic group in it; REBALANCE_IN_PROGRESS asks it to join again. While the coordinator
still reads its log every heartbeat is welcome, so that members stay calm.
Deviations: none known.
KIPs: 345 static membership (v3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.shard import responded
from headrace.cores.groups.classic import heartbeat
from headrace.cores.groups.classic_commands import HeartbeatCommand
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from headrace.cores.groups.classic_commands import HeartbeatAnswer


def handle(call: Call, request: HeartbeatRequest) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    """Note that a member lives; at once where nothing has to be waited for."""
    command = HeartbeatCommand(
        group_id=request.group_id,
        member_id=request.member_id,
        generation_id=request.generation_id,
        instance_id=request.group_instance_id,
    )
    try:
        shard = call.broker.groups.shard_for(request.group_id)
        reply = shard.begin_look(lambda token, now_ms: heartbeat(shard.core, command, token, now_ms))
    except KafkaError as error:
        return _response(error)
    return responded(reply, _response)


def _response(answer: HeartbeatAnswer | KafkaError) -> HeartbeatResponse:
    code = answer.code if isinstance(answer, KafkaError) else answer.error
    return HeartbeatResponse(error_code=0 if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else int(code))


API = Api(key=12, low=0, high=4, handle=handle)
