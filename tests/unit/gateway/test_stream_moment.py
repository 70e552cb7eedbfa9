"""Points in time in a stream's query."""

import pytest

from headrace.gateway.streams.moment import EARLIEST, LATEST, NotAMoment, parse_moment

NOW = 1_794_845_242_110


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("now", LATEST),
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        ("-5m", NOW - 300_000),
        ("-250ms", NOW - 250),
        ("-1w", NOW - 7 * 86_400_000),
        ("-999999999w", 0),
        ("1970-01-02", 86_400_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14T23:13:20 01:00", 1_700_000_000_000),
        ("2023-11-14T22:13:20.250Z", 1_700_000_000_250),
    ],
)
def test_moments(text, expected):
    """Is each way to write a point in time understood?"""
    assert expected == parse_moment(text, NOW)


@pytest.mark.parametrize("text", ["", "yesterday", "5m", "-5y", "1.5", "٣", "9" * 400, "1969-12-31", "2023-13-01"])
def test_no_moments(text):
    """Is anything else refused, with what may stand there?"""
    with pytest.raises(NotAMoment, match="earliest or latest"):
        parse_moment(text, NOW)
