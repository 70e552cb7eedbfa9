"""The uniform assignor where members read different topics.

Every member keeps what it had and still reads. What nobody has goes, topic by topic, to the least loaded reader of the
topic. Then, topic by topic again, partitions move from the most to the least loaded reader until these differ by one;
as each topic moves the load of the others, this goes round until nothing moves, but not for ever.
Topics with many partitions per reader come first, since they leave the least choice.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from headrace.cores.groups.assignors.spec import GroupSpec, Target

ROUNDS_MAX = 16
"""How often balancing goes over all topics; rarely more than two are needed."""

NOBODY = -1


def assign_mixed(spec: GroupSpec) -> dict[str, Target]:
    """Share out the partitions of topics that have different readers."""
    table = _Table(spec)
    table.keep()
    for topic in table.in_order(table.readers):
        scale = _Scale(table.loads, table.readers[topic])
        for index in [index for index, owner in enumerate(table.owners[topic]) if owner == NOBODY]:
            table.give(topic, index, scale.lightest())
    table.balance()
    return table.targets()


class _Table:
    """Who owns which partition, and how many partitions each member has."""

    __slots__ = ("loads", "member_ids", "owners", "readers", "spec")

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.member_ids = sorted(spec.members)
        self.loads = [0] * len(self.member_ids)
        self.readers: dict[UUID, list[int]] = {}
        for member, member_id in enumerate(self.member_ids):
            for topic in spec.members[member_id].topics:
                self.readers.setdefault(topic, []).append(member)
        self.owners = {topic: [NOBODY] * spec.partition_counts[topic] for topic in self.readers}

    def keep(self) -> None:
        """Leave everyone what it had and may still have."""
        for member, member_id in enumerate(self.member_ids):
            spec = self.spec.members[member_id]
            for topic in spec.topics & spec.target.keys():
                for index in spec.target[topic]:
                    if index < len(self.owners[topic]) and self.owners[topic][index] == NOBODY:
                        self.give(topic, index, member)

    def give(self, topic: UUID, index: int, member: int) -> None:
        """Let a partition have a new owner."""
        old = self.owners[topic][index]
        if old != NOBODY:
            self.loads[old] -= 1
        self.owners[topic][index] = member
        self.loads[member] += 1

    def in_order(self, topics: dict[UUID, list[int]]) -> list[UUID]:
        """Topics with the most partitions per reader first, then those with fewer readers."""
        return sorted(
            topics, key=lambda topic: (-len(self.owners[topic]) / len(topics[topic]), len(topics[topic]), topic)
        )

    def balance(self) -> None:
        """Even out topic by topic until a whole round changed nothing."""
        shared = self.in_order({topic: readers for topic, readers in self.readers.items() if len(readers) > 1})
        last_moved = None
        for _ in range(ROUNDS_MAX):
            for topic in shared:
                if topic == last_moved:
                    return
                if self._even_out(topic) or last_moved is None:
                    last_moved = topic

    def _even_out(self, topic: UUID) -> bool:
        """Move partitions of one topic from its most to its least loaded readers; tells whether any moved."""
        readers = self.readers[topic]
        loads = [self.loads[member] for member in readers]
        if max(loads) - min(loads) <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for index, owner in enumerate(self.owners[topic]):
            owned.setdefault(owner, []).append(index)
        scale = _Scale(self.loads, readers)
        moved = False
        while not scale.is_even and (heavy := scale.heaviest()) is not None:
            if not owned.get(heavy):
                scale.exclude(heavy)
                continue
            light = scale.lightest()
            if scale.is_even:
                break
            self.give(topic, owned[heavy].pop(), light)
            moved = True
        return moved

    def targets(self) -> dict[str, Target]:
        """The outcome, by member."""
        sets: list[dict[UUID, set[int]]] = [{} for _ in self.member_ids]
        for topic, owners in self.owners.items():
            for index, owner in enumerate(owners):
                sets[owner].setdefault(topic, set()).add(index)
        return {
            member_id: {topic: frozenset(indexes) for topic, indexes in owned.items()}
            for member_id, owned in zip(self.member_ids, sets, strict=True)
        }


class _Scale:
    """The readers of a topic by their load, from both ends.

    Whoever asks for the lightest or the heaviest gives it, or takes from it, one partition before asking again.
    The heaps may hold loads of the past; such an entry is put right when it comes up.
    """

    __slots__ = ("_excluded", "_heaviest", "_heavy_level", "_light_level", "_lightest", "_loads", "_order", "_place")

    def __init__(self, loads: list[int], readers: list[int]) -> None:
        self._loads = loads
        self._order = sorted(readers, key=lambda member: (loads[member], member))
        self._place = {member: place for place, member in enumerate(self._order)}
        self._lightest = [(loads[member], place, member) for place, member in enumerate(self._order)]
        self._heaviest = [(-loads[member], -place, member) for place, member in enumerate(self._order)]
        heapify(self._heaviest)
        self._excluded: set[int] = set()
        self._light_level = loads[self._order[0]] - 1
        self._heavy_level = loads[self._order[-1]] + 1

    @property
    def is_even(self) -> bool:
        """Whether those asked for last differ by one at most."""
        return self._heavy_level - self._light_level <= 1

    def lightest(self) -> int:
        """The reader with the least load."""
        while True:
            load, place, member = heappop(self._lightest)
            now = self._loads[member]
            heappush(self._lightest, (now, place, member))
            if load == now:
                self._light_level = now
                return member

    def heaviest(self) -> int | None:
        """The reader with the greatest load that is not excluded."""
        while self._heaviest:
            load, place, member = heappop(self._heaviest)
            if member in self._excluded:
                continue
            now, now_place = -self._loads[member], -self._place[member]
            heappush(self._heaviest, (now, now_place, member))
            if (load, place) == (now, now_place):
                self._heavy_level = -now
                return member
        return None

    def exclude(self, member: int) -> None:
        """Leave out a reader that has nothing to give; the last in the row takes its place."""
        end = len(self._order) - 1 - len(self._excluded)
        place, last = self._place[member], self._order[end]
        self._order[place], self._order[end] = last, member
        self._place[last], self._place[member] = place, end
        self._excluded.add(member)
