"""Bytes as people read them."""

import pytest

from headrace.console.decoding import as_kind, decode, hex_dump, pretty


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (None, "null", ""),
        (b"", "empty", ""),
        (b'{"a": 1}', "json", '{"a": 1}'),
        (b" [1, 2]", "json", " [1, 2]"),
        (b"{not json", "text", "{not json"),
        (b"42", "text", "42"),
        ("grün".encode(), "text", "grün"),
        (b"\xff\x00", "hex", "ff 00"),
        (b"a\x00b", "hex", "61 00 62"),
        (b"[" * 100_000, "text", "[" * 100_000),
    ],
)
def test_looking(data, kind, text):
    """Is each kind of bytes recognised, also what looks like JSON and is none?"""
    assert decode(data) == (kind, text)


def test_pretty():
    """Is JSON indented, and are bytes shown with their text beside them?"""
    assert pretty(decode(b'{"a":[1]}')) == '{\n  "a": [\n    1\n  ]\n}'
    assert hex_dump(b"0123456789abcdef!") == (
        "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n"
        "00000010  21                                               !"
    )


def test_chosen():
    """Does a person get the form they chose, as far as it can be had?"""
    assert as_kind(b'{"a":1}', "text") == '{"a":1}'
    assert as_kind(b"\xff", "text") == "\ufffd"
    assert as_kind(b"no json", "json") == "no json"
    assert as_kind(None, "hex") == ""
