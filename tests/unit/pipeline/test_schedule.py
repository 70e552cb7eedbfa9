"""Durations and triggers in words."""

import pytest

from headrace.pipeline.schedule import AVAILABLE_NOW, in_words, parse_duration, parse_trigger


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (120_000, "2 minutes"),
        (90_000, "90s"),
        (5_400_000, "1 hour 30 minutes"),
        (500, "500 milliseconds"),
        (86_400_000, "1 DAY"),
        (0, "0 seconds"),
    ],
)
def test_durations(expected, text):
    """Is a duration understood as people write it?"""
    assert expected == parse_duration(text)


@pytest.mark.parametrize("text", ["", "soon", "5", "minutes", "5 fortnights", "5 minutes or so", "-1 second"])
def test_what_is_no_duration(text):
    """Is everything else refused?"""
    for parse in (parse_duration, parse_trigger):
        with pytest.raises(ValueError, match=rf"^{text}$"):
            parse(text)


@pytest.mark.parametrize(
    ("expected_ms", "text"),
    [
        (5000, "5 seconds"),
        (5000, "every 5 seconds"),
        (60_000, "once per minute"),
        (3_600_000, "once an hour"),
        (0, "as fast as possible"),
        (None, "available now"),
        (None, "Available  Now"),
    ],
)
def test_triggers(expected_ms, text):
    """Is a trigger understood in each of its forms?"""
    assert expected_ms == parse_trigger(text).interval_ms


def test_words_are_read_back():
    """Is what we write for Spark the same duration when it is read again?"""
    for duration_ms in (0, 1, 999, 1000, 61_000, 120_000, 3_600_000, 86_400_000):
        assert duration_ms == parse_duration(in_words(duration_ms))
    assert (str(AVAILABLE_NOW), str(parse_trigger("60 seconds"))) == ("available now", "1 minute")
