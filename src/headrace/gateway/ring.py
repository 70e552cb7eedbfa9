"""Numbers over time in bounded memory: one row of times, and a track beside it for whatever is followed.

Memory is `capacity` numbers for each track. What is no longer told is forgotten with the next moment.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Ring(Generic[Key]):
    """The newest `capacity` moments of at most `tracks_max` things."""

    def __init__(self, capacity: int, tracks_max: int) -> None:
        assert capacity > 1
        self._capacity = capacity
        self._tracks_max = tracks_max
        self._times = array("d", [math.nan]) * capacity
        self._tracks: dict[Key, array[float]] = {}
        self._next = 0

    def add(self, at: float, values: Mapping[Key, float]) -> None:
        """One moment: everything that is there now, with its number, or NaN where that is not known."""
        slot = self._next % self._capacity
        self._next += 1
        self._times[slot] = at
        for gone in [key for key in self._tracks if key not in values]:
            del self._tracks[gone]
        for key, value in values.items():
            track = self._tracks.get(key)
            if track is None:
                if len(self._tracks) >= self._tracks_max:
                    continue
                track = self._tracks[key] = array("d", [math.nan]) * self._capacity
            track[slot] = value

    @property
    def latest(self) -> float | None:
        """The newest moment."""
        return self._times[(self._next - 1) % self._capacity] if self._next else None

    def series(self, key: Key) -> list[tuple[float, float]]:
        """Moments and numbers, oldest first; without those at which it was not there."""
        track = self._tracks.get(key)
        if track is None:
            return []
        pairs = ((self._times[slot], track[slot]) for slot in self._slots())
        return [(at, value) for at, value in pairs if not math.isnan(value)]

    def last(self, key: Key) -> float | None:
        """The newest number."""
        track = self._tracks.get(key)
        if track is None or not self._next:
            return None
        value = track[(self._next - 1) % self._capacity]
        return None if math.isnan(value) else value

    def when_reached(self, key: Key, number: float) -> float | None:
        """When something that only grows passed `number`, between two moments by rule of three.

        None if it has not, or did before the first moment that is kept.
        """
        series = self.series(key)
        low, high = 0, len(series)
        while low < high:
            middle = (low + high) // 2
            if series[middle][1] > number:
                high = middle
            else:
                low = middle + 1
        if low in {0, len(series)}:
            return None
        (before, smaller), (after, larger) = series[low - 1], series[low]
        return before + (after - before) * (number - smaller) / (larger - smaller)

    def _slots(self) -> range | list[int]:
        if self._next <= self._capacity:
            return range(self._next)
        first = self._next % self._capacity
        return [*range(first, self._capacity), *range(first)]


def rates(series: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Growth per second between each two moments; a number that fell, of a thing made anew, grew by itself."""
    return [
        (after, max(larger - smaller if larger >= smaller else larger, 0.0) / (after - before))
        for (before, smaller), (after, larger) in itertools.pairwise(series)
        if after > before
    ]
