"""How news of leaders and epochs is taken in, from requests and responses alike."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from headrace.cores.raft.messages import Response
from headrace.cores.raft.outputs import Halt
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.states import Leader, Unattached
from headrace.cores.raft.voters import Endpoints
from headrace.model.errors import ErrorCode

Kind = TypeVar("Kind", bound=Response)


class Use(Enum):
    """What is to be done with a response."""

    GO_ON = "go on"
    """It is about this epoch: the rule of its kind applies."""
    DONE = "done"
    """It told something, or nothing any more."""
    FAILED = "failed"
    """Its sender should be left alone for a moment."""


_OF_ITS_KIND = {ErrorCode.NONE, ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE}
"""What is not for everybody to understand."""


def reply(replica: Replica, kind: type[Kind], error: ErrorCode = ErrorCode.NONE) -> Kind:
    """A response with what this replica knows of the leader."""
    return kind(error=error, leader_id=replica.leader_id, epoch=replica.epoch, endpoints=replica.leader_endpoints)


def take_in(replica: Replica, *, leader_id: int, epoch: int, endpoints: Endpoints) -> None:
    """Follow a leader, or at least its epoch, if it is news."""
    if leader_id == replica.key.id or epoch < replica.epoch:
        return  # Nobody else knows better whether this replica leads.
    if leader_id < 0:
        if epoch > replica.epoch:
            replica.become_unattached(epoch)
        return
    endpoints = endpoints or replica.log.voters.last.endpoints(leader_id)
    if epoch == replica.epoch and replica.leader_id not in {-1, leader_id}:
        replica.emit(Halt(f"Epoch {epoch} has two leaders, {replica.leader_id} and {leader_id}."))
    elif epoch > replica.epoch or replica.leader_id < 0 or (isinstance(replica.role, Unattached) and endpoints):
        if endpoints:
            replica.become_follower(epoch, leader_id, endpoints)
        elif epoch > replica.epoch:
            replica.become_unattached(epoch, leader_id)


def take_in_response(replica: Replica, response: Response) -> Use:
    """Take in what any response tells of the leader, and say what else is to be done with it."""
    if response.epoch < replica.epoch:
        return Use.DONE if response.error is ErrorCode.NONE else Use.FAILED
    known = (replica.epoch, replica.leader_id)
    take_in(replica, leader_id=response.leader_id, epoch=response.epoch, endpoints=response.endpoints)
    if response.error in _OF_ITS_KIND:
        # An unattached replica that hits upon the leader may use its answer at once, if it asked in the right epoch.
        return Use.GO_ON if known[0] == replica.epoch else Use.DONE
    return Use.FAILED if known == (replica.epoch, replica.leader_id) else Use.DONE


def leader_error(replica: Replica, epoch: int) -> ErrorCode:
    """Whether a request that only a leader can serve is to be served."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > replica.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(replica.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def voter_error(replica: Replica, *, epoch: int, sender: int) -> ErrorCode:
    """Whether a request that establishes a leader is to be heard."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if sender < 0 else ErrorCode.NONE
