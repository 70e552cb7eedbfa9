"""Times and durations as Kafka's tools read them."""

import pytest

from headrace.cli.java_time import NoTime, parse_date_time, parse_duration_ms


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("1970-01-01T00:00:05.000", 5_000),
        ("1970-01-01T00:00:05.250Z", 5_250),
        ("1970-01-01T00:00:05.5", 5_005),  # Java takes the digits for milliseconds
        ("1970-01-01T02:00:00.000+02:00", 0),
        ("1970-01-01T00:00:00.000-01", 3_600_000),
        ("2026-02-28T23:59:59.999", 1_772_323_199_999),
    ],
)
def test_date_times(text, expected_ms):
    """Is a time in UTC unless it says something else?"""
    assert expected_ms == parse_date_time(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday", "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to"),
        ("1970-01-01T00:00:05", 'java.text.ParseException: Unparseable date: "1970-01-01T00:00:05Z"'),
        ("1970-02-30T00:00:00.000", 'java.text.ParseException: Unparseable date: "1970-02-30T00:00:00.000Z"'),
    ],
)
def test_what_is_no_date_time(text, expected):
    """Is it refused in Java's words?"""
    with pytest.raises(NoTime) as refusal:
        parse_date_time(text)
    assert str(refusal.value).startswith(expected)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("P1D", 86_400_000),
        ("PT1H2M3.5S", 3_723_500),
        ("p1dt1s", 86_401_000),
        ("-PT1S", -1_000),
        ("PT-1S", -1_000),
        ("PT0S", 0),
    ],
)
def test_durations(text, expected_ms):
    """Are days, hours, minutes, seconds and signs understood?"""
    assert expected_ms == parse_duration_ms(text)


@pytest.mark.parametrize("text", ["1d", "P", "PT", "P1DT", "P1H", ""])
def test_what_is_no_duration(text):
    """Is it refused in Java's words?"""
    with pytest.raises(NoTime, match="Text cannot be parsed to a Duration"):
        parse_duration_ms(text)
