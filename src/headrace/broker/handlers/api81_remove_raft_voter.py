"""RemoveRaftVoter, key 81.

Versions: 0.
Behaviour: a voter of the quorum becomes an observer; one change at a time, answered when it is committed. The leader
may remove itself and resigns then. Only the leader does it (NOT_LEADER_OR_FOLLOWER), only where the log names the
voters (UNSUPPORTED_VERSION), and one that does not vote is VOTER_NOT_FOUND.
KIPs: 853.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.quorum_calls import change_voters, is_whole
from headrace.coordination.quorum.voter_messages import remove_request_from_wire
from headrace.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def handle(call: Call, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Have a voter removed."""
    question = remove_request_from_wire(request)
    fault = "" if is_whole(question.voter) else "Remove voter request didn't include a valid voter"
    code, message = await change_voters(call, question, fault)
    return RemoveRaftVoterResponse(error_code=int(code), error_message=message or None)


API = Api(key=81, low=0, high=0, handle=handle, controller=True)
