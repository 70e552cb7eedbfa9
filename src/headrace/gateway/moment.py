"""Points in time as JSON writes them, and as Kafka counts them: milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_NO_TIME = -1


def milliseconds(moment: datetime) -> int:
    """A point in time as Kafka counts it; negative before 1970."""
    return (moment - _EPOCH) // _MS


def moment_of(milliseconds_: int) -> datetime | None:
    """A point in time as JSON writes it; None if there is none, or none a calendar has."""
    if milliseconds_ == _NO_TIME:
        return None
    try:
        return _EPOCH + milliseconds_ * _MS
    except OverflowError:
        return None
