"""What is wrong with regular expressions, in the words of Kafka's tool."""

import pytest

from headrace.cli.re2_words import fault_of


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("a.*|b", None),
        ("(", "missing closing )"),
        ("[", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2000}", "invalid repeat count"),
        ("[z-a]", "invalid character class range"),
        ("\\8", "invalid escape sequence"),
        ("(?=x)", "invalid or unsupported Perl syntax"),
    ],
)
def test_faults(regex, expected):
    """Is each fault called as Kafka's tool calls it?"""
    assert expected == fault_of(regex)
