"""Records as lines of JSON and as CSV."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.fetching import FetchedRecord
from headrace.console.record_lines import BadLine, from_lines, to_csv, to_lines


def record(key=b"k", value=b"v", headers=()):
    """A record like any other."""
    return FetchedRecord("t", 1, 7, 1_700_000_000_123, key, value, headers)


DATA = (
    st.none()
    | st.binary(max_size=40)
    | st.text(max_size=20).map(str.encode)
    | st.sampled_from(
        [b'{"a":1}', b'{"a": 1}', b"[1,2]", b'"quoted"', b"null", b"1e400", b'{"a":1,"a":2}', "ü{}".encode(), b"[NaN]"]
    )
)


@given(DATA, DATA, st.lists(st.tuples(st.text(max_size=5), DATA), max_size=3))
def test_there_and_back(key, value, headers):
    """Are the bytes that were written the bytes that are read, whatever they are?"""
    (read,) = from_lines(to_lines([record(key, value, tuple(headers))]))

    assert (read.key, read.value, read.headers) == (key, value, headers)
    assert (read.partition, read.timestamp) == (1, 1_700_000_000_123)


def test_json_stays_json():
    """Does a value that is JSON stand in the line as what it means?"""
    line = json.loads(to_lines([record(b"t-1", b'{"speed":80}')]))

    assert (line["key"], line["value"]) == ("t-1", {"speed": 80})


def test_typed_by_hand():
    """Is a line with only a value, or headers as an object, a record too?"""
    (first, second) = from_lines('{"value": {"n": 1}}\n\n{"key": "a", "headers": {"source": "me"}}\n')

    assert (first.key, first.value, first.partition) == (None, b'{"n":1}', None)
    assert (second.value, second.headers) == (None, [("source", b"me")])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "no object"),
        ('{"speed": 1}', "no object with a key or a value"),
        ('{"value_base64": "%%"}', "not base64"),
        ('{"value": 1, "partition": "x"}', "partition"),
        ('{"value": 1, "timestamp": -1}', "timestamp"),
        ('{"value": 1, "headers": [1]}', "headers"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_bad_lines(line, what):
    """Is a line that is no record named by its number, with what is wrong?"""
    with pytest.raises(BadLine, match=f"Line 2.*{what}"):
        from_lines('{"value": 1}\n' + line)


def test_csv():
    """Is the table readable by others, and no cell a formula for a spreadsheet?"""
    text = to_csv([record(b"=1+1", b'{"a": "x,y"}', (("h", b"1"),)), record(None, b"\xff")])

    head, first, second = csv.reader(io.StringIO(text))
    assert head[:3] == ["topic", "partition", "offset"]
    assert first[3:] == ["2023-11-14T22:13:20.123Z", "'=1+1", '{"a": "x,y"}', "h=1"]
    assert second[4:] == ["", "ff", ""]
