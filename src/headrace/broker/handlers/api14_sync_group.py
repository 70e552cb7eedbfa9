"""SyncGroup, key 14.

Versions: 0-5, all.
Behaviour: the leader of a classic group brings an assignment for every member; when it is written to the log, each gets
its own. One who asks before that waits. An assignment that is too large to be written ends in UNKNOWN_SERVER_ERROR and
another rebalance.
Deviations: a second sync of a member that already waits in one ends the first with REBALANCE_IN_PROGRESS; Kafka lets it
hang.
KIPs: 345 static membership (v3), 559 protocol type and name (v5).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.cores.groups.classic import sync
from headrace.cores.groups.classic_commands import SyncCommand, Synced
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_FIRST = 5


async def handle(call: Call, request: SyncGroupRequest) -> SyncGroupResponse:
    """Wait for the leader's word."""
    if call.version >= PROTOCOL_FIRST and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    command = SyncCommand(
        group_id=request.group_id,
        member_id=request.member_id,
        generation_id=request.generation_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=tuple((each.member_id, bytes(each.assignment)) for each in request.assignments),
    )
    try:
        shard = call.broker.groups.shard_for(request.group_id)
        answer: Synced = await shard.ask(lambda token, now_ms: sync(shard.core, command, token, now_ms))
    except KafkaError as error:
        return SyncGroupResponse(error_code=int(error.code))
    return SyncGroupResponse(
        protocol_type=answer.protocol_type, protocol_name=answer.protocol_name, assignment=answer.assignment
    )


API = Api(key=14, low=0, high=5, handle=handle)
