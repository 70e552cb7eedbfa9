"""Which partitions a broker holds, and which have no leader, the wrong one, or are moving.

Kept beside the partitions, so that what one broker's failure changes is found without looking at all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from headrace.cores.metadata import PartitionState

PartitionKey = tuple[UUID, int]
"""A partition: the id of its topic, and its number."""


class PartitionIndex:
    """Keys of partitions by what a controller asks for them by."""

    __slots__ = ("imbalanced", "leaderless", "leaders", "reassigning", "replicas")

    def __init__(self) -> None:
        self.replicas: dict[int, set[PartitionKey]] = {}
        """By broker, what it is a replica of: in sync, eligible or neither, the partition itself tells."""
        self.leaders: dict[int, int] = {}
        """By broker, how many partitions it leads."""
        self.leaderless: set[PartitionKey] = set()
        self.imbalanced: set[PartitionKey] = set()
        """Not led by their preferred replica, which is the first."""
        self.reassigning: set[PartitionKey] = set()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionIndex):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> PartitionIndex:
        """An index of its own with the same partitions."""
        other = PartitionIndex()
        other.replicas = {broker: set(keys) for broker, keys in self.replicas.items()}
        other.leaders = dict(self.leaders)
        other.leaderless = set(self.leaderless)
        other.imbalanced = set(self.imbalanced)
        other.reassigning = set(self.reassigning)
        return other

    def replace(self, key: PartitionKey, old: PartitionState | None, new: PartitionState | None) -> None:
        """Take note that a partition changed, came (no old state) or went (no new state)."""
        before = old.replicas if old is not None else ()
        after = new.replicas if new is not None else ()
        if before is not after:
            self._move(key, before, after)
        led_by = old.leader if old is not None else -1
        leads = new.leader if new is not None else -1
        if led_by != leads:
            self._count(led_by, -1)
            self._count(leads, 1)
        for marked, was, is_now in zip(
            (self.leaderless, self.imbalanced, self.reassigning), _marks(old), _marks(new), strict=True
        ):
            if was != is_now:
                (marked.add if is_now else marked.discard)(key)

    def _move(self, key: PartitionKey, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        for broker in before:
            if broker not in after:
                held = self.replicas[broker]
                held.discard(key)
                if not held:
                    del self.replicas[broker]
        for broker in after:
            if broker not in before:
                self.replicas.setdefault(broker, set()).add(key)

    def _count(self, broker: int, change: int) -> None:
        if broker >= 0:
            count = self.leaders.get(broker, 0) + change
            if count:
                self.leaders[broker] = count
            else:
                del self.leaders[broker]


def _marks(state: PartitionState | None) -> tuple[bool, bool, bool]:
    """Whether a partition is without a leader, not led by its preferred replica, and moving."""
    if state is None:
        return False, False, False
    return state.leader < 0, state.leader != state.replicas[0], state.is_reassigning
