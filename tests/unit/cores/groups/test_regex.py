"""Regular expressions in RE2's dialect."""

import pytest

from headrace.cores.groups.regex import PATTERN_LENGTH_MAX, check_regex, matching_topics
from headrace.model.errors import ErrorCode, KafkaError

TOPICS = ("orders", "orders-eu", "bills", "Ünïcode")


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("order", set()),
        ("(?i)BILLS", {"bills"}),
        (r"\w+", {"orders", "bills"}),
        (".*", set(TOPICS)),
        ("[[:alpha:]]+-eu", {"orders-eu"}),
    ],
)
def test_whole_names_are_matched(regex, expected):
    """Does an expression match whole names only, as RE2 does?"""
    check_regex(regex)

    assert expected == matching_topics(regex, TOPICS)


@pytest.mark.parametrize(
    "regex",
    ["(", "[a", "a**", "(?<=a)b", r"(a)\1", "x{1001}", "(?:(?:x{100}){10}){10}y{999}", "a" * (PATTERN_LENGTH_MAX + 1)],
)
def test_bad_expressions_are_refused(regex):
    """Is refused what RE2 cannot read, does not know, or thinks too large, with a sentence about it?"""
    with pytest.raises(KafkaError) as refused:
        check_regex(regex)

    assert ErrorCode.INVALID_REGULAR_EXPRESSION == refused.value.code
    assert "is not a valid regular expression" in refused.value.message


def test_expression_that_cannot_be_read_matches_nothing():
    """Does an expression that got into the log elsewhere but cannot be read here match nothing?"""
    assert frozenset() == matching_topics("(", TOPICS)


def test_hard_expressions_are_quick():
    """Is an expression that backtracking engines never finish with answered?"""
    assert frozenset() == matching_topics("(a|a)*(a|a)*(a|a)*b", ["a" * 249])
