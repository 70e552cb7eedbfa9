"""LeaveGroup, key 13.

Versions: 0-5, all.
Behaviour: members leave at once and the others share what they had. From v3 on several can go in one request, and an
administrator can remove static members by their instance id alone.
Deviations: the reasons clients give (v5) are not used.
KIPs: 345 batches and static members (v3), 800 reasons (v5).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.cores.groups.classic import leave
from headrace.cores.groups.classic_commands import LeaveCommand, LeavingMember, Left
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

BATCHES_FIRST = 3


async def handle(call: Call, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Strike members off."""
    batched = call.version >= BATCHES_FIRST
    members = request.members if batched else (MemberIdentity(member_id=request.member_id),)
    command = LeaveCommand(
        group_id=request.group_id,
        members=tuple(
            LeavingMember(member_id=member.member_id, instance_id=member.group_instance_id) for member in members
        ),
    )
    try:
        shard = call.broker.groups.shard_for(request.group_id)
        answer: Left = await shard.ask(lambda token, now_ms: leave(shard.core, command, token, now_ms))
        errors = answer.errors
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            return LeaveGroupResponse(error_code=int(error.code))
        # There is no such group, so it has none of them.
        errors = (ErrorCode.UNKNOWN_MEMBER_ID,) * len(members)
    if not batched:
        return LeaveGroupResponse(error_code=int(errors[0]))
    return LeaveGroupResponse(
        members=tuple(
            MemberResponse(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=int(error_code)
            )
            for member, error_code in zip(members, errors, strict=True)
        )
    )


API = Api(key=13, low=0, high=5, handle=handle)
