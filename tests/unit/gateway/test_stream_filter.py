"""The filter language."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.gateway.streams.filter import DEPTH_MAX, parse_filter
from headrace.gateway.streams.tokens import TEXT_MAX, BadFilter, tokenize

FIELDS = {
    "topic": "trucks",
    "partition": 3,
    "offset": 17,
    "timestamp": 1_700_000_000_000,
    "key": "t-1",
    "headers": {"source": "gps", "x-trace": "abc"},
    "value": {
        "speed_kmh": 93.5,
        "driver": None,
        "moving": True,
        "name": 'O"Hara\n',
        "stops": [{"city": "Berlin"}, {"city": "Ulm"}],
        "tags": ["eu", 7],
        "a b": {"c": 1},
        "ä": "ö",
    },
}


def asks(text, **fields):
    """Whether a record passes."""
    return parse_filter(text)(SimpleNamespace(fields=FIELDS | fields))


@pytest.mark.parametrize(
    "text",
    [
        'value.speed_kmh > 90 and key == "t-1"',
        "value.speed_kmh >= 93.5 and value.speed_kmh <= 9.35e1",
        "partition == 3 and offset == 17 and timestamp > 1.6e12 and topic == 'trucks'",
        'headers.source == "gps" and headers["x-trace"] startswith "ab"',
        "exists(value.driver) and not exists(value.passenger) and exists(key)",
        "value.driver == null and value.passenger == null and value.speed_kmh != null",
        "value.moving",
        "value.moving == true and not (value.moving == false)",
        'value.stops[0].city == "Berlin" and value.stops[-1].city endswith "lm"',
        'value.tags contains "eu" and value.tags contains 7 and not value.tags contains "us"',
        'value.name contains "Hara" and value.name == "O\\"Hara\\n"',
        'value contains "speed_kmh"',
        'key in ["t-1", "t-2"] and key not in ["t-3"] and partition in [1, 3]',
        'topic matches "^tr.cks$" and not topic matches "^cks"',
        'value["a b"].c == 1 and value["a b"]["c"] < 2',
        'value.ä == "\\u00f6"',
        "false or null or value.moving",
        "not value.speed_kmh",
        'key != 5 and key != null and value.nothing.at.all != "x"',
        "((((true))))",
    ],
)
def test_true(text):
    """Does each of these let the record pass?"""
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "value.speed_kmh > 100",
        'value.speed_kmh > "90"',
        "key > 5 or key < 5 or key == 5",
        "value.nothing > 0 or value.nothing < 0 or value.nothing == 0",
        "value.moving == 1",
        "value.moving > false",
        "value.speed_kmh",
        "key",
        "null",
        "value.stops[9].city == 'Ulm'",
        "value.stops.city == 'Ulm'",
        "value.speed_kmh.x == 1",
        "partition contains 3",
        "partition matches '3'",
        "partition startswith '3'",
        "key in []",
        "value.driver in [0, false, '']",
        'true and key == "t-2"',
    ],
)
def test_false(text):
    """Does each of these hold the record back, and none of them fail?"""
    assert not asks(text)


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected a field or a value, not the end"),
        ("value.x >", 10, "expected a field or a value"),
        ("value.x > > 3", 11, "expected a field or a value, not '>'"),
        ("value.x == 'open", 12, "a string that does not end"),
        ("value. > 3", 8, "expected the name of a field"),
        ("(key == 'a'", 12, "expected ')', not the end"),
        ("key == 'a')", 11, "expected 'and', 'or' or the end, not ')'"),
        ("key = 'a'", 5, "'=' does not belong here"),
        ("speed > 3", 1, "(perhaps value.speed)"),
        ("key in 'a'", 8, "expected '[', not ''a''"),
        ("key in ['a' 'b']", 13, "expected ','"),
        ("key in [key]", 9, "expected a number, a string, true, false or null"),
        ("key matches 5", 13, "expected a string with a regular expression"),
        ("key matches '('", 13, "this is no regular expression"),
        ("key == '\\q'", 9, "is no escape"),
        ("exists(5)", 8, "expected one of key"),
        ("key == 'a' key", 12, "expected 'and', 'or' or the end"),
        ("key == 01", 8, "does not belong here"),
        ("__import__('os')", 1, "expected one of key"),
        ("value.x == " + "9" * 50, 12, "digits"),
        ("(" * (DEPTH_MAX + 2) + "true", DEPTH_MAX + 2, "levels deep"),
        ("not " * (DEPTH_MAX + 2) + "true", 4 * (DEPTH_MAX + 1) + 1, "levels deep"),
        (" " * (TEXT_MAX + 1), TEXT_MAX + 1, "characters"),
    ],
)
def test_faults_have_a_place(text, column, problem):
    """Does a fault say what is wrong, and in which column?"""
    with pytest.raises(BadFilter) as fault:
        parse_filter(text)

    assert column == fault.value.column
    assert problem in str(fault.value)
    assert str(fault.value).startswith(f"at column {column}: ")


def test_records_of_any_shape():
    """Does no shape of key, value or headers make a filter fail?"""
    question = 'value.a.b > 1 or value[0] == 2 or value contains "x" or key matches "k" or exists(headers.h)'
    for value in (None, 5, "text", True, [], [2], {}, {"a": 1}, {"a": {"b": "c"}}, "\ud800"):
        for key in (None, "k", ""):
            assert asks(question, value=value, key=key) in {True, False}
    assert asks("value[0] == 2", value=[2])
    assert not asks('value matches "x"', value="\ud800")


def test_values_too_deep_to_compare():
    """Does a comparison that would go too deep hold the record back, and not fail?"""
    deep = []
    for _ in range(100_000):
        deep = [deep]

    assert not asks("value.a == value.b", value={"a": deep, "b": [[deep]]})
    while deep:
        # Taken apart by hand, as the interpreter would do it by recursion.
        deep = deep.pop()


SIGNS = st.sampled_from([".", "[", "]", "(", ")", ",", "==", "!=", "<", "<=", ">", ">="])
WORDS = st.sampled_from(["value", "key", "headers", "and", "or", "not", "in", "contains", "matches", "exists", "x"])
LITERALS = st.sampled_from(["true", "null", "1", "-2.5", "'a'", '"b"'])


@given(st.lists(SIGNS | WORDS | LITERALS, max_size=25).map(" ".join) | st.text(max_size=40))
def test_any_text(text):
    """Is any text either a filter that answers yes or no, or refused with a place in it?"""
    try:
        question = parse_filter(text)
    except BadFilter as fault:
        answer, column = True, fault.column
    else:
        answer, column = question(SimpleNamespace(fields=FIELDS)), 1

    assert answer in {True, False}
    assert 1 <= column <= len(text) + 1


def test_tokens():
    """Does every token know where it begins?"""
    assert [("name", 1), ("sign", 4), ("number", 7), ("end", 9)] == [
        (token.kind, token.column) for token in tokenize("key== -1")
    ]
