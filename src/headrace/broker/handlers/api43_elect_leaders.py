"""ElectLeaders, key 43.

Versions: 0-2.
Behaviour: elects the preferred replica of each partition, or an unclean leader of those that have none (v1); without
partitions all are meant, and those that need no election are not in the answer.
Deviations: the timeout is not looked at, as nothing has to reach other brokers.
KIPs: 183, 460 unclean elections (v1).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.controller import ElectionResult, ElectionType, elect_leaders
from headrace.model.errors import KafkaError
from headrace.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOP_LEVEL_FIRST = 1


async def handle(call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Hold the elections that are asked for."""
    controller = call.broker.controller
    command = partial(
        elect_leaders,
        election_type=request.election_type if call.version >= _TOP_LEVEL_FIRST else ElectionType.PREFERRED,
        partitions=_asked(request),
        policy=controller.policy,
    )
    try:
        results = await controller.run(command)
    except KafkaError as error:
        return _refused(request, error)
    return ElectLeadersResponse(replica_election_results=_results(results))


def _asked(request: ElectLeadersRequest) -> list[tuple[str, int]] | None:
    if request.topic_partitions is None:
        return None
    return [(topic.topic, partition) for topic in request.topic_partitions for partition in topic.partitions]


def _results(elections: Iterable[ElectionResult]) -> tuple[ReplicaElectionResult, ...]:
    topics: dict[str, list[PartitionResult]] = {}
    for one in elections:
        result = PartitionResult(
            partition_id=one.partition,
            error_code=int(one.error.code) if one.error else 0,
            error_message=one.error.message or None if one.error else None,
        )
        topics.setdefault(one.topic, []).append(result)
    return tuple(ReplicaElectionResult(topic=topic, partition_result=tuple(of)) for topic, of in topics.items())


def _refused(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    """An error of the whole request is told at each partition too: the first version has no other place for it."""
    asked = _asked(request) or ()
    return ElectLeadersResponse(
        error_code=int(error.code),
        replica_election_results=_results(
            ElectionResult(topic=topic, partition=partition, error=error) for topic, partition in asked
        ),
    )


API = Api(key=43, low=0, high=2, handle=handle, controller=True, refuse=_refused)
