"""One record as streams show it: looked into at most once and encoded at most once per form, however many follow."""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec

from headrace.client.fetching import FetchedRecord

_ENCODER: Final = msgspec.json.Encoder()
_ROOM: Final = 200
"""What a record costs besides its bytes, roughly."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """One header of a record."""

    name: str
    value: str | None = None
    """Its text; base64 where it is no text, and value_format says so."""
    value_format: str | None = None


class StreamedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record in the envelope `record`."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    key: str | None
    """Its text; base64 where it is no text, and key_format says so."""
    value: Any
    """The value as JSON where it is JSON, else its text, else base64; value_format says which of the latter."""
    headers: tuple[Header, ...]
    key_format: str | msgspec.UnsetType = msgspec.UNSET
    """`base64`, or not there."""
    value_format: str | msgspec.UnsetType = msgspec.UNSET
    """`text` or `base64`, or not there."""


class Event:
    """A record and what is known of it so far."""

    __slots__ = ("_fields", "_shown", "offset", "record", "size")

    def __init__(self, record: FetchedRecord) -> None:
        self.record = record
        self.offset = record.offset
        self.size = len(record.key or b"") + len(record.value or b"") + _ROOM
        self._fields: dict[str, Any] | None = None
        self._shown: dict[str, bytes] = {}

    @property
    def fields(self) -> dict[str, Any]:
        """What a filter asks for, by the names a path begins with."""
        if self._fields is None:
            record = self.record
            self._fields = {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": text_of(record.key)[0],
                "value": _decoded(record.value),
                "headers": {name: text_of(value)[0] for name, value in record.headers},
            }
        return self._fields

    def envelope(self, kind: str) -> bytes:
        """The record as one line of JSON: all of it (`record`), or the value alone (`value`)."""
        shown = self._shown.get(kind)
        if shown is None:
            shown = self._shown[kind] = _ENCODER.encode(_whole(self.record)) if kind == "record" else self._value()
        return shown

    def in_form(self, name: str, make: Any) -> bytes:
        """Something made from the envelope that many will ask for."""
        shown = self._shown.get(name)
        if shown is None:
            shown = self._shown[name] = make(self)
        return shown

    def _value(self) -> bytes:
        value, _ = _value_of(self.record.value)
        return _ENCODER.encode(value)


def text_of(data: bytes | None) -> tuple[str | None, str | msgspec.UnsetType]:
    """Bytes as text, or as base64 and the word that says so."""
    if data is None:
        return None, msgspec.UNSET
    try:
        return data.decode(), msgspec.UNSET
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"


def _decoded(data: bytes | None) -> Any:
    """A value for a filter: JSON, or text."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text_of(data)[0]


def _value_of(data: bytes | None) -> tuple[Any, str | msgspec.UnsetType]:
    """A value to be sent: its own bytes where they are JSON, on one line."""
    text, how = text_of(data)
    if text is None or how == "base64":
        return text, how
    assert data is not None
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        line = msgspec.json.format(data, indent=-1) if b"\n" in data or b"\r" in data else data
        return msgspec.Raw(line), msgspec.UNSET
    except (msgspec.DecodeError, RecursionError):
        return text, "text"


def _whole(record: FetchedRecord) -> StreamedRecord:
    key, key_format = text_of(record.key)
    value, value_format = _value_of(record.value)
    headers = []
    for name, data in record.headers:
        text, how = text_of(data)
        headers.append(Header(name, text, how if isinstance(how, str) else None))
    return StreamedRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        key=key,
        value=value,
        headers=tuple(headers),
        key_format=key_format,
        value_format=value_format,
    )
