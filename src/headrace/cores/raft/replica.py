"""The replica itself: what it knows, and the changes of role that are allowed.

    Unattached  -> Prospective (time is up) | Follower (a leader is known) | Unattached (a higher epoch)
    Follower    -> Prospective (the leader is silent) | Follower, Unattached (a higher epoch)
    Prospective -> Candidate (it would win) | Follower, Unattached (it would not, or a higher epoch, or a leader)
    Candidate   -> Leader (it won) | Prospective (time is up) | Follower, Unattached (a leader, a higher epoch)
    Leader      -> Resigned (asked to, or no majority is heard) | Follower, Unattached (a higher epoch)
    Resigned    -> Unattached (time is up: in the next epoch; or a higher one) | Follower (a higher epoch)

A replica that may not stand for election only goes between Unattached and Follower.
The rules of elections, of leading, following, snapshots and voters act on a Replica from the files of those names.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.connections import Connections
from headrace.cores.raft.inputs import Token
from headrace.cores.raft.log_mirror import LogMirror
from headrace.cores.raft.messages import Request, Response
from headrace.cores.raft.outputs import (
    Answer,
    BecameLeader,
    FlushLog,
    HighWatermarkMoved,
    LeaderKnown,
    LeadershipLost,
    Output,
    Persist,
    Send,
)
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.states import (
    NEVER,
    Candidate,
    Follower,
    Leader,
    Poll,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from headrace.cores.raft.voters import NOBODY, Endpoints, ReplicaKey

Chance = Callable[[int, int], int]
"""Draws a number between two, both included."""

BOOTSTRAP_FIRST = -2
"""The number of the first bootstrap server; the others follow downward."""


class Replica:
    """One node's part in the quorum."""

    __slots__ = (
        "chance",
        "config",
        "connections",
        "deposed",
        "high_watermark",
        "key",
        "log",
        "now_ms",
        "outputs",
        "role",
        "shutdown_ms",
        "state",
        "told",
    )

    def __init__(
        self, *, key: ReplicaKey, config: QuorumConfig, log: LogMirror, state: QuorumState, chance: Chance, now_ms: int
    ) -> None:
        self.key = key
        self.config = config
        self.log = log
        self.state = state
        self.chance = chance
        self.now_ms = now_ms
        self.connections = Connections(config, correlation=chance(0, 2**30))
        latest = log.latest_snapshot
        self.high_watermark = max(log.start_offset, latest.offset if latest is not None else 0)
        self.outputs: list[Output] = []
        self.deposed: list[Leader] = []
        """Leaderships that ended in this step; who waits for them is to be told."""
        self.role: Role = Unattached(NEVER)
        self.told = (NOBODY, -1)
        """The leader and epoch the shell was last told."""
        self.shutdown_ms: int | None = None
        """When a shutdown is over at the latest, if one has begun."""

    # What it is

    @property
    def epoch(self) -> int:
        """The highest epoch it has heard of."""
        return self.state.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch, NOBODY if it is unknown."""
        return self.state.leader_id

    @property
    def is_voter(self) -> bool:
        """Whether it has a vote, by the last voter set in its log."""
        return self.log.voters.last.has(self.key)

    @property
    def may_stand(self) -> bool:
        """Whether it may stand for election: a voter, or one whose removal is not known to be committed.

        It may be the only one that has the record of its removal, and then the others cannot do without it; it is
        elected by the voters that remain (Raft, 4.2.2). Kafka's replicas do not, and a quorum of two can get stuck.
        """
        if self.is_voter:
            return True
        voters = self.log.voters
        return (
            voters.previous is not None and voters.last_offset >= self.high_watermark and voters.previous.has(self.key)
        )

    @property
    def leader_endpoints(self) -> Endpoints:
        """Where the leader listens, as far as it is known."""
        role = self.role
        if isinstance(role, Follower | Prospective):
            return role.endpoints
        if self.leader_id == self.key.id:
            return self.config.endpoints
        return self.log.voters.last.endpoints(self.leader_id) if self.leader_id >= 0 else ()

    def election_timeout(self) -> int:
        """When to stand for election if nothing happens: not all at once, therefore by chance."""
        if not self.may_stand:
            return NEVER
        timeout_ms = self.config.election_timeout_ms
        return self.now_ms + timeout_ms + self.chance(0, timeout_ms)

    def first_election(self) -> int:
        """When to stand for election after a start, if no leader is found: soon, as a cluster that starts has none.

        Where there is one after all, nobody who hears of it would vote (KIP-996), so that haste disturbs nobody.
        """
        if not self.may_stand:
            return NEVER
        timeout_ms = self.config.election_timeout_ms
        return self.now_ms + timeout_ms // 10 + self.chance(0, timeout_ms // 4)

    def next_election(self, election_ms: int) -> int:
        """When to look again at an election; while shutting down none begins, and only its end is waited for."""
        if self.shutdown_ms is None:
            return election_ms
        return self.shutdown_ms if self.shutdown_ms > self.now_ms else NEVER

    # What it wants done

    def emit(self, output: Output) -> None:
        """Have something done."""
        self.outputs.append(output)

    def send(self, to: int, endpoints: Endpoints, request: Request) -> None:
        """Send a request to a node that is ready for one."""
        correlation = self.connections.sent(to, request, self.now_ms)
        self.outputs.append(Send(to, endpoints, correlation, request))

    def answer(self, token: Token, response: Response, read_from: int | None = None) -> None:
        """Answer a request."""
        self.outputs.append(Answer(token, response, read_from))

    def want_flush(self) -> None:
        """Have everything flushed that was appended."""
        self.outputs.append(FlushLog(self.log.end_offset, self.log.generation))

    def move_high_watermark(self, offset: int) -> None:
        """Let the high watermark rise; it never falls."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.outputs.append(HighWatermarkMoved(offset))

    # What it becomes

    def _write_down(self, state: QuorumState) -> None:
        """Change what must never be forgotten, and have it written before anything else is done."""
        assert state.epoch >= self.state.epoch, "epochs never fall"
        if state != self.state:
            self.state = state
            self.outputs.append(Persist(state))

    def _enter(self, role: Role) -> None:
        self.role = role
        self.connections.forget_sent()
        now_known = (self.leader_id, self.epoch)
        if now_known != self.told:
            self.told = now_known
            self.outputs.append(LeaderKnown(self.leader_id, self.epoch, self.leader_endpoints))

    def _leave_leadership(self) -> None:
        if isinstance(self.role, Leader):
            self.deposed.append(self.role)
            self.outputs.append(LeadershipLost(self.epoch))

    def become_unattached(self, epoch: int, leader_id: int = NOBODY) -> None:
        """Go to an epoch, with no leader to follow; a clock that runs already runs on."""
        assert epoch > self.epoch or (epoch == self.epoch and isinstance(self.role, Prospective | Unattached))
        role = self.role
        self._leave_leadership()
        lost = isinstance(role, Prospective) and role.poll.is_lost
        if self.may_stand and isinstance(role, Unattached | Prospective | Candidate | Resigned) and not lost:
            election_ms = role.election_ms
        else:
            election_ms = self.election_timeout()
        voted = self.state.voted if epoch == self.epoch else None
        self._write_down(QuorumState(epoch, leader_id, voted))
        self._enter(Unattached(election_ms))

    def become_follower(self, epoch: int, leader_id: int, endpoints: Endpoints) -> None:
        """Follow a leader."""
        assert leader_id not in {NOBODY, self.key.id}
        assert epoch > self.epoch or self.leader_id in {NOBODY, leader_id}, "an epoch has one leader"
        self._leave_leadership()
        voted = self.state.voted if epoch == self.epoch else None
        self._write_down(QuorumState(epoch, leader_id, voted))
        deadline_ms = self.now_ms + self.config.fetch_timeout_ms
        self._enter(Follower(endpoints=endpoints, fetch_deadline_ms=deadline_ms, update_voter_ms=deadline_ms))

    def become_prospective(self) -> None:
        """Ask whether an election would be won; nothing is written down, the epoch stays."""
        assert self.may_stand
        endpoints = self.leader_endpoints
        poll = Poll(self.log.voters.last, self.key.id)
        self._enter(Prospective(poll=poll, election_ms=self.election_timeout(), endpoints=endpoints))

    def become_candidate(self) -> None:
        """Stand for election in the next epoch, with one's own vote."""
        assert self.may_stand
        assert isinstance(self.role, Prospective)
        self._write_down(QuorumState(self.epoch + 1, NOBODY, self.key))
        poll = Poll(self.log.voters.last, self.key.id)
        self._enter(Candidate(poll=poll, election_ms=self.election_timeout()))

    def vote_for(self, candidate: ReplicaKey) -> None:
        """Give away the vote of this epoch; the clock of the own election starts again."""
        assert self.state.voted is None
        assert isinstance(self.role, Unattached | Prospective)
        self._write_down(QuorumState(self.epoch, NOBODY, candidate))
        self._enter(Unattached(self.election_timeout()))

    def become_leader(self) -> Leader:
        """Lead the epoch; written down, because nobody may lead it twice, not even the same after a crash."""
        assert isinstance(self.role, Candidate)
        self._write_down(QuorumState(self.epoch, self.key.id, self.state.voted))
        leader = Leader(
            epoch_start_offset=self.log.end_offset,
            voters=self.log.voters.last,
            check_quorum_ms=self.now_ms + self.config.check_quorum_timeout_ms,
        )
        self._enter(leader)
        self.outputs.append(BecameLeader(self.epoch, leader.epoch_start_offset))
        return leader

    def become_resigned(self, preferred: tuple[ReplicaKey, ...] = (), election_ms: int | None = None) -> None:
        """Lead no longer, and keep the epoch so that nobody is voted for in it; join in later if nobody else leads."""
        assert self.leader_id == self.key.id
        self._leave_leadership()
        others = set(self.log.voters.last.by_id) - {self.key.id}
        if election_ms is None:
            timeout_ms = self.config.election_timeout_ms
            election_ms = self.now_ms + timeout_ms + self.chance(0, timeout_ms)
        self._enter(Resigned(election_ms=election_ms, preferred=preferred, unacknowledged=others))
