"""Lines as records: what Kafka's LineMessageReader makes of a line, and the properties that say how.

With headers and a key a line is `h1:v1,h2:v2 TAB key TAB value`; every separator can be another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from headrace.cli.session import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Header = tuple[str, bytes | None]


class NewRecord(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes | None
    headers: list[Header] | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How a line is taken apart."""

    parse_key: bool = False
    key_separator: bytes = b"\t"
    parse_headers: bool = False
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    ignore_error: bool = False
    null_marker: bytes | None = None


_FLAGS = {"parse.key": "parse_key", "parse.headers": "parse_headers", "ignore.error": "ignore_error"}
_TEXTS = {
    "key.separator": "key_separator",
    "headers.delimiter": "headers_delimiter",
    "headers.separator": "headers_separator",
    "headers.key.separator": "headers_key_separator",
    "null.marker": "null_marker",
}
PROPERTIES = (*_FLAGS, *_TEXTS)
"""What the reader of lines makes something of."""
_DISTINCT = ("headers.delimiter", "headers.separator", "headers.key.separator")
_NOT_NULL = ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator")


def line_format(properties: Mapping[str, str]) -> LineFormat:
    """The format these reader properties describe; Failure in Kafka's words if two parts could not be told apart."""
    given: dict[str, bool | bytes] = {}
    for name, field in _FLAGS.items():
        if name in properties:
            given[field] = properties[name].strip().lower() == "true"
    for name, field in _TEXTS.items():
        if name in properties:
            given[field] = properties[name].encode()
    found = LineFormat(**given)  # type: ignore[arg-type]
    for one, other in combinations(_DISTINCT, 2):
        if getattr(found, _TEXTS[one]) == getattr(found, _TEXTS[other]):
            raise Failure(f"{one} and {other} may not be equal", remedy="Give them different --reader-property values.")
    for name in _NOT_NULL:
        if getattr(found, _TEXTS[name]) == found.null_marker:
            raise Failure(f"null.marker and {name} may not be equal", remedy="Choose another null.marker.")
    return found


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends, which may be LF, CRLF or CR as for Java; the last one may have none."""
    for chunk in chunks:
        if b"\r" not in chunk:
            yield chunk.removesuffix(b"\n")
            continue
        yield from chunk.replace(b"\r\n", b"\n").removesuffix(b"\n").replace(b"\r", b"\n").split(b"\n")


class LineReader:
    """Makes records of lines, one after the other."""

    def __init__(self, form: LineFormat) -> None:
        self._form = form
        self._separator = _compiled(form.headers_separator)
        self.line_number = 0

    def __call__(self, line: bytes) -> NewRecord:
        """The record in a line; Failure in Kafka's words where a separator is missing."""
        self.line_number += 1
        form = self._form
        if not form.parse_headers and not form.parse_key:
            return NewRecord(None, self._or_null(line))
        position = 0
        headers = key = None
        if form.parse_headers:
            headers, position = self._part(line, position, form.headers_delimiter, "headers delimiter")
        if form.parse_key:
            key, position = self._part(line, position, form.key_separator, "key separator")
        return NewRecord(
            None if key is None else self._or_null(key),
            self._or_null(line[position:]),
            None if headers is None or headers == form.null_marker else self._headers(headers),
        )

    def _or_null(self, part: bytes) -> bytes | None:
        return None if part == self._form.null_marker else part

    def _part(self, line: bytes, start: int, separator: bytes, name: str) -> tuple[bytes | None, int]:
        at = line.find(separator, start)
        if at >= 0:
            return line[start:at], at + len(separator)
        if self._form.ignore_error:
            return None, start
        raise Failure(
            f"No {name} found on line number {self.line_number}: '{line.decode(errors='replace')}'",
            remedy="Set the separator with --reader-property, or --reader-property ignore.error=true.",
        )

    def _headers(self, text: bytes) -> list[Header]:
        pairs = self._separator.split(text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()  # as Java's split does
        return [self._header(pair) for pair in pairs]

    def _header(self, pair: bytes) -> Header:
        form = self._form
        name, sign, value = pair.partition(form.headers_key_separator)
        if not sign:
            if form.ignore_error:
                return pair.decode(errors="replace"), None
            raise Failure(
                f"No header key separator found in pair '{pair.decode(errors='replace')}' "
                f"on line number {self.line_number}",
                remedy="Write headers as name:value, or set headers.key.separator.",
            )
        if name == form.null_marker:
            marker = name.decode(errors="replace")
            raise Failure(f"Header keys should not be equal to the null marker '{marker}' as they can't be null")
        return name.decode(errors="replace"), self._or_null(value)


def _compiled(separator: bytes) -> re.Pattern[bytes]:
    """The separator as the regular expression Kafka takes it for; literally where it is none."""
    try:
        return re.compile(separator)
    except re.error:
        return re.compile(re.escape(separator))
