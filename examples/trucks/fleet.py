"""All trucks and their clock: which records are due at a moment of the fleet's time. No sockets, no sleeping.

Trucks take turns: in every period of `every_ms` each reports once, at its own moment. So the whole history of a fleet
is a function of its seed and its size, whoever replays it and however fast.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from places import CORRIDORS
from truck import Truck, Way, trait_of

EVERY_MS = 20_000
"""How often a truck reports."""

_REPORT = b'{"truck_id":"%b","lat":%.5f,"lon":%.5f,"speed_kmh":%.1f,"heading":%.0f,"ts":"%b.%03dZ","seq":%d}'


class Outgoing(NamedTuple):
    """A record to send: the key is the truck's id."""

    key: bytes
    seq: int
    value: bytes | None
    is_garbled: bool

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """The number of a report that cannot be read from it; all others do without, as a header costs as much to send
        as the rest of a record.
        """
        return [("seq", b"%d" % self.seq)] if self.is_garbled else []

    @property
    def truck_id(self) -> str:
        """The truck."""
        return self.key.decode()


class Fleet:
    """Trucks, and whose turn it is."""

    def __init__(self, count: int, *, seed: int, start_ms: int, every_ms: int = EVERY_MS) -> None:
        assert count > 0, "a fleet has trucks"
        ways = [Way(name) for name in CORRIDORS]
        self._trucks = [
            Truck(
                f"T-{number:04}",
                trait=trait_of(number),
                way=ways[number % len(ways)],
                chance=Random(f"{seed}/{number}"),  # noqa: S311 - not a secret
            )
            for number in range(count)
        ]
        self._chance = Random(f"{seed}/garbage")  # noqa: S311 - not a secret
        self._start_ms = start_ms
        self._every_ms = every_ms
        self._turn = 0
        self._written = (-1, b"")

    def until(self, now_ms: int) -> Iterator[Outgoing]:
        """What the trucks send up to a moment, in the order of their reports; a repeated record comes repeatedly."""
        trucks, start_ms, every_ms = self._trucks, self._start_ms, self._every_ms
        count = len(trucks)
        while (due_ms := start_ms + self._turn * every_ms // count) <= now_ms:
            truck = trucks[self._turn % count]
            self._turn += 1
            times = truck.drive_on(due_ms, due_ms - every_ms)
            if times:
                record = Outgoing(truck.key, truck.seq, self._value(truck, due_ms), truck.is_garbled)
                truck.seq += 1
                yield record
                if times > 1:
                    yield record

    def ledger(self) -> dict[str, int]:
        """How many reports each truck has made: its numbers run from 0 to one less."""
        return {truck.truck_id: truck.seq for truck in self._trucks}

    def _value(self, truck: Truck, now_ms: int) -> bytes | None:
        second, ms = divmod(now_ms, 1000)
        # Many reports share a second, so its text is kept.
        if second != self._written[0]:
            self._written = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode())
        value = _REPORT % (
            truck.key, truck.lat, truck.lon, truck.speed_kmh, truck.heading, self._written[1], ms, truck.seq,
        )  # fmt: skip
        return self._chance.choice(GARBAGE)(value.decode()) if truck.is_garbled else value


GARBAGE: tuple[Callable[[str], bytes | None], ...] = (
    lambda text: text[: len(text) // 2].encode(),  # the connection broke in the middle
    lambda _: b"\x00\xff\x17GPS\x02",  # another protocol
    lambda text: text.replace('"lat":', '"lat":1').encode(),  # a place that is nowhere on earth
    lambda text: text.replace('"speed_kmh":', '"speed_kmh":"fast","was":').encode(),
    lambda text: (
        text[: text.index('"ts":')].encode() + b'"ts":"1970-01-01T00:00:00Z","seq":0}'
    ),  # a clock that lost power
    lambda _: b"{}",
    lambda _: None,
)
"""What broken devices make of a report; none of it may be mistaken for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A stretch of the run in which the fleet sends at a given rate."""

    at_s: float
    lasts_s: float
    records_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetClock:
    """The fleet's time as a function of the seconds since its start: faster than ours, and in a burst much faster."""

    start_ms: int
    speedup: float
    count: int
    every_ms: int = EVERY_MS
    burst: Burst | None = None

    def at(self, elapsed_s: float) -> int:
        """The fleet's time after so many seconds."""
        fast_s = 0.0
        faster = 0.0
        if self.burst is not None:
            fast_s = min(max(elapsed_s - self.burst.at_s, 0.0), self.burst.lasts_s)
            faster = self.burst.records_per_s * self.every_ms / (1000 * self.count)
        return self.start_ms + round(1000 * ((elapsed_s - fast_s) * self.speedup + fast_s * faster))
