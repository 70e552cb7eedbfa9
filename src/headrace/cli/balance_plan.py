"""Where partitions should be: away from a broker, or spread evenly, with as few moves as that takes.

Nothing here asks a cluster. A plan names only partitions that change; the first of a partition's brokers is the one
that should lead it.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headrace.cli.administration import Place

Replicas = dict["Place", list[int]]


class NowhereToGo(Exception):
    """Partitions have a replica on every other broker already; the argument is their list."""

    def __init__(self, places: list[Place]) -> None:
        super().__init__(places)
        self.places = places


def plan_drain(current: Mapping[Place, Sequence[int]], broker: int, racks: Mapping[int, str | None]) -> Replicas:
    """Move every replica of a broker to the others, each to the one that has the fewest then; NowhereToGo."""
    others = {one: rack for one, rack in racks.items() if one != broker}
    held = _Load(current, others)
    moved: Replicas = {}
    stuck = []
    for place, replicas in sorted(current.items()):
        if broker not in replicas:
            continue
        rest = [one for one in replicas if one != broker]
        target = held.best(place[0], rest, [one for one in others if one not in rest])
        if target is None:
            stuck.append(place)
            continue
        held.add(place[0], target)
        moved[place] = [target if one == broker else one for one in replicas]
    if stuck:
        raise NowhereToGo(stuck)
    return moved


def plan_rebalance(current: Mapping[Place, Sequence[int]], racks: Mapping[int, str | None]) -> Replicas:
    """Give every broker the same number of replicas, and of preferred leaders, give or take one."""
    planned = {place: list(replicas) for place, replicas in sorted(current.items())}
    _even_out_replicas(planned, racks)
    _even_out_leaders(planned, racks)
    return {place: replicas for place, replicas in planned.items() if replicas != list(current[place])}


def counts(current: Mapping[Place, Sequence[int]], brokers: Iterable[int]) -> dict[int, int]:
    """How many replicas each broker has."""
    found = Counter(one for replicas in current.values() for one in replicas)
    return {broker: found[broker] for broker in brokers}


class _Load:
    """How many replicas each broker has, of everything and of each topic."""

    def __init__(self, current: Mapping[Place, Sequence[int]], racks: Mapping[int, str | None]) -> None:
        self._racks = racks
        self.total: Counter[int] = Counter()
        self.by_topic: Counter[tuple[str, int]] = Counter()
        for (topic, _), replicas in current.items():
            for broker in replicas:
                self.add(topic, broker)

    def add(self, topic: str, broker: int, number: int = 1) -> None:
        self.total[broker] += number
        self.by_topic[topic, broker] += number

    def best(self, topic: str, rest: Sequence[int], candidates: Iterable[int]) -> int | None:
        """Who should have one more replica of a topic beside the rest: a new rack first, then who has the fewest."""
        used = {self._racks.get(one) for one in rest} - {None}
        ranked = ((self._racks[one] in used, self.total[one], self.by_topic[topic, one], one) for one in candidates)
        chosen = min(ranked, default=None)
        return None if chosen is None else chosen[-1]


def _even_out_replicas(planned: Replicas, racks: Mapping[int, str | None]) -> None:
    """Move replicas from those who have most to those who have fewest, until nobody has two more than another."""
    held = _Load(planned, racks)
    while move := _next_move(planned, held, racks):
        place, giver, taker = move
        planned[place] = [taker if one == giver else one for one in planned[place]]
        held.add(place[0], giver, -1)
        held.add(place[0], taker)


def _next_move(planned: Replicas, held: _Load, racks: Mapping[int, str | None]) -> tuple[Place, int, int] | None:
    """The move that helps most: from the fullest broker to the emptiest, of the topic that is spread worst."""
    by_load = sorted(racks, key=lambda one: (held.total[one], one))
    for giver in reversed(by_load):
        for taker in by_load:
            if held.total[giver] - held.total[taker] < 2:
                break
            fitting = [
                (held.by_topic[place[0], giver] - held.by_topic[place[0], taker], place)
                for place, replicas in planned.items()
                if giver in replicas and taker not in replicas and _keeps_racks(replicas, giver, taker, racks)
            ]
            if fitting:
                return max(fitting, key=lambda one: (one[0], one[1]))[1], giver, taker
    return None


def _keeps_racks(replicas: Sequence[int], giver: int, taker: int, racks: Mapping[int, str | None]) -> bool:
    """Whether as many racks hold the partition after the move as before."""
    before = {racks.get(one) for one in replicas}
    return len({racks.get(taker if one == giver else one) for one in replicas}) >= len(before)


def _even_out_leaders(planned: Replicas, racks: Mapping[int, str | None]) -> None:
    """Change who comes first, along chains of partitions where no single one helps, until nobody leads two more."""
    leads = Counter(dict.fromkeys(racks, 0))
    leads.update(replicas[0] for replicas in planned.values() if replicas)
    while True:
        for giver in sorted(racks, key=lambda one: (-leads[one], one)):
            chain = _chain(planned, giver, {one for one in racks if leads[giver] - leads[one] >= 2})
            if chain:
                break
        else:
            return
        for place, taker in chain:
            replicas = planned[place]
            planned[place] = [taker, *(one for one in replicas if one != taker)]
        leads[giver] -= 1
        leads[chain[-1][1]] += 1


def _chain(planned: Replicas, giver: int, wanted: set[int]) -> list[tuple[Place, int]]:
    """The shortest way to hand leadership from one broker to one of the wanted: partitions, and who leads each then."""
    if not wanted:
        return []
    ways: dict[int, list[tuple[Place, int]]] = {giver: []}
    queue = deque([giver])
    while queue:
        at = queue.popleft()
        for place, replicas in planned.items():
            if replicas[:1] != [at]:
                continue
            for other in replicas[1:]:
                if other not in ways:
                    ways[other] = [*ways[at], (place, other)]
                    if other in wanted:
                        return ways[other]
                    queue.append(other)
    return []
