"""AddRaftVoter, key 80.

Versions: 0-1.
Behaviour: an observer of the quorum becomes a voter, once it has all of the log; one change at a time. Answered when
that is committed, or with `ack_when_committed` off when it is in the leader's log. Only the leader does it
(NOT_LEADER_OR_FOLLOWER), only where the log names the voters (UNSUPPORTED_VERSION), and a node that votes already is
DUPLICATE_VOTER.
KIPs: 853, 1186 acknowledging early (v1).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.quorum_calls import change_voters, is_whole, quorum_of
from headrace.coordination.quorum.voter_messages import add_request_from_wire
from headrace.cores.raft.messages import AddVoterRequest
from headrace.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


async def handle(call: Call, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Have a voter added."""
    question = add_request_from_wire(request)
    fault = _fault(question, quorum_of(call).settings.listener)
    code, message = await change_voters(call, question, fault)
    return AddRaftVoterResponse(error_code=int(code), error_message=message or None)


def _fault(question: AddVoterRequest, listener: str) -> str:
    if not is_whole(question.voter):
        return "Add voter request didn't include a valid voter"
    if not any(one.name == listener for one in question.endpoints):
        return f"Add voter request didn't include the endpoint for the default listener {listener}"
    return ""


API = Api(key=80, low=0, high=1, handle=handle, controller=True)
