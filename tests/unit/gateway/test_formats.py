"""Keys and values as JSON shows them, without a gateway."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.gateway.formats import BY_MEDIA, FORMATS, Misfit

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=5,
)


@given(VALUES.filter(lambda value: value is not None))
def test_json_there_and_back(value):
    """Is a value the same after it was stored and shown?"""
    form = FORMATS["json"]
    shown = form.from_bytes(form.to_bytes(msgspec.json.encode(value)))

    assert msgspec.json.decode(shown) == msgspec.json.decode(msgspec.json.encode(value))


@given(st.binary())
def test_binary_there_and_back(stored):
    """Are any bytes the same after they were shown and stored?"""
    form = FORMATS["binary"]

    assert form.to_bytes(msgspec.json.encode(form.from_bytes(stored))) == stored


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_there_and_back(text):
    """Is any text the same after it was stored and shown?"""
    form = FORMATS["text"]

    assert form.from_bytes(form.to_bytes(msgspec.json.encode(text))) == text


def test_numbers_are_not_rounded():
    """Is what JSON can write and no machine number can hold stored as it was written?"""
    written = b'{ "a" : 1.10, "b": 123456789012345678901234567890, "c": 1e999 }'
    stored = FORMATS["json"].to_bytes(written)

    assert stored == b'{"a":1.10,"b":123456789012345678901234567890,"c":1e999}'
    assert bytes(FORMATS["json"].from_bytes(stored)) == stored


@pytest.mark.parametrize(
    ("name", "raw"),
    [("json", b'"\xff"'), ("binary", b'"a"'), ("binary", b'"_-=="'), ("binary", b"1"), ("text", b"{}"), ("text", b"1")],
)
def test_what_cannot_be_stored(name, raw):
    """Is JSON that does not hold what the format wants refused?"""
    with pytest.raises(Misfit):
        FORMATS[name].to_bytes(raw)


@pytest.mark.parametrize(
    ("name", "stored"),
    [("json", b""), ("json", b"{"), ("json", b"1 2"), ("json", b"NaN"), ("json", b"[" * 100_000), ("text", b"\xff")],
)
def test_what_cannot_be_shown(name, stored):
    """Are bytes refused that are not of the format?"""
    with pytest.raises(Misfit):
        FORMATS[name].from_bytes(stored)


def test_media_types():
    """Has each format the media type that clients of REST v2 know, and is plain JSON JSON?"""
    assert {media: form.name for media, form in BY_MEDIA.items()} == {
        "application/json": "json",
        "application/vnd.kafka.json.v2+json": "json",
        "application/vnd.kafka.binary.v2+json": "binary",
        "application/vnd.kafka.text.v2+json": "text",
    }
