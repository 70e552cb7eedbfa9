"""Points in time as people type them: a date, milliseconds since 1970, or how long ago."""

from __future__ import annotations

import re

from headrace.cli.tool import UsageError

_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"(?:\d+(?:ms|s|m|h|d|w))+")
_STEP = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_ISO_DURATION = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.IGNORECASE)


def point_in_time(text: str, option: str, *, now_ms: int) -> int:
    """Milliseconds since 1970; a date without a zone is a local one. UsageError where it cannot be understood."""
    if text.isascii() and text.isdigit():
        return int(text)
    ago_ms = _duration_ms(text)
    if ago_ms is not None:
        return now_ms - ago_ms
    if text.lower() == "now":
        return now_ms
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OSError):
        raise UsageError(
            f"Cannot parse argument '{text}' of option {option}: give a date such as 2024-11-15T20:00:00, "
            "milliseconds since 1970, or how long ago, such as 10m or 1h30m"
        ) from None


def _duration_ms(text: str) -> int | None:
    bare = text.removeprefix("-")
    if _DURATION.fullmatch(bare):
        return sum(int(count) * _UNIT_MS[unit] for count, unit in _STEP.findall(bare))
    match = _ISO_DURATION.fullmatch(bare)
    if match is None:
        return None
    return sum(int(count or 0) * _UNIT_MS[unit] for count, unit in zip(match.groups(), "dhms", strict=True))
