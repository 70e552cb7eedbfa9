"""UpdateRaftVoter, key 82.

Versions: 0.
Behaviour: a voter of the quorum tells the leader where it listens now and which versions it speaks; answered when that
is in the leader's log. Every answer names the leader as far as it is known.
KIPs: 853.
"""

from __future__ import annotations

from msgspec.structs import replace

from headrace.broker.api import Api, Call
from headrace.broker.quorum_calls import ask_quorum, quorum_of
from headrace.coordination.quorum.voter_messages import update_request_from_wire, update_response_to_wire
from headrace.cores.raft.messages import UpdateVoterRequest
from headrace.model.errors import ErrorCode
from headrace.wire.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)


async def handle(call: Call, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
    """Have a voter's endpoints put right."""
    quorum = quorum_of(call)

    def refused(code: ErrorCode) -> UpdateRaftVoterResponse:
        leader = CurrentLeader(leader_id=quorum.leader_id, leader_epoch=quorum.leader_epoch)
        found = quorum.leader_endpoint()
        if found is not None:
            leader = replace(leader, host=found.host, port=found.port)
        return UpdateRaftVoterResponse(error_code=int(code), current_leader=leader)

    question = update_request_from_wire(request)
    is_mine = question.cluster_id in {None, quorum.settings.core.cluster_id}
    if (
        is_mine
        and quorum.is_leader
        and question.epoch == quorum.leader_epoch
        and not _is_sound(question, quorum.settings.listener)
    ):
        return refused(ErrorCode.INVALID_REQUEST)
    return await ask_quorum(call, question, update_response_to_wire, refused)


def _is_sound(question: UpdateVoterRequest, listener: str) -> bool:
    low, high = question.kraft_versions
    return (
        question.voter.id >= 0
        and question.voter.directory_id is not None
        and any(one.name == listener for one in question.endpoints)
        and 0 <= low <= high
    )


API = Api(key=82, low=0, high=0, handle=handle, controller=True)
