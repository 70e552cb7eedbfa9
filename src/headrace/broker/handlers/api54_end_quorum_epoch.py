"""EndQuorumEpoch, key 54.

Versions: 0-1.
Behaviour: the leader of the quorum resigns and says who should stand for election first; this node does so in its
turn. Another cluster's id is INCONSISTENT_CLUSTER_ID, another partition than that of the metadata INVALID_REQUEST, an
epoch that is over FENCED_LEADER_EPOCH.
KIPs: 595, 853 directories and endpoints (v1).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.quorum_calls import ask_quorum, is_of_cluster
from headrace.coordination.quorum.epoch_messages import end_request_from_wire, end_response_to_wire
from headrace.model.errors import ErrorCode
from headrace.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


async def handle(call: Call, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
    """Tell the quorum that its leader resigned."""
    if not is_of_cluster(call, request.cluster_id):
        return _refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    return await ask_quorum(call, end_request_from_wire(request), end_response_to_wire, _refused)


def _refused(code: ErrorCode) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(error_code=int(code))


API = Api(key=54, low=0, high=1, handle=handle, controller=True)
