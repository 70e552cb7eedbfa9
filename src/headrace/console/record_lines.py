"""Records as lines of JSON, to be kept and to be read in again, and as CSV for spreadsheets.

A string is the text itself, anything else its JSON, null nothing at all; what is no text stands as base64 under
`key_base64` and `value_base64`. What was written so is read in again to the byte.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace.client.fetching import FetchedRecord
from headrace.console.decoding import decode
from headrace.console.record_query import iso

CSV_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class NewRecord(NamedTuple):
    """A record to be produced."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    timestamp: int | None


class BadLine(ValueError):
    """A line that is no record; the message says which and why."""


def to_lines(records: Iterable[FetchedRecord]) -> str:
    """A line of JSON each."""
    return "".join(json.dumps(_line(record), ensure_ascii=False) + "\n" for record in records)


def _line(record: FetchedRecord) -> dict[str, Any]:
    line: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    line |= _field("key", record.key)
    line |= _field("value", record.value)
    line["headers"] = [{"name": name, **_field("value", value)} for name, value in record.headers]
    return line


def _field(name: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {name: None}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
    if text[:1] in {"{", "["}:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return {name: text}
        # Only what comes back as the same bytes may be written as what it means.
        if json.dumps(value, ensure_ascii=False, separators=(",", ":")) == text:
            return {name: value}
    return {name: text}


def to_csv(records: Iterable[FetchedRecord]) -> str:
    """A table with a heading; bytes that are no text as hexadecimal digits."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    for one in records:
        headers = "; ".join(f"{name}={decode(value).text}" for name, value in one.headers)
        cells = [decode(one.key).text, decode(one.value).text, headers]
        writer.writerow([one.topic, one.partition, one.offset, iso(one.timestamp), *map(_harmless, cells)])
    return out.getvalue()


def _harmless(cell: str) -> str:
    """What a spreadsheet would take for a formula is told to be text."""
    return f"'{cell}" if cell[:1] in {"=", "+", "-", "@", "\t", "\r"} else cell


def from_lines(text: str) -> list[NewRecord]:
    """Read lines; BadLine for the first that is no record, so that nothing is produced by half."""
    return [_record(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _record(number: int, line: str) -> NewRecord:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"Line {number} is not JSON: {error}.") from None
    if not isinstance(given, dict) or not given.keys() & {"key", "value", "key_base64", "value_base64"}:
        raise BadLine(f"Line {number} is no object with a key or a value.")
    headers = given.get("headers") or []
    if isinstance(headers, dict):
        headers = [{"name": name, "value": value} for name, value in headers.items()]
    if not isinstance(headers, list) or not all(isinstance(one, dict) and "name" in one for one in headers):
        raise BadLine(f"Line {number} has headers that are no list of name and value.")
    return NewRecord(
        key=_bytes(number, given, "key"),
        value=_bytes(number, given, "value"),
        headers=[(str(one["name"]), _bytes(number, one, "value")) for one in headers],
        partition=_whole(number, given, "partition"),
        timestamp=_whole(number, given, "timestamp"),
    )


def _bytes(number: int, given: dict[str, Any], name: str) -> bytes | None:
    encoded = given.get(f"{name}_base64")
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (ValueError, TypeError):
            raise BadLine(f"Line {number} has a {name}_base64 that is not base64.") from None
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _whole(number: int, given: dict[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is not None and (type(value) is not int or value < 0):
        raise BadLine(f"Line {number} has a {name} that is no number.")
    return value
