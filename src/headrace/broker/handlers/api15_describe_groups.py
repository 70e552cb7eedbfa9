"""DescribeGroups, key 15.

Versions: 0-6, all.
Behaviour: classic groups with their members. A group that is not there, or is of another kind, is GROUP_ID_NOT_FOUND;
before v6 it is one in state Dead, without an error.
Deviations: none known.
KIPs: 345 instance ids (v4), 430 authorized operations (v3), 1043 (v6).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.authorized_operations import NOT_ASKED, Operation, bit_set
from headrace.cores.groups.classic import describe
from headrace.cores.groups.classic_commands import DescribedClassicGroup
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_ERROR_FIRST = 6
GROUP_OPERATIONS = bit_set(
    Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
)


async def handle(call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe each group."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return DescribeGroupsResponse(
        groups=tuple([await _describe(call, group_id, operations) for group_id in request.groups])
    )


async def _describe(call: Call, group_id: str, operations: int) -> DescribedGroup:
    try:
        shard = call.broker.groups.shard_for(group_id)
        group: DescribedClassicGroup = await shard.look(
            lambda token, now_ms: describe(shard.core, group_id, token, now_ms)
        )
    except KafkaError as error:
        return _undescribed(call, group_id, operations, error)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ),
        authorized_operations=operations,
    )


def _undescribed(call: Call, group_id: str, operations: int, error: KafkaError) -> DescribedGroup:
    if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        return DescribedGroup(group_id=group_id, error_code=int(error.code), error_message=error.message)
    if call.version >= NOT_FOUND_ERROR_FIRST:
        return DescribedGroup(
            group_id=group_id, group_state="Dead", error_code=int(error.code), error_message=error.message
        )
    return DescribedGroup(group_id=group_id, group_state="Dead", authorized_operations=operations)


API = Api(key=15, low=0, high=6, handle=handle)
