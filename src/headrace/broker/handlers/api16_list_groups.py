"""ListGroups, key 16.

Versions: 0-5, all.
Behaviour: all groups of every kind that this broker coordinates; from v4 on only those in some states, from v5 on only
those of some kinds, in any case of letters. While a coordinator still reads its log the list would be incomplete, so
COORDINATOR_LOAD_IN_PROGRESS.
Deviations: none known.
KIPs: 518 states (v4), 848 kinds (v5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.groups.group import Group
    from headrace.cores.outcome import Token


async def handle(call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    """List what is there for good, shard by shard."""
    states = {state.strip().lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    coordinator = call.broker.groups
    listed: list[ListedGroup] = []
    try:
        if coordinator.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is loading its state; try again.")
        for shard in tuple(coordinator.shards):
            groups = tuple(shard.core.groups.values())
            if groups:
                chosen = tuple(_listed(group) for group in groups if _matches(group, states, kinds))
                listed += await shard.look(_once_safe(chosen))
    except KafkaError as error:
        return ListGroupsResponse(error_code=int(error.code))
    return ListGroupsResponse(groups=tuple(listed))


def _once_safe(answer: tuple[ListedGroup, ...]) -> Callable[[Token, int], Outcome]:
    """A step that changes nothing: it gives the answer when all that led to it is safe."""
    return lambda token, _: Outcome().reply(token, answer)


def _matches(group: Group, states: set[str], kinds: set[str]) -> bool:
    return (not states or group.state_name.lower() in states) and (not kinds or group.kind.value in kinds)


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.state_name,
        group_type=group.kind.value,
    )


API = Api(key=16, low=0, high=5, handle=handle)
