"""Points in time as people write them in `since` and `until`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

EARLIEST: Final = -2
LATEST: Final = -1
_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST, "now": LATEST}
_AGO: Final = re.compile(r"-([0-9]{1,9})(ms|s|m|h|d|w)", re.ASCII)
_UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LENGTH_MAX: Final = 64
_MS_MAX: Final = 2**53
"""What a program in a browser can still count in."""


class NotAMoment(ValueError):
    """A text that is no point in time."""


def parse_moment(text: str, now_ms: int) -> int:
    """Milliseconds since 1970, or EARLIEST or LATEST; NotAMoment if it is none.

    Taken are: milliseconds, a date or a date with a time (UTC unless it says otherwise), `-5m` for five minutes ago,
    `earliest` and `latest`.
    """
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _LENGTH_MAX:
        if ago := _AGO.fullmatch(text):
            return max(now_ms - int(ago[1]) * _UNIT_MS[ago[2]], 0)
        if text.isascii() and text.isdigit() and int(text) <= _MS_MAX:
            return int(text)
        if (moment := _date(text)) is not None:
            return moment
    raise NotAMoment(
        f"'{text[:_LENGTH_MAX]}' is no point in time: give milliseconds, a date such as 2026-11-16T08:30:00Z, "
        "-5m for five minutes ago, earliest or latest"
    )


def _date(text: str) -> int | None:
    try:
        # In a query + is a blank: 08:30:00+01:00 arrives with one.
        found = datetime.fromisoformat(text.replace(" 0", "+0", 1) if "T" in text else text)
    except ValueError:
        return None
    moment = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    milliseconds = int(moment.timestamp() * 1000)
    return milliseconds if 0 <= milliseconds <= _MS_MAX else None
