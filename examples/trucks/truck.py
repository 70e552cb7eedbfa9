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

from geography import Point, bearing, beside, corridor_way, distance_km

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


class Leg:
    """A straight piece of a corridor."""

    __slots__ = ("across", "back", "begin_km", "end_km", "km", "lat", "lon", "onward", "up")

    def __init__(self, here: Point, there: Point, begin_km: float, end_km: float) -> None:
        (self.lat, self.lon), (lat, lon) = here, there
        self.up, self.across = lat - self.lat, lon - self.lon
        self.begin_km, self.end_km = begin_km, end_km
        self.km = end_km - begin_km
        self.onward = bearing(here, there)
        """The direction of who drives it from its begin to its end."""
        self.back = (self.onward + 180) % 360


class Way:
    """A corridor as a truck sees it: how far along each of its legs is, and where one may rest."""

    __slots__ = ("_at_km", "_legs", "_stops_km", "end_km")

    def __init__(self, corridor: str) -> None:
        points, stops = corridor_way(corridor)
        self._at_km = [0.0, *accumulate(distance_km(here, there) for here, there in pairwise(points))]
        self._legs = [Leg(*ends, *kms) for ends, kms in zip(pairwise(points), pairwise(self._at_km), strict=True)]
        self._stops_km = [self._at_km[stop] for stop in stops]
        self.end_km = self._at_km[-1]

    def leg(self, km: float) -> Leg:
        """The leg that one is on so far along the way; at a point between two it is the farther one."""
        return self._legs[min(max(bisect_right(self._at_km, km) - 1, 0), len(self._legs) - 1)]

    def stop_between(self, one_km: float, other_km: float) -> float | None:
        """The place that is passed when a truck goes from one kilometre to another."""
        before, behind = bisect_right(self._stops_km, one_km), bisect_right(self._stops_km, other_km)
        return None if before == behind else self._stops_km[min(before, behind)]


class Truck:
    """A truck on its way; where it is and how fast, it says itself, and `is_garbled` whether its device can."""

    __slots__ = (
        "_chance", "_cruise_kmh", "_direction", "_episodes", "_glitches", "_km", "_leg", "_since_ms", "_stray_km",
        "_until_ms", "_way", "_what", "heading", "is_garbled", "key", "lat", "lon", "seq", "speed_kmh", "trait",
        "truck_id",
    )  # fmt: skip

    def __init__(self, truck_id: str, *, trait: Trait, way: Way, chance: Random) -> None:
        self.truck_id = truck_id
        self.key = truck_id.encode()
        self.trait = trait
        self.seq = 0
        """The number of the next report."""
        self.lat = self.lon = self.speed_kmh = self.heading = 0.0
        self.is_garbled = False
        habit = HABITS.get(trait)
        self._episodes = habit if habit and habit.longest_s else None
        self._glitches = habit if habit and not habit.longest_s else None
        self._way = way
        self._chance = chance
        self._cruise_kmh = chance.uniform(*_CRUISE_KMH)
        self._km = chance.uniform(0, way.end_km)
        self._leg = way.leg(self._km)
        self._direction = chance.choice((1, -1))
        self._what: Trait | None = None
        """What it is at from `_since_ms` to `_until_ms`; None is a rest. Where there is no end, it just drives."""
        self._since_ms = self._until_ms = 0
        self._stray_km = 0.0

    def drive_on(self, now_ms: int, since_ms: int) -> int:
        """Drive on from the time of the last question; how often the device reports that: 2 where it stutters."""
        if self._until_ms and now_ms >= self._until_ms:
            self._what, self._since_ms, self._until_ms = None, 0, 0
        if self._episodes is not None and not self._until_ms:
            self._misbehave(self._episodes, now_ms)
        what = self._what
        if self._until_ms and (what is None or what is Trait.STALLS):
            self.speed_kmh = 0.0
        else:
            if what is Trait.SPEEDS:
                speed = self._chance.uniform(*_HURRY_KMH)
            else:
                speed = self._cruise_kmh + _JITTER_KMH * (2 * self._chance.random() - 1)
            self.speed_kmh = speed
            there = self._km + self._direction * (speed * (now_ms - since_ms) / 3_600_000)
            leg = self._leg
            # Nearly always it stays on its leg, at whose ends alone something can happen.
            if leg.begin_km < there < leg.end_km:
                self._km = there
            else:
                self._pass_on(there, now_ms)
        if what is Trait.FALLS_SILENT:
            return 0
        self._look_around(now_ms)
        return 1 if self._glitches is None else self._glitch(self._glitches)

    def _misbehave(self, habit: Habit, now_ms: int) -> None:
        if self._chance.random() * habit.reports_between < 1:
            lasts_ms = self._chance.randint(habit.shortest_s, habit.longest_s) * 1000
            self._what, self._since_ms, self._until_ms = self.trait, now_ms, now_ms + lasts_ms
            self._stray_km = self._chance.uniform(*_STRAY_KM)

    def _pass_on(self, there: float, now_ms: int) -> None:
        """Go on to another leg of the corridor; turn at its ends, and perhaps rest at a place."""
        end = self._way.end_km
        if not 0 < there < end:
            there = min(max(there, 0.0), end)
            self._direction = -self._direction
        stop = self._way.stop_between(self._km, there)
        self._km = there
        if stop is not None and not self._until_ms and self._chance.random() < _REST_CHANCE:
            self._km = stop
            self._since_ms, self._until_ms = now_ms, now_ms + self._chance.randint(*_REST_S) * 1000
        self._leg = self._way.leg(self._km)

    def _look_around(self, now_ms: int) -> None:
        leg = self._leg
        share = (self._km - leg.begin_km) / leg.km
        self.lat, self.lon = leg.lat + leg.up * share, leg.lon + leg.across * share
        self.heading = leg.onward if self._direction > 0 else leg.back
        if self._what is Trait.STRAYS:
            aside = self._stray_km * sin(pi * (now_ms - self._since_ms) / (self._until_ms - self._since_ms))
            self.lat, self.lon = beside((self.lat, self.lon), self.heading + 90, aside)

    def _glitch(self, habit: Habit) -> int:
        """Have the device do now and then what it is known for; how often it reports."""
        self.is_garbled = False
        if self._chance.random() * habit.reports_between >= 1:
            return 1
        self.is_garbled = self.trait is Trait.GARBLES
        return 1 if self.is_garbled else 2
