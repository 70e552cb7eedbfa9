"""Points in time as people type them."""

from datetime import UTC, datetime

import pytest

from headrace.cli.points_in_time import point_in_time
from headrace.cli.tool import UsageError

NOW = 1_731_700_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1731600000000", 1_731_600_000_000),
        ("10m", NOW - 600_000),
        ("-10m", NOW - 600_000),
        ("1h30m", NOW - 5_400_000),
        ("2d", NOW - 172_800_000),
        ("500ms", NOW - 500),
        ("PT1H", NOW - 3_600_000),
        ("P1DT2M", NOW - 86_520_000),
        ("now", NOW),
        ("2024-11-15T19:00:00Z", 1_731_697_200_000),
        ("2024-11-15T19:00:00.5+01:00", 1_731_693_600_500),
        ("2024-11-15", round(datetime(2024, 11, 15).astimezone().timestamp() * 1000)),
    ],
)
def test_times(text, expected):
    """Are dates, milliseconds and durations understood?"""
    assert point_in_time(text, "since", now_ms=NOW) == expected


def test_a_date_without_a_zone_is_local():
    """Is a date without a zone one of where the person is?"""
    moment = datetime(2024, 6, 1, 12, tzinfo=UTC).astimezone()

    assert point_in_time(moment.strftime("%Y-%m-%dT%H:%M:%S"), "since", now_ms=NOW) == moment.timestamp() * 1000


@pytest.mark.parametrize("text", ["", "soon", "10x", "P", "2024-13-01", "-5", "²"])
def test_mistakes(text):
    """Is what cannot be understood refused with examples of what can?"""
    with pytest.raises(UsageError, match="of option until: give a date"):
        point_in_time(text, "until", now_ms=NOW)
