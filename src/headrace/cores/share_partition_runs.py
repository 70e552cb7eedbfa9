"""The records of a share partition that are under way, as runs of offsets that share one fate.

The runs lie side by side without gaps or overlaps, from the first record that is not done for good to the last that was
ever handed out; a run is split where only a part of it changes, and joined again with a neighbour that is like it.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class RecordState(IntEnum):
    """What has become of a record, by the numbers that the state topic uses."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


DONE = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
"""The states a record never leaves."""

NOBODY = ""

RUNS_MAX = 10_000
"""Into so many runs what members say may cut a partition: the most locks a group can be given.

Whatever is done with a partition looks at its runs one by one, and all of them must fit one record of the state topic.
"""

_FEW = 16
"""Up to so many cuts are made one by one, more of them all in one pass."""


class Run:
    """Consecutive records in one state."""

    __slots__ = ("deadline_ms", "delivery_count", "first", "holder", "last", "next_state", "state", "write")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        holder: str = NOBODY,
        deadline_ms: int = 0,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.holder = holder
        """The member that has them; nobody, unless they are acquired."""
        self.deadline_ms = deadline_ms
        """Until when the holder has them."""
        self.write: int | None = None
        """The write under way that will bring them into `next_state`."""
        self.next_state = state

    @property
    def count(self) -> int:
        """How many records."""
        return self.last - self.first + 1

    @property
    def fate(self) -> tuple[RecordState, int, str, int, int | None, RecordState]:
        """All but the place; neighbours with one fate are one run."""
        return (self.state, self.delivery_count, self.holder, self.deadline_ms, self.write, self.next_state)

    @property
    def is_free(self) -> bool:
        """Whether they may be handed out."""
        return self.state is RecordState.AVAILABLE and self.write is None

    def settle(self, state: RecordState) -> None:
        """Give them a state that nobody holds them in."""
        self.state = self.next_state = state
        self.holder = NOBODY
        self.deadline_ms = 0
        self.write = None

    def _copy(self, first: int, last: int) -> Run:
        copy = Run(first, last, self.state, self.delivery_count, self.holder, self.deadline_ms)
        copy.write = self.write
        copy.next_state = self.next_state
        return copy

    def split(self, offset: int) -> Run:
        """Cut in two before `offset`; gives the part behind."""
        behind = self._copy(offset, self.last)
        self.last = offset - 1
        return behind


class Runs:
    """Runs in the order of their offsets."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def append(self, run: Run) -> None:
        """Add a run behind the last."""
        assert not self._runs or self._runs[-1].last + 1 == run.first, "runs have no gaps"
        self._runs.append(run)

    def clear(self) -> None:
        """Forget all."""
        self._runs.clear()

    def between(self, first: int, last: int) -> list[Run]:
        """The runs that cover exactly the part of `first` to `last` that is there; split to fit."""
        if not self._runs or first > last:
            return []
        start = self._cut(first)
        stop = self._cut(last + 1)
        return self._runs[start:stop]

    def overlapping(self, first: int, last: int) -> list[Run]:
        """The runs that have a record from `first` to `last`, whole."""
        found: list[Run] = []
        for place in range(max(self._place(first), 0), len(self._runs)):
            run = self._runs[place]
            if run.first > last:
                break
            if run.last >= first:
                found.append(run)
        return found

    def meeting(self, ranges: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, Run]]:
        """What each range says (its third number) with each run that has a record of it; ranges come in order."""
        place, count = max(self._place(ranges[0][0]), 0) if ranges else 0, len(self._runs)
        for first, last, said in ranges:
            while place < count and self._runs[place].last < first:
                place += 1
            met = place
            while met < count and self._runs[met].first <= last:
                yield said, self._runs[met]
                met += 1

    def is_room_for(self, ranges: Sequence[tuple[int, int, int]]) -> bool:
        """Whether runs may be cut for so many ranges; for a few they always may, so that nobody is stuck."""
        if 2 * len(ranges) <= _FEW:
            return True
        bounds = {bound for first, last, _ in ranges for bound in (first, last + 1)}
        bounds.difference_update(run.first for run in self._runs)
        bounds.difference_update(run.last + 1 for run in self._runs[-1:])
        return not bounds or len(self._runs) + len(bounds) <= RUNS_MAX

    def cut(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Split runs so that none lies across the border of a range; ranges come in order."""
        bounds = [bound for first, last, _ in ranges for bound in (first, last + 1)]
        if len(bounds) <= _FEW:
            for bound in bounds:
                self._cut(bound)
            return
        place, pieces = 0, []
        for run in self._runs:
            rest = run
            while place < len(bounds) and bounds[place] <= rest.last:
                if bounds[place] > rest.first:
                    behind = rest.split(bounds[place])
                    pieces.append(rest)
                    rest = behind
                place += 1
            pieces.append(rest)
        self._runs = pieces

    def drop_before(self, offset: int) -> None:
        """Forget the records before an offset."""
        del self._runs[: self._cut(offset)]

    def drop_done(self) -> int | None:
        """Forget the runs at the start that are done for good; the last offset of them, if there were any."""
        place, last = 0, None
        while place < len(self._runs) and self._runs[place].state in DONE:
            last = self._runs[place].last
            place += 1
        del self._runs[:place]
        return last

    def join(self) -> None:
        """Make one run of neighbours with one fate."""
        joined: list[Run] = []
        fate = None
        for run in self._runs:
            if joined and run.fate == fate:
                joined[-1].last = run.last
            else:
                joined.append(run)
                fate = run.fate
        self._runs = joined

    def _place(self, offset: int) -> int:
        """The index of the last run that starts at or before `offset`, -1 if none does."""
        return bisect_right(self._runs, offset, key=lambda run: run.first) - 1

    def _cut(self, offset: int) -> int:
        """Make a run start at `offset` if one lies across it; the index of the first run at or behind it."""
        place = self._place(offset)
        if place < 0:
            return 0
        run = self._runs[place]
        if run.first == offset:
            return place
        if run.last >= offset:
            self._runs.insert(place + 1, run.split(offset))
        return place + 1
