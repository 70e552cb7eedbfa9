"""A record as REST v2 shows it, with the timestamp and the headers that Strimzi's bridge added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from headrace.gateway.formats import Format, Misfit, to_base64
from headrace.gateway.problem import FORMAT_MISMATCH, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class RecordHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """A header; its value is in base64, whatever the format of the record."""

    key: str
    value: str | None


class ShownRecord(Struct, frozen=True):
    """A record as it was read."""

    topic: str
    key: Any
    value: Any
    partition: int
    offset: int
    timestamp: int
    headers: list[RecordHeader]


class StoredRecord(Protocol):
    """What is common to the records of all our readers."""

    @property
    def topic(self) -> str:
        """The topic."""

    @property
    def partition(self) -> int:
        """The partition."""

    @property
    def offset(self) -> int:
        """The offset."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970."""

    @property
    def key(self) -> bytes | None:
        """The key."""

    @property
    def value(self) -> bytes | None:
        """The value."""

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """The headers."""


def show(record: StoredRecord, form: Format) -> ShownRecord:
    """The record in a format; Problem(406) if it is not of that format."""
    return ShownRecord(
        record.topic,
        _shown(record, "key", record.key, form),
        _shown(record, "value", record.value, form),
        record.partition,
        record.offset,
        record.timestamp,
        [RecordHeader(key, None if value is None else to_base64(value)) for key, value in record.headers],
    )


def _shown(record: StoredRecord, part: str, stored: bytes | None, form: Format) -> Any:
    if stored is None:
        return None
    try:
        return form.from_bytes(stored)
    except Misfit as misfit:
        raise Problem(
            406,
            FORMAT_MISMATCH,
            f"The {part} of {record.topic}-{record.partition} at offset {record.offset} {misfit}. "
            "Read it as binary, or go on behind it.",
        ) from None


def size_of(record: StoredRecord) -> int:
    """The bytes of key and value, which are what `max_bytes` counts."""
    return len(record.key or b"") + len(record.value or b"")


class Page:
    """The records of one answer: as many as fit, and one in any case."""

    __slots__ = ("_form", "_max_bytes", "is_full", "records", "size")

    def __init__(self, form: Format, max_bytes: int) -> None:
        self._form = form
        self._max_bytes = max_bytes
        self.records: list[ShownRecord] = []
        self.size = 0
        self.is_full = False

    def add(self, records: Iterable[StoredRecord]) -> int:
        """Take records until it is full, and give how many.

        One that is not of the format fills it as well: those before it are given first, and it is the next one's
        Problem(406).
        """
        before = len(self.records)
        for record in records:
            size = size_of(record)
            if self.records and self.size + size > self._max_bytes:
                self.is_full = True
                break
            try:
                self.records.append(show(record, self._form))
            except Problem:
                if not self.records:
                    raise
                self.is_full = True
                break
            self.size += size
        return len(self.records) - before
