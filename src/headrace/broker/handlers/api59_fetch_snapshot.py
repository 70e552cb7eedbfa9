"""FetchSnapshot, key 59.

Versions: 0-1.
Behaviour: a piece of a snapshot of the metadata, from a position on, for a replica whose log ends before the leader's
begins. Only the leader answers. A snapshot that is not there is SNAPSHOT_NOT_FOUND, a position behind its end
POSITION_OUT_OF_RANGE, another partition UNKNOWN_TOPIC_OR_PARTITION.
Deviations: a piece has at most 16 MiB, whatever is asked for.
KIPs: 630, 853 directories and endpoints (v1).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.quorum_calls import ask_quorum, is_of_cluster
from headrace.coordination.quorum.fetch_messages import snapshot_request_from_wire, snapshot_response_to_wire
from headrace.model.errors import ErrorCode
from headrace.wire.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ResponsePartitionSnapshot,
    ResponseTopicSnapshot,
)


async def handle(call: Call, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """Hand out a piece of a snapshot."""
    if not is_of_cluster(call, request.cluster_id):
        return _refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return _refused(ErrorCode.INVALID_REQUEST)
    question = snapshot_request_from_wire(request)
    if question is None:
        return _unknown(request)
    return await ask_quorum(call, question, snapshot_response_to_wire, _refused)


def _unknown(request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    (topic,) = request.topics
    partition = ResponsePartitionSnapshot(
        index=topic.partitions[0].partition, error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    )
    return FetchSnapshotResponse(topics=(ResponseTopicSnapshot(name=topic.name, partitions=(partition,)),))


def _refused(code: ErrorCode) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(error_code=int(code))


API = Api(key=59, low=0, high=1, handle=handle, controller=True)
