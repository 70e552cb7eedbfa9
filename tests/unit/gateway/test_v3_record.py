"""Records as REST v3 takes them."""

import msgspec
import pytest

from headrace.gateway.problem import Problem
from headrace.gateway.v3_record import ProduceRecord, prepare


def prepared(text):
    """A record read and prepared."""
    return prepare(msgspec.json.decode(text, type=ProduceRecord))


@pytest.mark.parametrize(
    ("data", "made"),
    [
        ('{"type": "BINARY", "data": "aGk="}', b"hi"),
        ('{"type": "BINARY", "data": null}', None),
        ('{"type": "BINARY", "data": ""}', b""),
        ('{"type": "STRING", "data": "hé"}', "hé".encode()),
        ('{"type": "STRING", "data": null}', None),
        ('{"type": "JSON", "data": null}', None),
        ('{"type": "JSON", "data": [1.0, 12345678901234567890123, 1e400]}', b"[1.0,12345678901234567890123,1e400]"),
        ("null", None),
    ],
)
def test_bytes(data, made):
    """Does each type give its bytes, numbers as they were written?"""
    assert prepared(f'{{"value": {data}}}').value == made


@pytest.mark.parametrize(
    "text",
    [
        '{"value": {"type": "BINARY", "data": "a"}}',
        '{"key": {"type": "BINARY", "data": "ÿ"}}',
        '{"headers": [{"name": "h", "value": "*"}]}',
        '{"timestamp": "1969-12-31T23:59:59Z"}',
    ],
)
def test_what_cannot_be(text):
    """Is what has no bytes, or no time, refused with 422?"""
    with pytest.raises(Problem) as refused:
        prepared(text)

    assert refused.value.status == 422


@pytest.mark.parametrize(
    "text",
    [
        '{"value": {"type": "AVRO", "data": 1}}',
        '{"value": {"data": 1}}',
        '{"partition": 1}',
        '{"timestamp": "2026-01-31T12:00:00"}',
        '{"value": {"type": "JSON", "data": 1, "schema_id": 7}}',
    ],
)
def test_what_does_not_belong(text):
    """Is a shape we do not know refused, and not half understood?"""
    with pytest.raises(msgspec.ValidationError):
        prepared(text)
