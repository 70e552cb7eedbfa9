"""FindCoordinator, key 10.

Versions: 0-6, all.
Behaviour: the coordinator of a group, a transactional id or a share partition is the leader of the partition its key
falls into; the coordinator's topic is made when it is first asked for.
Deviations: none known.
KIPs: 98 transactions (v1), 699 several keys at once (v4), 932 share partitions (v6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.broker.api import Api, Call
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import decode_uuid
from headrace.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from headrace.broker.coordinators import coordinator

GROUP, TRANSACTION, SHARE = 0, 1, 2
SEVERAL_KEYS_FIRST = 4
SHARE_FIRST = 6


async def handle(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Name the coordinator of each key."""
    if call.version >= SEVERAL_KEYS_FIRST:
        found = [await _find(call, key, request.key_type) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=tuple(found))
    one = await _find(call, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


async def _find(call: Call, key: str, key_type: int) -> Coordinator:
    try:
        kind = _kind(call, key, key_type)
        await kind.ensure_topic()
        node_id, host, port = _endpoint(call, kind.leader_for(key))
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=int(error.code), error_message=error.message
        )
    return Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=0, error_message="")


def _kind(call: Call, key: str, key_type: int) -> coordinator.Coordinator[Any]:
    broker = call.broker
    if key_type == GROUP:
        return broker.groups
    if key_type == TRANSACTION:
        return broker.transactions
    if key_type == SHARE and call.version >= SHARE_FIRST:
        _check_share_key(key)
        return broker.share_state
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"The coordinator type {key_type} is not supported.")


def _check_share_key(key: str) -> None:
    """A share partition is named group:topic id:partition, and the group may hold colons itself."""
    parts = key.rsplit(":", 2)
    if len(parts) == 3 and parts[0] and parts[2].isascii() and parts[2].isdigit():
        try:
            decode_uuid(parts[1])
        except ValueError:
            pass
        else:
            return
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key!r} is not of the form group:topicId:partition.")


def _endpoint(call: Call, leader: int) -> tuple[int, str, int]:
    """Where a client of this listener reaches the leader, if it can."""
    for node_id, host, port, _ in call.broker.endpoints_for(call.connection.listener_name):
        if node_id == leader:
            return node_id, host, port
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")


API = Api(key=10, low=0, high=6, handle=handle)
