"""BeginQuorumEpoch, key 53.

Versions: 0-1.
Behaviour: the new leader of the quorum presents itself; this node follows it from then on. Another cluster's id is
INCONSISTENT_CLUSTER_ID, another partition than that of the metadata INVALID_REQUEST, another voter than this one
INVALID_VOTER_KEY, an epoch that is over FENCED_LEADER_EPOCH.
KIPs: 595, 853 directories and endpoints (v1).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.quorum_calls import ask_quorum, is_of_cluster
from headrace.coordination.quorum.epoch_messages import begin_request_from_wire, begin_response_to_wire
from headrace.model.errors import ErrorCode
from headrace.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


async def handle(call: Call, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
    """Tell the quorum who leads."""
    if not is_of_cluster(call, request.cluster_id):
        return _refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    return await ask_quorum(call, begin_request_from_wire(request), begin_response_to_wire, _refused)


def _refused(code: ErrorCode) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(error_code=int(code))


API = Api(key=53, low=0, high=1, handle=handle, controller=True)
