"""AlterPartitionReassignments, key 45.

Versions: 0-1.
Behaviour: begins to move partitions to other replicas, or takes back a move that is under way (no replicas). The move
is done when the new replicas are in sync. `allow_replication_factor_change` off refuses a change of their number (v1).
Deviations: the timeout is not looked at, as nothing has to reach other brokers.
KIPs: 455, 860 keeping the replication factor (v1).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.controller import Reassignment, ReassignmentResult, alter_reassignments
from headrace.model.errors import KafkaError
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


async def handle(call: Call, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    """Begin, change or take back moves."""
    controller = call.broker.controller
    command = partial(
        alter_reassignments,
        wanted=[
            Reassignment(topic=topic.name, partition=one.partition_index, replicas=one.replicas)
            for topic in request.topics
            for one in topic.partitions
        ],
        allow_factor_change=request.allow_replication_factor_change,
        policy=controller.policy,
    )
    try:
        results = await controller.run(command)
    except KafkaError as error:
        return _refused(request, error)
    refused = ((f"partition={one.topic}-{one.partition}", one.error) for one in results)
    call.broker.refusals.tell_all("reassignment_refused", refused)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=_topics(results),
    )


def _topics(results: Iterable[ReassignmentResult]) -> tuple[ReassignableTopicResponse, ...]:
    topics: dict[str, list[ReassignablePartitionResponse]] = {}
    for one in results:
        answer = ReassignablePartitionResponse(
            partition_index=one.partition,
            error_code=int(one.error.code) if one.error else 0,
            error_message=one.error.message or None if one.error else None,
        )
        topics.setdefault(one.topic, []).append(answer)
    return tuple(ReassignableTopicResponse(name=name, partitions=tuple(of)) for name, of in topics.items())


def _refused(request: AlterPartitionReassignmentsRequest, error: KafkaError) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=int(error.code),
        error_message=error.message or None,
        responses=_topics(
            ReassignmentResult(topic=topic.name, partition=one.partition_index, error=error)
            for topic in request.topics
            for one in topic.partitions
        ),
    )


API = Api(key=45, low=0, high=1, handle=handle, controller=True, refuse=_refused)
