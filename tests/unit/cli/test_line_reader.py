"""Lines as records, with every property of Kafka's line reader."""

import pytest

from headrace.cli.line_reader import LineReader, NewRecord, line_format, split_lines
from headrace.cli.session import Failure

KEYS = {"parse.key": "true"}
HEADERS = {"parse.headers": "true"}


def read(line, properties=None):
    """The record a line becomes."""
    return LineReader(line_format(properties or {}))(line)


@pytest.mark.parametrize(
    ("properties", "line", "expected"),
    [
        ({}, b"plain\ttext", NewRecord(None, b"plain\ttext")),
        (KEYS, b"k\tv\tw", NewRecord(b"k", b"v\tw")),
        (KEYS | {"key.separator": "::"}, b"k::v", NewRecord(b"k", b"v")),
        (HEADERS, b"a:1,b:2\tv", NewRecord(None, b"v", [("a", b"1"), ("b", b"2")])),
        (HEADERS | KEYS, b"a:1\tk\tv", NewRecord(b"k", b"v", [("a", b"1")])),
        (
            HEADERS | {"headers.separator": "[;|]"},
            b"a:1;b:2|c:\tv",
            NewRecord(None, b"v", [("a", b"1"), ("b", b"2"), ("c", b"")]),
        ),
        (KEYS | {"null.marker": "NIL"}, b"NIL\tNIL", NewRecord(None, None)),
        (HEADERS | {"null.marker": "NIL"}, b"a:NIL\tv", NewRecord(None, b"v", [("a", None)])),
        (HEADERS | {"null.marker": "NIL"}, b"NIL\tv", NewRecord(None, b"v")),
        (KEYS | {"ignore.error": "true"}, b"no separator", NewRecord(None, b"no separator")),
        (HEADERS | {"ignore.error": "true"}, b"odd\tv", NewRecord(None, b"v", [("odd", None)])),
        ({}, b"", NewRecord(None, b"")),
        ({}, b"\xff\xfe", NewRecord(None, b"\xff\xfe")),
    ],
)
def test_lines(properties, line, expected):
    """Does a line become the record Kafka's reader makes of it, bytes untouched?"""
    assert read(line, properties) == expected


@pytest.mark.parametrize(
    ("properties", "lines", "expected"),
    [
        (KEYS, [b"k\tv", b"k\tv", b"abc"], "No key separator found on line number 3: 'abc'"),
        (HEADERS, [b"abc"], "No headers delimiter found on line number 1: 'abc'"),
        (HEADERS, [b"abc\tv"], "No header key separator found in pair 'abc' on line number 1"),
        (
            HEADERS | {"null.marker": "NIL"},
            [b"NIL:x\tv"],
            "Header keys should not be equal to the null marker 'NIL' as they can't be null",
        ),
    ],
)
def test_mistakes(properties, lines, expected):
    """Is a line that does not fit refused in Kafka's words, with its number?"""
    reader = LineReader(line_format(properties))
    with pytest.raises(Failure) as caught:
        list(map(reader, lines))

    assert caught.value.message == expected


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"headers.separator": ":"}, "headers.separator and headers.key.separator may not be equal"),
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator may not be equal"),
        ({"null.marker": "\t"}, "null.marker and key.separator may not be equal"),
    ],
)
def test_separators_must_differ(properties, expected):
    """Are properties refused that would make a line ambiguous?"""
    with pytest.raises(Failure) as caught:
        line_format(properties)

    assert caught.value.message == expected


def test_line_ends():
    """Do LF, CRLF and CR all end a line, and may the last line have no end?"""
    assert list(split_lines([b"a\n", b"b\r\n", b"c\rd\r\n", b"\n", b"e"])) == [b"a", b"b", b"c", b"d", b"", b"e"]
