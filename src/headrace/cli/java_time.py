"""Points in time and durations as Kafka's tools read them, with what they say about those they cannot read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_DATE_TIME = re.compile(
    r"(?P<year>\d+)-(?P<month>\d+)-(?P<day>\d+)T(?P<hour>\d+):(?P<minute>\d+):(?P<second>\d+)\.(?P<fraction>\d+)"
    r"(?:Z|(?P<sign>[+-])(?P<zone_hours>\d\d)(?::(?P<zone_minutes>\d\d))?)"
)
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ("days", "hours", "minutes", "seconds")


class NoTime(ValueError):
    """A text that says no point in time and no duration; the message is Java's."""


def parse_date_time(text: str) -> int:
    """Milliseconds since 1970 of `2026-01-31T12:00:00.000`, in UTC unless an offset follows."""
    _, separator, time = text.partition("T")
    if not separator or not time:
        raise NoTime(
            "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        )
    whole = text if any(sign in time for sign in "+-Z") else text + "Z"
    found = _DATE_TIME.match(whole)
    unreadable = NoTime(f'java.text.ParseException: Unparseable date: "{whole}"')
    if found is None:
        raise unreadable
    zone = timedelta(hours=int(found["zone_hours"] or 0), minutes=int(found["zone_minutes"] or 0))
    try:
        moment = datetime(
            *(int(found[part]) for part in ("year", "month", "day", "hour", "minute", "second")),  # type: ignore[arg-type,misc]
            # Java counts the digits after the point as milliseconds, however many there are.
            microsecond=1000 * int(found["fraction"]),
            tzinfo=timezone(-zone if found["sign"] == "-" else zone),
        )
    except ValueError:
        raise unreadable from None
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def parse_duration_ms(text: str) -> int:
    """Milliseconds of `P1DT2H3M4.5S`."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found[unit] for unit in _UNITS) or (found["time"] or "").upper() == "T":
        raise NoTime("Text cannot be parsed to a Duration")
    amount = timedelta(**{unit: float((found[unit] or "0").replace(",", ".")) for unit in _UNITS})
    milliseconds = amount // timedelta(milliseconds=1)
    return -milliseconds if found["sign"] == "-" else milliseconds
