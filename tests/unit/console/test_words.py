"""Numbers as people read them."""

import pytest

from headrace.console import words


@pytest.mark.parametrize(
    ("say", "value", "text"),
    [
        (words.count, 1234567, "1\u202f234\u202f567"),
        (words.count, None, "–"),
        (words.rate, 0, "0/s"),
        (words.rate, 2.54, "2.5/s"),
        (words.rate, 1234.5, "1\u202f234/s"),
        (words.size, 999, "999 B"),
        (words.size, 1500, "1.5 KB"),
        (words.size, 123_456_789, "123 MB"),
        (words.duration, 0, "0 s"),
        (words.duration, 1.26, "1.3 s"),
        (words.duration, 59, "59 s"),
        (words.duration, 60, "1 min"),
        (words.duration, 3700, "1 h 1 min"),
        (words.duration, 90_000, "1 d 1 h"),
        (words.duration, None, "–"),
        (words.span, 3600, "the last hour"),
        (words.span, 300, "the last 5 minutes"),
    ],
)
def test_words(say, value, text):
    """Is a number said as one would say it?"""
    assert say(value) == text


def test_several():
    """Is one thing one, and are two of them several?"""
    assert [words.several(number, "record") for number in (0, 1, 2)] == ["0 records", "1 record", "2 records"]
