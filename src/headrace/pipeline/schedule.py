"""Durations and triggers, as people write them and as Spark wants them."""

from __future__ import annotations

import re
from dataclasses import dataclass

UNITS_MS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}
_SHORT = {"ms": "millisecond", "s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "d": "day"}
_DURATION = re.compile(r"(\d+)\s*([a-z]+)")
_AVAILABLE_NOW = {"available now", "availablenow", "once"}
_AS_FAST = {"as fast as possible", "continuously"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When a query looks for new records."""

    interval_ms: int | None
    """The time between two looks, or None: take what is there now, then end."""

    @property
    def is_available_now(self) -> bool:
        """Whether the query ends by itself."""
        return self.interval_ms is None

    def __str__(self) -> str:
        return "available now" if self.interval_ms is None else in_words(self.interval_ms)


AVAILABLE_NOW = Trigger(interval_ms=None)


def parse_duration(text: str) -> int:
    """`2 minutes`, `90s` or `1 hour 30 minutes` in milliseconds; ValueError if it is none of these."""
    words = text.strip().lower()
    found = list(_DURATION.finditer(words))
    if not found or _DURATION.sub("", words).strip(" ,"):
        raise ValueError(text)
    total = 0
    for number, unit in (match.groups() for match in found):
        name = _SHORT.get(unit, unit.removesuffix("s"))
        if name not in UNITS_MS:
            raise ValueError(text)
        total += int(number) * UNITS_MS[name]
    return total


def parse_trigger(text: str) -> Trigger:
    """`5 seconds`, `every 5 seconds`, `once per minute`, `as fast as possible` or `available now`."""
    words = " ".join(text.strip().lower().split())
    if words in _AVAILABLE_NOW:
        return AVAILABLE_NOW
    if words in _AS_FAST:
        return Trigger(interval_ms=0)
    if words.startswith(("once per ", "once a ", "once an ")):
        return Trigger(interval_ms=parse_duration("1 " + words.split()[-1]))
    return Trigger(interval_ms=parse_duration(words.removeprefix("every ")))


def in_words(duration_ms: int) -> str:
    """A duration as Spark reads it and people too: in the largest unit that fits."""
    if duration_ms == 0:
        return "0 seconds"
    name, size = next((name, size) for name, size in reversed(UNITS_MS.items()) if duration_ms % size == 0)
    count = duration_ms // size
    return f"{count} {name}" + ("" if count == 1 else "s")
