"""A record as one JSON document: the console consumer writes it, the console producer reads it back.

    {"topic": "t", "partition": 0, "offset": 5, "timestamp": 1731700000000, "timestampType": "CreateTime",
     "leaderEpoch": 0, "headers": [{"key": "h", "value": "v"}], "key": null, "value": "text"}

Bytes that are not UTF-8 stand as {"base64": "..."}; null is null, everywhere.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.cli.line_reader import Header, NewRecord
from headrace.cli.session import Failure

if TYPE_CHECKING:
    from headrace.cli.record_format import Shown

TIMESTAMP_TYPES = ("NO_TIMESTAMP", "CreateTime", "LogAppendTime")
_BASE64 = "base64"
_REMEDY = 'Write one document per line: {"key": "k", "value": "v", "headers": [{"key": "h", "value": "x"}]}'


def to_document(record: Shown) -> dict[str, Any]:
    """The envelope of a record."""
    kind, timestamp = record.timestamp()
    return {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": timestamp if kind else None,
        "timestampType": TIMESTAMP_TYPES[kind],
        "leaderEpoch": record.leader_epoch(),
        "headers": [{"key": name, "value": _shown(value)} for name, value in record.headers() or ()],
        "key": _shown(record.key()),
        "value": _shown(record.value()),
    }


def _shown(part: bytes | str | None) -> Any:
    if part is None or isinstance(part, str):
        return part
    try:
        return part.decode()
    except UnicodeDecodeError:
        return {_BASE64: b64encode(part).decode()}


class EnvelopeReader:
    """Makes records of envelopes, one line after the other."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder().decode
        self.line_number = 0

    def __call__(self, line: bytes) -> NewRecord:
        """The record in a document; only key, value, headers and timestamp count."""
        self.line_number += 1
        try:
            document = self._decode(line)
        except msgspec.DecodeError as error:
            raise self._failure(f"is not JSON: {error}") from None
        if not isinstance(document, dict):
            raise self._failure("is not a JSON object")
        timestamp = document.get("timestamp")
        if not isinstance(timestamp, int | None) or isinstance(timestamp, bool):
            raise self._failure("has a timestamp that is not a number of milliseconds")
        key, value = self._part(document.get("key")), self._part(document.get("value"))
        return NewRecord(key, value, self._headers(document.get("headers")) or None, timestamp)

    def _headers(self, found: Any) -> list[Header]:
        if isinstance(found, dict):
            return [(name, self._part(value)) for name, value in found.items()]
        try:
            return [(str(header["key"]), self._part(header.get("value"))) for header in found or ()]
        except (TypeError, KeyError, AttributeError):
            raise self._failure("has headers that are not objects with key and value") from None

    def _part(self, found: Any) -> bytes | None:
        if found is None:
            return None
        if isinstance(found, str):
            return found.encode()
        if isinstance(found, dict) and found.keys() == {_BASE64}:
            try:
                return b64decode(found[_BASE64], validate=True)
            except (TypeError, ValueError):
                raise self._failure("has base64 that is none") from None
        return msgspec.json.encode(found)

    def _failure(self, problem: str) -> Failure:
        return Failure(f"Line number {self.line_number} {problem}", remedy=_REMEDY)
