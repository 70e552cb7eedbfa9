"""The door of the core: one input at a time, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.cores.raft import appending, election, following, leadership, snapshots, voter_changes
from headrace.cores.raft import inputs as given
from headrace.cores.raft import messages as said
from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.log_mirror import LogMirror
from headrace.cores.raft.news import Use, reply, take_in_response
from headrace.cores.raft.outputs import Output, Persist, ShutdownComplete, Wake
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.replica import Chance, Replica
from headrace.cores.raft.states import (
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from headrace.cores.raft.voters import ReplicaKey
from headrace.model.errors import ErrorCode

_ROLES_IN_A_STEP_MAX = 10
"""A step ends in a role that stays; from unattached to leader it is three changes."""

_REQUESTS: dict[type[said.Request], tuple[Callable[..., None], type[said.Response]]] = {
    said.VoteRequest: (election.on_vote, said.VoteResponse),
    said.BeginQuorumEpochRequest: (following.on_begin_epoch, said.BeginQuorumEpochResponse),
    said.EndQuorumEpochRequest: (following.on_end_epoch, said.EndQuorumEpochResponse),
    said.FetchRequest: (leadership.on_fetch, said.FetchResponse),
    said.FetchSnapshotRequest: (snapshots.on_fetch_snapshot, said.FetchSnapshotResponse),
    said.DescribeQuorumRequest: (leadership.on_describe, said.DescribeQuorumResponse),
    said.AddVoterRequest: (voter_changes.on_add, said.AddVoterResponse),
    said.RemoveVoterRequest: (voter_changes.on_remove, said.RemoveVoterResponse),
    said.UpdateVoterRequest: (voter_changes.on_update, said.UpdateVoterResponse),
}
_ANSWERS: dict[type[said.Request], Callable[..., None]] = {
    said.VoteRequest: election.on_vote_answer,
    said.BeginQuorumEpochRequest: leadership.on_begin_epoch_answer,
    said.EndQuorumEpochRequest: election.on_end_epoch_answer,
    said.FetchRequest: following.on_fetch_answer,
    said.FetchSnapshotRequest: snapshots.on_fetch_snapshot_answer,
    said.UpdateVoterRequest: voter_changes.on_update_answer,
    said.KRaftVersionsRequest: voter_changes.on_versions_answer,
}
_POLLS: dict[type[Any], Callable[..., int]] = {
    Unattached: election.poll_unattached,
    Follower: following.poll_follower,
    Prospective: election.poll_prospective,
    Candidate: election.poll_candidate,
    Leader: leadership.poll_leader,
    Resigned: election.poll_resigned,
}


class Raft:
    """The mind of one replica; see the package for how to drive it."""

    __slots__ = ("_inputs", "_stopped", "_wake_ms", "replica")

    def __init__(
        self, *, key: ReplicaKey, config: QuorumConfig, log: LogMirror, state: QuorumState, chance: Chance, now_ms: int
    ) -> None:
        """A replica as it was left: `log` and `state` as found on disk, all of it safe there."""
        self.replica = Replica(key=key, config=config, log=log, state=state, chance=chance, now_ms=now_ms)
        self._wake_ms = -1
        self._stopped = False
        self._inputs: dict[type[Any], Callable[..., None]] = {
            given.Tick: self._on_tick,
            given.Received: self._on_request,
            given.Answered: self._on_answer,
            given.SendFailed: self._on_send_failed,
            given.Propose: self._on_propose,
            given.Flushed: self._on_flushed,
            given.SnapshotWritten: self._on_snapshot_written,
            given.CleanBefore: self._on_clean,
            given.SnapshotLoaded: self._on_snapshot_loaded,
            given.Resign: self._on_resign,
            given.Shutdown: self._on_shutdown,
        }

    # What a shell may look at

    @property
    def epoch(self) -> int:
        """The highest epoch heard of."""
        return self.replica.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch; NOBODY if it is unknown."""
        return self.replica.leader_id

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads."""
        return isinstance(self.replica.role, Leader)

    @property
    def high_watermark(self) -> int:
        """What is below is committed."""
        return self.replica.high_watermark

    # Steps

    def start(self, now_ms: int) -> list[Output]:
        """The first step: take the role that what is on disk allows."""
        replica = self.replica
        replica.now_ms = now_ms
        state, log = replica.state, replica.log
        if state.epoch < log.last_epoch:  # The file is older than the log: nothing is known of the vote in its epoch.
            replica.state = QuorumState(log.last_epoch)
            replica.emit(Persist(replica.state))
        endpoints = log.voters.last.endpoints(state.leader_id) if state.leader_id >= 0 else ()
        if replica.leader_id == replica.key.id:
            # It led this epoch and may have lost what it wrote in it: it must not write in it again.
            # Others are asked to stand at once, in any order, and it does so soon: who lacks records is not elected.
            others = (voter.key for voter in log.voters.last.by_id.values() if voter.key.id != replica.key.id)
            # One that is no voter any more only waits until it may look for the new leader.
            replica.become_resigned(tuple(others), replica.first_election() if replica.may_stand else None)
        elif replica.leader_id >= 0 and endpoints:
            replica.become_follower(replica.epoch, replica.leader_id, endpoints)
        else:
            # A candidate does not go on as one, as Kafka's does: who voted for it saw a log that a crash may have
            # shortened since, because flushing takes its time here.
            replica.become_unattached(replica.epoch, replica.leader_id)
            replica.role = Unattached(replica.first_election())
        if replica.is_voter and len(log.voters.last) == 1:
            self._hurry(now_ms)
        return self._finish()

    def _hurry(self, now_ms: int) -> None:
        """Have the only voter wait for nobody."""
        role = self.replica.role
        if isinstance(role, Unattached | Resigned):
            role.election_ms = now_ms
        elif isinstance(role, Follower):
            role.fetch_deadline_ms = now_ms

    def step(self, given_input: given.Input, now_ms: int) -> list[Output]:
        """Take in one thing; gives what is to be done, in order."""
        replica = self.replica
        role = replica.role
        assert now_ms >= replica.now_ms, "time does not run backwards"
        assert not (isinstance(role, Follower) and role.loading) or isinstance(given_input, given.SnapshotLoaded)
        replica.now_ms = now_ms
        self._inputs[type(given_input)](given_input)
        return self._finish()

    def _finish(self) -> list[Output]:
        """Do what is due in the role, until it is one that stays."""
        replica = self.replica
        wake_ms = NEVER
        for _ in range(_ROLES_IN_A_STEP_MAX):
            role = replica.role
            wake_ms = _POLLS[type(role)](replica, role)
            if replica.role is role:
                break
        for leader in replica.deposed:
            leadership.abandon(replica, leader)
        replica.deposed.clear()
        self._complete_shutdown()
        assert wake_ms > replica.now_ms, "what is due is done"
        if wake_ms < NEVER and (wake_ms != self._wake_ms or self._wake_ms <= replica.now_ms):
            self._wake_ms = wake_ms
            replica.emit(Wake(wake_ms))
        outputs, replica.outputs = replica.outputs, []
        return outputs

    def _complete_shutdown(self) -> None:
        """A leader waits until all who can be reached know that it resigned, or its time is over; others need not."""
        replica, role = self.replica, self.replica.role
        if replica.shutdown_ms is None or self._stopped:
            return
        in_charge = isinstance(role, Leader) or (isinstance(role, Resigned) and role.has_more_to_tell)
        alone = replica.is_voter and len(replica.log.voters.last) == 1
        if not in_charge or alone or replica.now_ms >= replica.shutdown_ms:
            self._stopped = True
            replica.emit(ShutdownComplete())

    # Inputs

    def _on_tick(self, tick: given.Tick) -> None:
        pass  # What is due is done at the end of each step.

    def _on_request(self, received: given.Received) -> None:
        replica, request = self.replica, received.request
        rule, kind = _REQUESTS[type(request)]
        if request.cluster_id not in {None, replica.config.cluster_id}:
            replica.answer(received.token, reply(replica, kind, ErrorCode.INCONSISTENT_CLUSTER_ID))
        else:
            rule(replica, received.token, request)

    def _on_answer(self, answered: given.Answered) -> None:
        replica, sender = self.replica, answered.sender
        request = replica.connections.expected(sender, answered.correlation)
        if request is None:
            return
        rule = _ANSWERS[type(request)]
        if isinstance(request, said.KRaftVersionsRequest):
            replica.connections.answered(sender)
            rule(replica, sender, request, answered.response)
            return
        use = take_in_response(replica, answered.response)
        if use is Use.FAILED:
            self._failed(sender)
            return
        replica.connections.answered(sender)
        if use is Use.GO_ON:
            rule(replica, sender, request, answered.response)

    def _on_send_failed(self, failed: given.SendFailed) -> None:
        replica = self.replica
        if replica.connections.expected(failed.receiver, failed.correlation) is not None:
            self._failed(failed.receiver)
            if isinstance(replica.role, Follower) and failed.receiver == replica.leader_id:
                following.missed_leader(replica, replica.role)

    def _failed(self, node_id: int) -> None:
        replica = self.replica
        replica.connections.failed(node_id, replica.now_ms)
        if isinstance(replica.role, Resigned):
            replica.role.note_failure(node_id)

    def _on_propose(self, propose: given.Propose) -> None:
        appending.on_propose(self.replica, propose)

    def _on_flushed(self, flushed: given.Flushed) -> None:
        replica = self.replica
        if replica.log.flushed(flushed.offset, flushed.generation) and isinstance(replica.role, Leader):
            leadership.update_high_watermark(replica, replica.role)

    def _on_snapshot_written(self, written: given.SnapshotWritten) -> None:
        snapshots.on_written(self.replica, written)

    def _on_clean(self, clean: given.CleanBefore) -> None:
        snapshots.on_clean(self.replica, clean)

    def _on_snapshot_loaded(self, loaded: given.SnapshotLoaded) -> None:
        snapshots.on_loaded(self.replica, loaded)

    def _on_resign(self, resign: given.Resign) -> None:
        role = self.replica.role
        if isinstance(role, Leader) and resign.epoch == self.replica.epoch:
            role.resign = True

    def _on_shutdown(self, shutdown: given.Shutdown) -> None:
        if self.replica.shutdown_ms is None:
            self.replica.shutdown_ms = self.replica.now_ms + max(shutdown.timeout_ms, 0)
