"""The envelope that carries a record from the console consumer to the console producer."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.envelope import EnvelopeReader, to_document
from headrace.cli.line_reader import NewRecord
from headrace.cli.session import Failure

PARTS = st.none() | st.binary(max_size=20) | st.text(max_size=10).map(str.encode)
HEADERS = st.lists(st.tuples(st.text(max_size=5), PARTS), max_size=3)


class Fake:
    """A record as confluent-kafka would hand it out."""

    def __init__(self, key, value, headers, timestamp):
        self._parts = key, value, headers, timestamp

    def __getattr__(self, name):
        key, value, headers, timestamp = self._parts
        known = {"key": key, "value": value, "headers": headers, "timestamp": (1, timestamp), "topic": "t"}
        return lambda: known.get(name, 0)


@given(PARTS, PARTS, HEADERS, st.integers(min_value=0, max_value=2**63 - 1))
def test_round_trip(key, value, headers, timestamp):
    """Does every record come back as it was: nulls, bytes that are not text, headers in order, the timestamp?"""
    line = msgspec.json.encode(to_document(Fake(key, value, headers, timestamp)))

    assert EnvelopeReader()(line) == NewRecord(key, value, headers or None, timestamp)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"{}", NewRecord(None, None)),
        (b'{"value": {"a": [1, 2]}}', NewRecord(None, b'{"a":[1,2]}')),
        (b'{"key": 7, "value": true}', NewRecord(b"7", b"true")),
        (b'{"headers": {"h": "x"}}', NewRecord(None, None, [("h", b"x")])),
    ],
)
def test_documents_of_others(line, expected):
    """Is a document that is not ours understood as far as it goes?"""
    assert EnvelopeReader()(line) == expected


@pytest.mark.parametrize(
    "line",
    [b"", b"nonsense", b"[]", b'{"value": {"base64": "%"}}', b'{"headers": [1]}', b'{"timestamp": "now"}'],
)
def test_mistakes(line):
    """Is what is no envelope refused, with the number of its line?"""
    reader = EnvelopeReader()
    reader(b"{}")
    with pytest.raises(Failure, match="Line number 2"):
        reader(line)
