"""Objects that follow one another."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.gateway.json_splitter import JsonSplitter, NoObject, TooLarge

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=5)
BLANKS = st.sampled_from(["", " ", "\n", "\r\n\t"])


def split(splitter, *chunks):
    """Everything found in some chunks."""
    return [one for chunk in chunks for one in splitter.feed(chunk)]


@given(OBJECTS, BLANKS, st.integers(1, 9), st.booleans())
def test_however_it_is_cut(objects, blank, size, is_ascii):
    """Are the same objects found however the bytes are cut, with and without blanks between them?"""
    body = blank.join(json.dumps(one, ensure_ascii=is_ascii) for one in objects).encode()
    splitter = JsonSplitter(1_000_000)
    found = split(splitter, *(body[at : at + size] for at in range(0, len(body), size)))
    splitter.end()

    assert [json.loads(one) for one in found] == objects


def test_one_that_is_too_large():
    """Is an object over the limit passed over, and the next one found?"""
    splitter = JsonSplitter(10)

    assert split(splitter, b'{"a":"', b"x" * 100, b'\\"}', b'"}{"b":1}') == [TooLarge(111), b'{"b":1}']


@pytest.mark.parametrize("body", [b"[1]", b"1", b'{"a":1},{"b":2}', b"}", b'{"a":1}x', b'"text"', b"\xff"])
def test_what_is_no_object(body):
    """Is anything between the objects, or instead of them, refused?"""
    with pytest.raises(NoObject):
        split(JsonSplitter(100), body)


@pytest.mark.parametrize("body", [b"{", b'{"a":"}', b'{"a":"\\"}', b"{[}"])
def test_no_end(body):
    """Is it noticed that the last object does not end?"""
    splitter = JsonSplitter(100)

    assert split(splitter, body) == []
    with pytest.raises(NoObject, match="does not end"):
        splitter.end()
