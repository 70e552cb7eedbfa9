"""Durations; what is one and how long it is was asked of java.time.Duration."""

import pytest

from headrace.settings.duration import duration_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1S", 1000),
        ("PT0.5S", 500),
        ("P1DT2H3M4S", 93_784_000),
        ("P2D", 172_800_000),
        ("pt1h", 3_600_000),
        ("PT1.S", 1000),
        ("PT1,25S", 1250),
        ("PT-1H61M", 60_000),
        ("PT-1.5S", -1500),
        ("PT-0.5S", -500),
        ("-PT-1S", 1000),
        ("+P+1D", 86_400_000),
        ("PT9223372036854775807S", 9_223_372_036_854_775_807_000),
    ],
)
def test_durations(text: str, expected: int) -> None:
    """Is an ISO 8601 duration understood as Kafka does?"""
    assert duration_ms(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "1H",
        "P1Y",
        "P1W",
        "PT1.5H",
        "PT.5S",
        "PT1.0000000001S",
        " PT1S",
        "PT\u0661S",
        "PT9223372036854775808S",
        "P99999999999999999D",
        "PT" + "1" * 1_000_000 + "S",
    ],
)
def test_no_durations(text: str) -> None:
    """Is what is no duration refused, however long it is?"""
    with pytest.raises(ValueError, match="duration"):
        duration_ms(text)
