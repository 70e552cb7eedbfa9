"""ListPartitionReassignments, key 46.

Versions: 0.
Behaviour: the partitions whose replicas are moving, of all topics or of those named, with who comes and who goes.
KIPs: 455.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.cores.controller import Outcome, list_reassignments
from headrace.model.errors import KafkaError
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(call: Call, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """Tell what is moving."""
    wanted = None
    if request.topics is not None:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    try:
        # As a decision that changes nothing: told is what is decided, and only by the one who decides.
        ongoing = await call.broker.controller.run(lambda metadata: Outcome([], list_reassignments(metadata, wanted)))
    except KafkaError as error:
        return _refused(request, error)
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for one in ongoing:
        moving = OngoingPartitionReassignment(
            partition_index=one.state.index,
            replicas=one.state.replicas,
            adding_replicas=one.state.adding_replicas,
            removing_replicas=one.state.removing_replicas,
        )
        topics.setdefault(one.topic, []).append(moving)
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=tuple(OngoingTopicReassignment(name=name, partitions=tuple(of)) for name, of in topics.items()),
    )


def _refused(_: ListPartitionReassignmentsRequest, error: KafkaError) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=int(error.code), error_message=error.message or None)


API = Api(key=46, low=0, high=0, handle=handle, controller=True, refuse=_refused)
