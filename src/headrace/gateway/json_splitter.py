"""Takes JSON objects apart that follow one another without an end in sight, chunk by chunk.

Only braces, brackets and strings are looked at: where an object ends is known without reading it, so that one that is
too large can be passed over, and what is inside is checked by whoever reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

_BLANK = re.compile(rb"[ \t\r\n]*")
# A string that ends in the same chunk is passed over as one.
_OUTSIDE_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_INSIDE_STRING = re.compile(rb'["\\]')
_QUOTE, _BACKSLASH, _BRACE = b'"'[0], b"\\"[0], b"{"[0]
_OPENING = frozenset(b"{[")
_WHOLE = msgspec.json.Decoder(msgspec.Raw)


class NoObject(ValueError):
    """Something stands between the objects that is none, or the last one does not end."""


class TooLarge(NamedTuple):
    """An object that was passed over."""

    size: int


class JsonSplitter:
    """Finds the objects in a stream of bytes."""

    def __init__(self, limit: int) -> None:
        """`limit` is the most bytes an object may have."""
        self._limit = limit
        self._depth = 0
        self._is_string = False
        self._is_escaped = False
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLarge]:
        """The objects that end in this chunk; NoObject if something else stands there."""
        start = position = line_end = 0
        while position < len(chunk):
            if self._depth == 0:
                start = position = _after_blank(chunk, position)
                if position == len(chunk):
                    return
                if chunk[position] != _BRACE:
                    raise NoObject(f"an object belongs where {chunk[position : position + 20]!r} stands")
                if position >= line_end:
                    # Looked for once a line, or objects that share one would make us look again and again.
                    line_end = _line_end(chunk, position)
                    if self._is_whole(chunk, position, line_end):
                        yield chunk[position:line_end]
                        position = line_end
                        continue
            position = self._walk(chunk, position)
            self._keep(chunk[start:position])
            start = position
            if self._depth == 0:
                yield self._take()

    def end(self) -> None:
        """There is no more; NoObject if an object has not ended."""
        if self._depth:
            raise NoObject("the last object does not end")

    def _is_whole(self, chunk: bytes, start: int, end: int) -> bool:
        """Whether the rest of a line is one object; most are written so, and then no sign is looked at by itself."""
        if end == len(chunk) or end - start > self._limit:
            return False
        try:
            _WHOLE.decode(chunk[start:end])
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    def _walk(self, chunk: bytes, position: int) -> int:
        """Behind the end of the object, or of the chunk."""
        while position < len(chunk):
            if self._is_escaped:
                self._is_escaped = False
                position += 1
                continue
            found = (_INSIDE_STRING if self._is_string else _OUTSIDE_STRING).search(chunk, position)
            if found is None:
                return len(chunk)
            position = found.end()
            sign = chunk[found.start()]
            if position - found.start() > 1:
                continue
            if sign == _BACKSLASH:
                self._is_escaped = True
            elif sign == _QUOTE:
                self._is_string = not self._is_string
            else:
                self._depth += 1 if sign in _OPENING else -1
                if self._depth == 0:
                    return position
        return position

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(part)

    def _take(self) -> bytes | TooLarge:
        size, parts = self._size, self._parts
        self._size, self._parts = 0, []
        return TooLarge(size) if size > self._limit else b"".join(parts)


def _line_end(chunk: bytes, position: int) -> int:
    end = chunk.find(b"\n", position)
    return len(chunk) if end < 0 else end


def _after_blank(chunk: bytes, position: int) -> int:
    blank = _BLANK.match(chunk, position)
    assert blank is not None, "the pattern matches nothing, too"
    return blank.end()
