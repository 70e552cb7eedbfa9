"""Where the offsets of a group shall stand: the scenarios of a reset, for the command line and whoever else plans one.

A scenario only plans. Who asked for it decides in which words to tell what was noticed, and whether to carry it out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

Place = tuple[str, int]
Plan = dict[Place, int]
LogOffsets = Callable[[Collection[Place], int], Awaitable[Mapping[Place, int]]]
"""Asks a cluster for offsets at a time in ms, or where logs begin or end; -1 where no record is as late."""

LATEST, EARLIEST = -1, -2
INACTIVE = frozenset({"Empty", "Dead"})
"""The states of groups whose offsets may be moved."""


class OutOfRange(NamedTuple):
    """An offset that the log does not have, and the one that was taken instead."""

    place: Place
    wanted: int
    offset: int


class NothingSoLate(NamedTuple):
    """A partition without a record at or after the time; its end was taken."""

    place: Place


class NothingCommitted(ValueError):
    """Offsets cannot be shifted where there are none."""

    def __init__(self, place: Place) -> None:
        super().__init__(
            f"Cannot shift offset for partition {place[0]}-{place[1]} since there is no current committed offset"
        )
        self.place = place


class OffsetTargets:
    """Plans where offsets shall stand; every plan has the order in which its partitions were given."""

    def __init__(self, log_offsets: LogOffsets, tell: Callable[[OutOfRange | NothingSoLate], None]) -> None:
        self._log_offsets = log_offsets
        self._tell = tell

    async def at(self, places: Collection[Place], when: int) -> Plan:
        """Where the logs begin (EARLIEST) or end (LATEST)."""
        found = await self._log_offsets(places, when) if places else {}
        return {place: found[place] for place in places}

    async def to_offset(self, places: Collection[Place], offset: int) -> Plan:
        """All to one offset."""
        return await self.within_range(dict.fromkeys(places, offset))

    async def shift_by(self, places: Collection[Place], current: Mapping[Place, int], shift: int) -> Plan:
        """Forward or back by so many records; NothingCommitted where there is nowhere to begin."""
        for place in places:
            if place not in current:
                raise NothingCommitted(place)
        return await self.within_range({place: current[place] + shift for place in places})

    async def at_time(self, places: Collection[Place], when_ms: int) -> Plan:
        """To the first record at or after a time, to the end where there is none."""
        plan = await self.at(places, when_ms)
        late = [place for place, offset in plan.items() if offset < 0]
        for place in late:
            self._tell(NothingSoLate(place))
        return plan | await self.at(late, LATEST)

    async def to_current(self, places: Collection[Place], current: Mapping[Place, int]) -> Plan:
        """To where they are; to the end where nothing was committed."""
        ends = await self.at([place for place in places if place not in current], LATEST)
        return {place: ends[place] if place in ends else current[place] for place in places}

    async def within_range(self, wanted: Mapping[Place, int]) -> Plan:
        """Offsets moved to where the log begins or ends if they lie outside."""
        first, last = await self.at(wanted, EARLIEST), await self.at(wanted, LATEST)
        plan: Plan = {}
        for place, offset in wanted.items():
            plan[place] = min(max(offset, first[place]), last[place])
            if plan[place] != offset:
                self._tell(OutOfRange(place, offset, plan[place]))
        return plan
