"""Who votes: the keys of replicas, the set of voters, and its history along the log (KIP-853)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

NOBODY = -1
"""Stands for a leader or a candidate that is not there."""
BOOTSTRAP_OFFSET = -1
"""Where a voter set stands that came with the formatting of the directory and is not in the log yet."""
KRAFT_VERSION_MAX = 1
"""The newest `kraft.version` we speak: 0 has voters from the settings, 1 has them in the log."""


class Endpoint(Struct, frozen=True):
    """Where a replica listens."""

    name: str
    host: str
    port: int


Endpoints = tuple[Endpoint, ...]


class ReplicaKey(Struct, frozen=True):
    """A replica is its node and its directory: a node with a new disk is somebody else."""

    id: int
    directory_id: UUID | None = None

    def answers_to(self, wanted: ReplicaKey | None) -> bool:
        """Whether a message for `wanted` is meant for this replica; what is not said fits anybody."""
        if wanted is None or wanted is self:
            return True
        return wanted.id == self.id and (wanted.directory_id is None or wanted.directory_id == self.directory_id)


class Voter(Struct, frozen=True):
    """A member of the quorum."""

    key: ReplicaKey
    endpoints: Endpoints = ()
    kraft_versions: tuple[int, int] = (0, KRAFT_VERSION_MAX)
    """The lowest and the highest `kraft.version` it speaks."""


class VoterSet:
    """The members of the quorum at one point of the log; never changed, only replaced."""

    __slots__ = ("by_id", "majority")

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        self.by_id = {voter.key.id: voter for voter in sorted(voters, key=lambda voter: voter.key.id)}
        self.majority = len(self.by_id) // 2 + 1

    def __len__(self) -> int:
        return len(self.by_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self.by_id == other.by_id

    def __hash__(self) -> int:
        return hash(tuple(self.by_id.values()))

    def __repr__(self) -> str:
        return f"VoterSet({[*self.by_id]})"

    def has(self, key: ReplicaKey) -> bool:
        """Whether a replica is a voter; voters from the settings have no directory and fit any."""
        voter = self.by_id.get(key.id)
        return voter is not None and key.answers_to(voter.key)

    def endpoints(self, node_id: int) -> Endpoints:
        """Where a voter listens; nothing if it is none."""
        voter = self.by_id.get(node_id)
        return voter.endpoints if voter is not None else ()

    def add(self, voter: Voter) -> VoterSet | None:
        """The set with one more; None if there is one of that id."""
        return None if voter.key.id in self.by_id else VoterSet((*self.by_id.values(), voter))

    def remove(self, key: ReplicaKey) -> VoterSet | None:
        """The set with one less; None if it is not in it, or the last."""
        if not self.has(key) or len(self.by_id) == 1:
            return None
        return VoterSet(voter for voter in self.by_id.values() if voter.key.id != key.id)

    def update(self, voter: Voter) -> VoterSet | None:
        """The set with one that listens elsewhere or speaks other versions; None if it is not in it."""
        return VoterSet({**self.by_id, voter.key.id: voter}.values()) if self.has(voter.key) else None


class VoterHistory:
    """The voter sets along the log: the last one counts, committed or not, until it is truncated away."""

    __slots__ = ("_offsets", "_sets", "_static", "last")

    def __init__(self, static: VoterSet | None = None, entries: Iterable[tuple[int, VoterSet]] = ()) -> None:
        """`static` voters are from the settings and count only while the log names none."""
        self._static = static if static is not None else VoterSet()
        self._offsets: list[int] = []
        self._sets: list[VoterSet] = []
        for offset, voters in entries:
            self._offsets.append(offset)
            self._sets.append(voters)
        self.last = self._last()

    def _last(self) -> VoterSet:
        return self._sets[-1] if self._sets else self._static

    @property
    def kraft_version(self) -> int:
        """1 if the log names the voters, 0 if the settings do."""
        return 1 if self._sets else 0

    @property
    def last_offset(self) -> int:
        """Where the last voter set stands in the log; meaningless without one."""
        return self._offsets[-1] if self._offsets else BOOTSTRAP_OFFSET

    @property
    def previous(self) -> VoterSet | None:
        """The voter set before the last; None if the log has no two."""
        return self._sets[-2] if len(self._sets) > 1 else None

    def at(self, offset: int) -> VoterSet | None:
        """The voter set that the records before an offset leave; None if they name none."""
        index = bisect_left(self._offsets, offset)
        return self._sets[index - 1] if index else None

    def add(self, offset: int, voters: VoterSet) -> None:
        """Take over a voter set that was appended to the log."""
        assert not self._offsets or offset > self._offsets[-1], "voter sets stand in the log in order"
        self._offsets.append(offset)
        self._sets.append(voters)
        self.last = voters

    def truncate_to(self, offset: int) -> None:
        """Forget what stood at or above an offset."""
        keep = bisect_left(self._offsets, offset)
        del self._offsets[keep:], self._sets[keep:]
        self.last = self._last()

    def trim_before(self, offset: int) -> None:
        """Forget all but the last of the sets below an offset: a snapshot holds that one."""
        drop = bisect_right(self._offsets, offset - 1) - 1
        if drop > 0:
            del self._offsets[:drop], self._sets[:drop]

    def reset(self, offset: int, voters: VoterSet | None) -> None:
        """Start again from a snapshot that ends at an offset."""
        self._offsets = [] if voters is None else [offset - 1]
        self._sets = [] if voters is None else [voters]
        self.last = self._last()
