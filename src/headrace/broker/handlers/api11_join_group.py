"""JoinGroup, key 11.

Versions: 0-9, all.
Behaviour: answered when the group's next generation begins: when all members have joined, or the time to join is up; a
new group waits `group.initial.rebalance.delay.ms` for more members. The leader, one of the members, hears who is in.
From v4 on a new member is sent away once to come back with the id it was given; a static member (v5) that comes back
gets its place again without a rebalance.
Deviations: a second join of a member that already waits in one ends the first with REBALANCE_IN_PROGRESS; Kafka lets it
hang. The reasons clients give (v8) are not used.
KIPs: 62 (v1), 345 static membership (v5), 394 (v4), 559 protocol type (v7), 800 reasons (v8), 814 (v9).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.cores.groups.classic import join
from headrace.cores.groups.classic_commands import JoinCommand, Joined
from headrace.model.errors import KafkaError
from headrace.model.group_records import ClassicProtocol
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

REBALANCE_TIMEOUT_FIRST = 1
MEMBER_ID_REQUIRED_FIRST = 4
NULLABLE_PROTOCOL_FIRST = 7
SKIP_ASSIGNMENT_FIRST = 9


async def handle(call: Call, request: JoinGroupRequest) -> JoinGroupResponse:
    """Wait for the next generation."""
    command = _command(call, request)
    try:
        shard = call.broker.groups.shard_for(request.group_id)
        answer: Joined = await shard.ask(lambda token, now_ms: join(shard.core, command, token, now_ms))
    except KafkaError as error:
        answer = Joined(member_id=request.member_id, error=error.code)
    return _response(answer, call.version)


def _command(call: Call, request: JoinGroupRequest) -> JoinCommand:
    client_id = call.header.client_id or ""
    name = client_id if request.group_instance_id is None else request.group_instance_id
    has_rebalance_timeout = call.version >= REBALANCE_TIMEOUT_FIRST
    return JoinCommand(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=f"/{call.connection.peer[0]}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(ClassicProtocol(name=each.name, metadata=bytes(each.metadata)) for each in request.protocols),
        new_member_id=f"{name}-{call.broker.new_uuid()}",
        needs_known_member_id=call.version >= MEMBER_ID_REQUIRED_FIRST,
        can_skip_assignment=call.version >= SKIP_ASSIGNMENT_FIRST,
    )


def _response(answer: Joined, version: int) -> JoinGroupResponse:
    protocol_name = answer.protocol_name or ""
    return JoinGroupResponse(
        error_code=int(answer.error),
        generation_id=answer.generation_id,
        protocol_type=answer.protocol_type,
        protocol_name=protocol_name or None if version >= NULLABLE_PROTOCOL_FIRST else protocol_name,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=tuple(
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            for member in answer.members
        ),
    )


API = Api(key=11, low=0, high=9, handle=handle)
