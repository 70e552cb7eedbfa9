"""Appending as the leader: what the controller proposes, and the control records of the quorum itself."""

from __future__ import annotations

from headrace.cores.raft.inputs import Propose
from headrace.cores.raft.messages import Batch
from headrace.cores.raft.outputs import (
    AnswerProposal,
    AppendControl,
    AppendRecords,
    KRaftVersion,
    LeaderChange,
    Proposed,
    Voters,
)
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.serving import serve_parked
from headrace.cores.raft.states import Leader, Progress
from headrace.cores.raft.voters import VoterSet
from headrace.model.errors import ErrorCode


def append_control(replica: Replica, leader: Leader, records: tuple[LeaderChange | KRaftVersion | Voters, ...]) -> int:
    """Append control records; a voter set counts from here on. Gives the offset of the last one."""
    base_offset = replica.log.append(len(records), replica.epoch)
    replica.emit(AppendControl(base_offset, replica.epoch, records))
    replica.want_flush()
    last = base_offset + len(records) - 1
    if isinstance(records[-1], Voters):
        replica.log.voters.add(last, records[-1].voters)
        _take_over_voters(replica, leader, records[-1].voters)
    serve_parked(replica, leader)
    return last


def _take_over_voters(replica: Replica, leader: Leader, voters: VoterSet) -> None:
    """Keep account of the new voters as voters and of the others as observers, with what is known of them."""
    if len(leader.voters) == 1:
        # Alone, it had nobody to hear from; the others have as long as ever to be heard.
        leader.check_quorum_ms = replica.now_ms + replica.config.check_quorum_timeout_ms
    known = {**leader.observers, **{progress.key: progress for progress in leader.voters.values()}}
    leader.voters = {}
    for voter in voters.by_id.values():
        leader.voters[voter.key.id] = known.pop(voter.key) if voter.key in known else Progress(voter.key)
    leader.observers = known
    leader.fetched_voters &= leader.voters.keys()


def on_propose(replica: Replica, propose: Propose) -> None:
    """Append what the controller decided, if it still leads."""
    role = replica.role
    if not isinstance(role, Leader) or propose.epoch != replica.epoch or propose.count < 1:
        replica.emit(AnswerProposal(propose.token, Proposed(ErrorCode.NOT_LEADER_OR_FOLLOWER)))
        return
    base_offset = replica.log.append(propose.count, replica.epoch)
    replica.emit(AppendRecords((Batch(base_offset, propose.count, replica.epoch, None, propose.records),)))
    replica.want_flush()
    replica.emit(AnswerProposal(propose.token, Proposed(ErrorCode.NONE, base_offset, replica.epoch)))
    serve_parked(replica, role)
