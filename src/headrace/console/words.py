"""Numbers as people read them."""

from __future__ import annotations

import time

_SIZES = ("B", "KB", "MB", "GB", "TB", "PB")
_STEPS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def count(number: float | None) -> str:
    """Thousands apart: 1 234 567."""
    return "–" if number is None else f"{number:,.0f}".replace(",", "\u202f")


def rate(per_second: float | None) -> str:
    """Records per second."""
    if per_second is None:
        return "–"
    if per_second == 0 or per_second >= 100:
        return f"{count(per_second)}/s"
    return f"{per_second:.1f}/s"


def size(number: float | None) -> str:
    """Bytes: 1.2 MB."""
    if number is None:
        return "–"
    value, unit = float(number), 0
    while value >= 1000 and unit < len(_SIZES) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {_SIZES[unit]}" if unit == 0 or value >= 100 else f"{value:.1f} {_SIZES[unit]}"


def duration(seconds: float | None) -> str:
    """How long: 3 h 20 min."""
    if seconds is None:
        return "–"
    if seconds < 0.05:
        return "0 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    for step, unit, small, small_unit in _STEPS:
        if seconds >= step:
            rest = int(seconds % step // small)
            return f"{int(seconds // step)} {unit} {rest} {small_unit}" if rest else f"{int(seconds // step)} {unit}"
    raise AssertionError(seconds)


def moment(ms: int | None) -> str:
    """A point in time, here: 2026-11-16 15:04:05.123."""
    if ms is None or ms < 0:
        return "–"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000)) + f".{ms % 1000:03d}"


def several(number: int, one: str, many: str = "") -> str:
    """1 topic, 2 topics."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def span(seconds: float) -> str:
    """How far back: the last hour, the last 5 minutes."""
    minutes = round(seconds / 60)
    return {1: "the last minute", 60: "the last hour", 1440: "the last day"}.get(minutes, f"the last {minutes} minutes")
