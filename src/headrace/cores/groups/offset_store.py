"""How far groups have read, as the log tells it.

An offset that was committed within a transaction waits until the transaction ends. If a plain commit of the same
partition was written after it, the plain one stays, whatever the transaction brings: the log's order decides, not that
of the markers. So each offset has a number that counts the log's records of offsets; only their order matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headrace.model.group_records import OffsetCommitValue

Place = tuple[str, int]
"""A topic and a partition."""


class Committed(Struct, frozen=True, gc=False):
    """An offset, and its place in the order of commits."""

    value: OffsetCommitValue
    order: int


class OffsetStore:
    """Committed and pending offsets of all groups of a shard."""

    __slots__ = ("_committed", "_open", "_order", "_pending")

    def __init__(self) -> None:
        self._committed: dict[str, dict[Place, Committed]] = {}
        self._pending: dict[int, dict[tuple[str, Place], Committed]] = {}
        """By producer id."""
        self._open: dict[str, dict[Place, set[int]]] = {}
        """The same by group: which producers have something pending."""
        self._order = 0

    def of_group(self, group_id: str) -> Mapping[Place, Committed]:
        """A group's committed offsets."""
        return self._committed.get(group_id, {})

    def is_pending(self, group_id: str, place: Place) -> bool:
        """Whether a transaction that has not ended yet has committed an offset of a partition."""
        return place in self._open.get(group_id, {})

    def has_pending(self, group_id: str) -> bool:
        """Whether a transaction that has not ended yet has committed offsets of a group."""
        return group_id in self._open

    def places(self, group_id: str) -> list[Place]:
        """All partitions that a group has an offset of, committed or pending."""
        return list(dict.fromkeys((*self._committed.get(group_id, ()), *self._open.get(group_id, ()))))

    def all_places(self) -> Iterator[tuple[str, Place]]:
        """All groups' partitions."""
        for group_id in dict.fromkeys((*self._committed, *self._open)):
            for place in self.places(group_id):
                yield group_id, place

    def topic_ids(self, group_id: str, place: Place) -> set[Any]:
        """The ids that a partition's topic had when its offsets were committed."""
        committed = self._committed.get(group_id, {}).get(place)
        pending = (self._pending[each][group_id, place] for each in self._open.get(group_id, {}).get(place, ()))
        return {each.value.topic_id for each in (committed, *pending) if each is not None}

    # --- only replay calls these

    def put(self, group_id: str, place: Place, value: OffsetCommitValue) -> None:
        """An offset was committed."""
        self._order = order = self._order + 1
        committed = self._committed.get(group_id)
        if committed is None:
            committed = self._committed[group_id] = {}
        committed[place] = Committed(value, order)

    def put_pending(self, group_id: str, place: Place, value: OffsetCommitValue, producer_id: int) -> None:
        """An offset was committed within a transaction."""
        self._order += 1
        self._pending.setdefault(producer_id, {})[group_id, place] = Committed(value, self._order)
        self._open.setdefault(group_id, {}).setdefault(place, set()).add(producer_id)

    def remove(self, group_id: str, place: Place) -> None:
        """An offset was forgotten, and those that transactions committed before."""
        _discard(self._committed, group_id, place)
        for producer_id in self._open.get(group_id, {}).get(place, ()):
            _discard(self._pending, producer_id, (group_id, place))
        _discard(self._open, group_id, place)

    def end(self, producer_id: int, *, commit: bool) -> None:
        """A producer's transaction has ended."""
        for (group_id, place), pending in self._pending.pop(producer_id, {}).items():
            producers = self._open[group_id][place]
            producers.remove(producer_id)
            if not producers:
                _discard(self._open, group_id, place)
            if commit:
                committed = self._committed.setdefault(group_id, {})
                known = committed.get(place)
                if known is None or known.order < pending.order:
                    committed[place] = pending

    def hard_state(self) -> Any:
        """All of it, in a form that can be compared."""
        return (
            {group_id: dict(places) for group_id, places in self._committed.items()},
            {producer_id: dict(pending) for producer_id, pending in self._pending.items()},
            {(group_id, place): set(ids) for group_id, places in self._open.items() for place, ids in places.items()},
        )


def _discard(nested: dict[Any, dict[Any, Any]], outer: Any, inner: Any) -> None:
    """Remove one entry of a dictionary of dictionaries, which holds no empty ones."""
    entries = nested.get(outer, {})
    entries.pop(inner, None)
    if not entries:
        nested.pop(outer, None)
