"""One truck: drives a corridor to and fro, rests at places, and now and then does what it should not.

A truck is a small state machine that is asked where it is every few seconds. Its luck comes from the random numbers it
was given and its time from whoever asks, so the same seed and the same questions give the same drive.
"""

from bisect import bisect_right
from enum import Enum, auto
from itertools import accumulate, pairwise
from math import pi, sin
from random import Random
from typing import NamedTuple

from geography import bearing, beside, corridor_way, distance_km

_CRUISE_KMH = (68.0, 84.0)
_HURRY_KMH = (98.0, 124.0)
_JITTER_KMH = 2.5
_REST_CHANCE = 0.35
_REST_S = (60, 300)
_STRAY_KM = (25.0, 45.0)


class Trait(Enum):
    """How a truck is known to misbehave."""

    STEADY = auto()
    SPEEDS = auto()
    STALLS = auto()
    STRAYS = auto()
    FALLS_SILENT = auto()
    GARBLES = auto()
    STUTTERS = auto()


class Habit(NamedTuple):
    """How often a trait shows, and for how long each time."""

    reports_between: int
    shortest_s: int
    longest_s: int


HABITS = {
    Trait.SPEEDS: Habit(20, 60, 400),
    Trait.STALLS: Habit(30, 720, 1500),
    Trait.STRAYS: Habit(25, 1800, 3600),
    Trait.FALLS_SILENT: Habit(25, 180, 900),
    Trait.GARBLES: Habit(12, 0, 0),
    Trait.STUTTERS: Habit(6, 0, 0),
}

_CYCLE = 25
_NUMBERS = {
    3: Trait.SPEEDS,
    6: Trait.STALLS,
    9: Trait.GARBLES,
    12: Trait.STRAYS,
    15: Trait.FALLS_SILENT,
    18: Trait.STUTTERS,
    21: Trait.SPEEDS,
}


def trait_of(number: int) -> Trait:
    """The trait of a truck by its number: the same mix in every fleet, and every kind in a fleet of 25."""
    return _NUMBERS.get(number % _CYCLE, Trait.STEADY)


class Sighting(NamedTuple):
    """Where a truck is and what its device does with that: `times` is 2 where it stutters."""

    lat: float
    lon: float
    speed_kmh: float
    heading: float
    garbled: bool
    times: int


class Way:
    """A corridor as a truck sees it: how far along each of its points is, and which way it runs there."""

    __slots__ = ("at_km", "headings", "points", "stops_km")

    def __init__(self, corridor: str) -> None:
        points, stops = corridor_way(corridor)
        self.points = points
        self.at_km = [0.0, *accumulate(distance_km(here, there) for here, there in pairwise(points))]
        self.headings = [bearing(here, there) for here, there in pairwise(points)]
        self.stops_km = [self.at_km[stop] for stop in stops]

    def place(self, km: float) -> tuple[float, float, float]:
        """Latitude and longitude so far along the way, and the direction the way has there."""
        at_km = self.at_km
        leg = min(max(bisect_right(at_km, km) - 1, 0), len(at_km) - 2)
        share = (km - at_km[leg]) / (at_km[leg + 1] - at_km[leg])
        (lat_a, lon_a), (lat_b, lon_b) = self.points[leg], self.points[leg + 1]
        return lat_a + (lat_b - lat_a) * share, lon_a + (lon_b - lon_a) * share, self.headings[leg]

    def stop_between(self, one_km: float, other_km: float) -> float | None:
        """The place that is passed when a truck goes from one kilometre to another."""
        before, behind = bisect_right(self.stops_km, one_km), bisect_right(self.stops_km, other_km)
        return None if before == behind else self.stops_km[min(before, behind)]


class Truck:
    """A truck on its way."""

    __slots__ = (
        "_chance", "_cruise_kmh", "_direction", "_episodes", "_glitches", "_km", "_since_ms", "_stray_km", "_until_ms",
        "_way", "_what", "seq", "trait", "truck_id",
    )  # fmt: skip

    def __init__(self, truck_id: str, *, trait: Trait, way: Way, chance: Random) -> None:
        self.truck_id = truck_id
        self.trait = trait
        self.seq = 0
        """The number of the next report."""
        habit = HABITS.get(trait)
        self._episodes = habit if habit and habit.longest_s else None
        self._glitches = habit if habit and not habit.longest_s else None
        self._way = way
        self._chance = chance
        self._cruise_kmh = chance.uniform(*_CRUISE_KMH)
        self._km = chance.uniform(0, way.at_km[-1])
        self._direction = chance.choice((1, -1))
        self._what: Trait | None = None
        """What it is at from `_since_ms` to `_until_ms`; None is a rest. Where there is no end, it just drives."""
        self._since_ms = self._until_ms = 0
        self._stray_km = 0.0

    def sighted(self, now_ms: int, since_ms: int) -> Sighting | None:
        """Drive on from the time of the last question; what the device reports now, or None if it says nothing."""
        if self._until_ms and now_ms >= self._until_ms:
            self._what, self._since_ms, self._until_ms = None, 0, 0
        if self._episodes is not None and not self._until_ms:
            self._misbehave(self._episodes, now_ms)
        what = self._what
        speed = 0.0
        if not (self._until_ms and (what is None or what is Trait.STALLS)):
            if what is Trait.SPEEDS:
                speed = self._chance.uniform(*_HURRY_KMH)
            else:
                speed = self._cruise_kmh + _JITTER_KMH * (2 * self._chance.random() - 1)
            self._drive(speed * (now_ms - since_ms) / 3_600_000, now_ms)
        if what is Trait.FALLS_SILENT:
            return None
        return self._report(speed, now_ms)

    def _misbehave(self, habit: Habit, now_ms: int) -> None:
        if self._chance.random() * habit.reports_between < 1:
            lasts_ms = self._chance.randint(habit.shortest_s, habit.longest_s) * 1000
            self._what, self._since_ms, self._until_ms = self.trait, now_ms, now_ms + lasts_ms
            self._stray_km = self._chance.uniform(*_STRAY_KM)

    def _drive(self, far_km: float, now_ms: int) -> None:
        """Go so far along the corridor; turn at its ends, and perhaps rest at a place."""
        there = self._km + self._direction * far_km
        end = self._way.at_km[-1]
        if not 0 < there < end:
            there = min(max(there, 0.0), end)
            self._direction = -self._direction
        stop = self._way.stop_between(self._km, there)
        self._km = there
        if stop is not None and not self._until_ms and self._chance.random() < _REST_CHANCE:
            self._km = stop
            self._since_ms, self._until_ms = now_ms, now_ms + self._chance.randint(*_REST_S) * 1000

    def _report(self, speed: float, now_ms: int) -> Sighting:
        lat, lon, heading = self._way.place(self._km)
        if self._direction < 0:
            heading = (heading + 180) % 360
        if self._what is Trait.STRAYS:
            aside = self._stray_km * sin(pi * (now_ms - self._since_ms) / (self._until_ms - self._since_ms))
            lat, lon = beside((lat, lon), heading + 90, aside)
        if self._glitches is None or self._chance.random() * self._glitches.reports_between >= 1:
            return Sighting(lat, lon, speed, heading, False, 1)
        garbles = self.trait is Trait.GARBLES
        return Sighting(lat, lon, speed, heading, garbles, 1 if garbles else 2)
