"""Putting a request of another node to the quorum, for the handlers of its APIs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.cores.raft.messages import AddVoterResponse, RemoveVoterResponse
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.broker.api import Call
    from headrace.coordination.quorum.quorum import Quorum
    from headrace.cores.raft.messages import AddVoterRequest, RemoveVoterRequest, Request, Response
    from headrace.cores.raft.voters import ReplicaKey

Answer = TypeVar("Answer")


def quorum_of(call: Call) -> Quorum:
    """The quorum the node that was asked takes part in."""
    broker: Any = call.broker
    quorum: Quorum = broker.quorum
    return quorum


def is_of_cluster(call: Call, cluster_id: str | None) -> bool:
    """Whether a request is meant for this cluster; one that names none is."""
    own = quorum_of(call).settings.core.cluster_id
    if cluster_id in {None, own}:
        return True
    reason = f"A node of cluster {cluster_id} takes this one, of {own}, for a controller of its own."
    error = KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, reason)
    call.broker.refusals.tell("node_refused", f"peer={call.connection.peer[0]}", error, level=logging.WARNING)
    return False


async def change_voters(
    call: Call, question: AddVoterRequest | RemoveVoterRequest, fault: str
) -> tuple[ErrorCode, str]:
    """Put a change of the voters to the quorum, if it is whole; the code and the sentence to answer with.

    `fault` is what a leader has against the request; others have only to say that they are none.
    """
    quorum = quorum_of(call)
    if not is_of_cluster(call, question.cluster_id):
        cluster_id = quorum.settings.core.cluster_id
        message = f'The given id "{question.cluster_id}" doesn\'t match the cluster id "{cluster_id}"'
        return ErrorCode.INCONSISTENT_CLUSTER_ID, message
    if quorum.is_leader and fault:
        return ErrorCode.INVALID_REQUEST, fault
    try:
        response = await quorum.handle(question)
    except KafkaError as error:
        return error.code, error.message
    assert isinstance(response, AddVoterResponse | RemoveVoterResponse)
    return response.error, response.message


def is_whole(voter: ReplicaKey) -> bool:
    """Whether a request names a node that can be a voter, with its directory."""
    return voter.id >= 0 and voter.directory_id is not None


async def ask_quorum(
    call: Call, request: Request | None, answer: Callable[..., Answer], refuse: Callable[[ErrorCode], Answer]
) -> Answer:
    """What the core answers, in the wire's form; `refuse` is for a request it cannot be asked, and if it is broken."""
    if request is None:
        return refuse(ErrorCode.INVALID_REQUEST)
    quorum = quorum_of(call)
    try:
        response: Response = await quorum.handle(request)
    except KafkaError as error:
        return refuse(error.code)
    return answer(response, quorum.settings.listener)
