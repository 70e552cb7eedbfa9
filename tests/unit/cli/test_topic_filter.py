"""Topics by regular expression, as on Kafka's command lines."""

import pytest

from headrace.cli.topic_filter import topic_filter
from headrace.model.errors import HeadraceError


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("ord.*", "orders", True),
        ("a,b", "b", True),
        (" a , b ", "b", True),
        ("'a'", "a", True),
        ('"a"', "a", True),
        ("a.b", "axb", True),
    ],
)
def test_the_whole_name_must_match(text, name, expected):
    """Is a comma an "or", are blanks and quotes ignored, and is the whole name compared?"""
    assert topic_filter(text)(name) is expected


def test_what_is_no_expression_is_refused():
    """Is it said in Kafka's words?"""
    with pytest.raises(HeadraceError, match=r"^a\[ is an invalid regex\.$"):
        topic_filter("a[")
