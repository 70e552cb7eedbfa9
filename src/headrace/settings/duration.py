"""Durations such as P2DT3H4M5.5S (ISO 8601, days to seconds), read as Kafka reads them."""

import re
from typing import Final

_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?[0-9]+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?[0-9]+)H)?(?:(?P<minutes>[-+]?[0-9]+)M)?"
    r"(?:(?P<seconds>[-+]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_UNIT_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
_LENGTH_MAX: Final = 100
"""Longer than any duration whose parts fit 64 bits, twice over."""
_SECONDS_MAX: Final = 2**63 - 1


def duration_ms(text: str) -> int:
    """A duration in milliseconds, which may be negative; ValueError if it is none."""
    match = _DURATION.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if match is None or match["time"] in {"T", "t"} or not any(match[unit] for unit in _UNIT_MS):
        raise ValueError(f"{text} is no duration")
    amount = sum(int(match[unit] or 0) * factor for unit, factor in _UNIT_MS.items())
    fraction_ms = int((match["fraction"] or "").ljust(9, "0")) // 1_000_000
    amount += -fraction_ms if (match["seconds"] or "").startswith("-") else fraction_ms
    if abs(amount) // 1000 > _SECONDS_MAX:
        raise ValueError(f"{text} is too long a duration")
    return -amount if match["sign"] == "-" else amount
