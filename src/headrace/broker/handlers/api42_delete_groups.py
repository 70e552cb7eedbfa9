"""DeleteGroups, key 42.

Versions: 0-2, all.
Behaviour: a group without members is forgotten, and its offsets with it, or its delivery states if it is a share group;
NON_EMPTY_GROUP for one with members, GROUP_ID_NOT_FOUND for one that is not there.
Deviations: none known.
KIPs: 229, 932 share groups.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.share_groups import forget_group_states
from headrace.cores.groups.offsets import delete_group
from headrace.model.errors import KafkaError
from headrace.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def handle(call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete each group that can be."""
    return DeleteGroupsResponse(results=tuple([await _delete(call, group_id) for group_id in request.groups_names]))


async def _delete(call: Call, group_id: str) -> DeletableGroupResult:
    try:
        shard = call.broker.groups.shard_for(group_id)
        await forget_group_states(call.broker, group_id)
        await shard.ask(lambda token, now_ms: delete_group(shard.core, group_id, token, now_ms))
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=int(error.code))
    return DeletableGroupResult(group_id=group_id)


API = Api(key=42, low=0, high=2, handle=handle)
