"""Vote, key 52.

Versions: 0-2.
Behaviour: a candidate of the quorum asks for this node's vote in an epoch, or with `pre_vote` whether it would get it.
What is granted is on disk before it is said. Another cluster's id is INCONSISTENT_CLUSTER_ID, another partition than
that of the metadata INVALID_REQUEST, another voter than this one INVALID_VOTER_KEY.
KIPs: 595, 853 directories (v1), 996 pre-vote (v2).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.quorum_calls import ask_quorum, is_of_cluster
from headrace.coordination.quorum.vote_messages import request_from_wire, response_to_wire
from headrace.model.errors import ErrorCode
from headrace.wire.messages.vote import VoteRequest, VoteResponse


async def handle(call: Call, request: VoteRequest) -> VoteResponse:
    """Put the candidate's question to the quorum."""
    if not is_of_cluster(call, request.cluster_id):
        return _refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    return await ask_quorum(call, request_from_wire(request), response_to_wire, _refused)


def _refused(code: ErrorCode) -> VoteResponse:
    return VoteResponse(error_code=int(code))


API = Api(key=52, low=0, high=2, handle=handle, controller=True)
