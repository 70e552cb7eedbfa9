"""Positions as clients hold them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.records import TopicPartition
from headrace.gateway.streams.position import (
    PLACES_MAX,
    At,
    BadPosition,
    compact_template,
    json_template,
    parse_position,
)

NAMES = st.text("abcXYZ019._-", min_size=1, max_size=20)
PLACES = st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1))
OFFSETS = st.dictionaries(PLACES, st.integers(0, 2**63 - 1), min_size=1, max_size=30)


@pytest.mark.parametrize("form", [compact_template, json_template])
@given(offsets=OFFSETS)
def test_round_trip(form, offsets):
    """Is every position read back as it was written, in both forms?"""
    position = parse_position(form(offsets) % tuple(offsets.values()))

    assert {place: At(offset) for place, offset in offsets.items()} == position.places
    assert {} == position.topics


def test_what_they_look_like():
    """Are both forms those that the documentation shows?"""
    offsets = {TopicPartition("trucks", 0): 1235, TopicPartition("trucks", 1): 998, TopicPartition("alerts", 0): 3}

    assert "trucks:0=1235,1=998;alerts:0=3" == compact_template(offsets) % (1235, 998, 3)
    assert '[{"topic":"alerts","partition":0,"offset":3}]' == json_template([TopicPartition("alerts", 0)]) % 3


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("trucks:0=@1700000000000", ("trucks", 0), At(timestamp=1_700_000_000_000)),
        ("trucks:0=-1", ("trucks", 0), At()),
        ("trucks", ("trucks", 7), At()),
        ("trucks=@5", ("trucks", 7), At(timestamp=5)),
        ("trucks=@5;alerts:0=1", ("alerts", 0), At(1)),
        ("trucks=@5;alerts:0=1", ("alerts", 1), None),
        ('[{"topic":"trucks","partition":0,"timestamp":5}]', ("trucks", 0), At(timestamp=5)),
        ('[{"topic":"trucks","partition":0,"offset":9,"timestamp":5}]', ("trucks", 0), At(9)),
        ('[{"topic":"trucks","partition":0,"offset":-1}]', ("trucks", 0), At()),
        ('[{"topic":"trucks"}]', ("trucks", 3), At()),
        ("[]", ("trucks", 0), None),
    ],
)
def test_other_entries(text, place, expected):
    """Are times, ends and whole topics understood, and does an offset beat a time?"""
    assert expected == parse_position(text).at(TopicPartition(*place))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "trucks:",
        "trucks:0",
        "trucks:0=",
        "trucks:0=x",
        "trucks:0=1,",
        "trucks:0=1;",
        "trucks:-1=1",
        "trucks:99999999999=1",
        "trucks:0=99999999999999999999",
        "trucks:0=9223372036854775808",
        "trucks:0=1,0=2",
        "trucks;trucks",
        "tru cks:0=1",
        "a" * 250,
        "[1]",
        "[{}]",
        '[{"topic":"t","partition":0,"offset":-2}]',
        '[{"topic":"t","partition":-1,"offset":2}]',
        '[{"topic":"t","partition":0,"timestamp":-2}]',
        '[{"topic":"","partition":0,"offset":1}]',
        '{"topic":"t"}',
        '[{"topic":"t","partition":0,"offset":1}',
        "[" * 100_000,
        "x" * 300_000,
        "t:" + ",".join(f"{n}=1" for n in range(PLACES_MAX + 1)),
    ],
)
def test_no_positions(text):
    """Is whatever is no position refused, and not guessed at?"""
    with pytest.raises(BadPosition):
        parse_position(text)


@given(st.text(max_size=60))
def test_any_text(text):
    """Is any text either a position or refused?"""
    try:
        position = parse_position(text)
    except BadPosition:
        return
    assert all(at.timestamp is not None or at.offset >= -1 for at in position.places.values())
