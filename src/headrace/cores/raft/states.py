"""The roles of a replica and what each must remember; who becomes what, and why, is in `replica.py`.

    Unattached   knows no leader it could follow; as a voter it stands for election when its time is up
    Follower     fetches from the leader; observers are followers that are no voters
    Prospective  asks whether it would be elected (KIP-996), still in the old epoch
    Candidate    asks for votes in a new epoch
    Leader       appends, answers fetches, moves the high watermark
    Resigned     was the leader of the epoch and can never be so again; waits for somebody else

The epoch, the vote and the known leader are not the roles' but the replica's: they outlive a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.voters import Endpoints, ReplicaKey, Voter, VoterSet

if TYPE_CHECKING:
    from headrace.cores.raft.inputs import Token
    from headrace.cores.raft.messages import FetchRequest

NEVER = 2**62
"""A time that does not come."""
_TRIES_TO_TELL = 2
"""A voter that could not be told so often is taken to be gone, by one who waits only for telling it."""


class Unattached:
    """Knows no leader it could follow."""

    __slots__ = ("election_ms",)

    def __init__(self, election_ms: int) -> None:
        self.election_ms = election_ms


class Follower:
    """Fetches from the leader."""

    __slots__ = (
        "endpoints",
        "failures",
        "fetch_deadline_ms",
        "has_fetched",
        "loading",
        "position",
        "snapshot_id",
        "update_voter_ms",
    )

    def __init__(self, *, endpoints: Endpoints, fetch_deadline_ms: int, update_voter_ms: int) -> None:
        self.endpoints = endpoints
        """Where the leader listens."""
        self.fetch_deadline_ms = fetch_deadline_ms
        self.update_voter_ms = update_voter_ms
        """When to see whether the voter set still has our own endpoints right."""
        self.has_fetched = False
        """A follower that has heard its leader refuses pre-votes."""
        self.failures = 0
        """How often in a row the leader could not be reached."""
        self.snapshot_id: OffsetAndEpoch | None = None
        """The snapshot that is being fetched."""
        self.position = 0
        self.loading = False
        """Whether the shell is at work on a complete snapshot."""


class Poll:
    """The votes of one election, cast by the voters known when it began."""

    __slots__ = ("granted", "rejected", "voters")

    def __init__(self, voters: VoterSet, own_id: int) -> None:
        self.voters = voters
        self.granted = {own_id} & voters.by_id.keys()
        self.rejected: set[int] = set()

    def record(self, node_id: int, *, granted: bool) -> None:
        """Take down a vote; a voter's word counts once."""
        if node_id in self.voters.by_id and node_id not in self.granted:
            (self.granted if granted else self.rejected).add(node_id)
            self.rejected -= self.granted

    @property
    def is_won(self) -> bool:
        """Whether a majority granted its vote."""
        return len(self.granted) >= self.voters.majority

    @property
    def is_lost(self) -> bool:
        """Whether those who have not refused are no majority."""
        return len(self.voters) - len(self.rejected) < self.voters.majority

    def unrecorded(self) -> list[Voter]:
        """Who has not answered yet."""
        heard = self.granted | self.rejected
        return [voter for voter in self.voters.by_id.values() if voter.key.id not in heard]


class Prospective:
    """Asks whether it would be elected."""

    __slots__ = ("election_ms", "endpoints", "poll")

    def __init__(self, *, poll: Poll, election_ms: int, endpoints: Endpoints) -> None:
        self.poll = poll
        self.election_ms = election_ms
        self.endpoints = endpoints
        """Where the leader listens that it would go back to."""


class Candidate:
    """Asks for votes."""

    __slots__ = ("election_ms", "poll")

    def __init__(self, *, poll: Poll, election_ms: int) -> None:
        self.poll = poll
        self.election_ms = election_ms


class Progress:
    """How far a replica is, as its leader sees it."""

    __slots__ = ("acknowledged", "end_offset", "key", "last_caught_up_ms", "last_fetch_leader_end", "last_fetch_ms")

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.end_offset = -1
        self.last_fetch_ms = self.last_caught_up_ms = self.last_fetch_leader_end = -1
        self.acknowledged = False
        """Whether it knows who leads."""

    def fetched(self, *, offset: int, leader_end: int, now_ms: int) -> None:
        """Take down a fetch; a replica is caught up as of when its leader's log ended where the replica's does now."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.last_fetch_leader_end <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.last_fetch_leader_end = leader_end
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = offset
        self.acknowledged = True


class VoterChange:
    """A change of the voters that is not decided yet; there is never a second one."""

    __slots__ = ("ack_when_committed", "deadline_ms", "offset", "removes", "token", "voter")

    def __init__(
        self, *, token: Token, voter: Voter, removes: bool, deadline_ms: int, ack_when_committed: bool
    ) -> None:
        self.token = token
        self.voter = voter
        self.removes = removes
        self.deadline_ms = deadline_ms
        self.ack_when_committed = ack_when_committed
        self.offset = -1
        """Where its VotersRecord stands; -1 while the new voter is asked for its versions."""


class Parked:
    """A fetch that waits for news."""

    __slots__ = ("deadline_ms", "request", "token")

    def __init__(self, *, token: Token, request: FetchRequest, deadline_ms: int) -> None:
        self.token = token
        self.request = request
        self.deadline_ms = deadline_ms


class Leader:
    """Appends, answers fetches, moves the high watermark."""

    __slots__ = (
        "begin_epoch_ms",
        "change",
        "check_quorum_ms",
        "epoch_start_offset",
        "fetched_voters",
        "is_ready",
        "observers",
        "parked",
        "resign",
        "voters",
    )

    def __init__(self, *, epoch_start_offset: int, voters: VoterSet, check_quorum_ms: int) -> None:
        self.epoch_start_offset = epoch_start_offset
        self.voters = {voter.key.id: Progress(voter.key) for voter in voters.by_id.values()}
        self.observers: dict[ReplicaKey, Progress] = {}
        self.fetched_voters: set[int] = set()
        """Who fetched since a majority last did."""
        self.check_quorum_ms = check_quorum_ms
        self.begin_epoch_ms = 0
        self.is_ready = False
        """Whether a record of this epoch is committed, and so the high watermark known."""
        self.parked: dict[ReplicaKey, Parked] = {}
        self.change: VoterChange | None = None
        self.resign = False


class Resigned:
    """Was the leader of the epoch."""

    __slots__ = ("_failures", "election_ms", "preferred", "unacknowledged")

    def __init__(self, *, election_ms: int, preferred: tuple[ReplicaKey, ...], unacknowledged: set[int]) -> None:
        self.election_ms = election_ms
        self.preferred = preferred
        self.unacknowledged = unacknowledged
        self._failures: dict[int, int] = {}

    def note_failure(self, node_id: int) -> None:
        """A voter could not be told."""
        self._failures[node_id] = self._failures.get(node_id, 0) + 1

    @property
    def has_more_to_tell(self) -> bool:
        """Whether a voter that may be there has not heard of the resignation; one try may fail on an old connection."""
        return any(self._failures.get(node_id, 0) < _TRIES_TO_TELL for node_id in self.unacknowledged)


Role = Unattached | Follower | Prospective | Candidate | Leader | Resigned
Nominee = Prospective | Candidate
