"""On which line of a TOML text each key stands, which Python's reader does not tell.

The reader has found the text well-formed before we look, so a small scan is enough: values are only skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Path = tuple[str, ...]

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[{]|[\]}]|\n|.', re.DOTALL
)
_PART = r'(?:"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)'
_NAME = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"\s*\[\[?[ \t]*({_NAME})[ \t]*\]")
_KEY = re.compile(rf"\s*({_NAME})[ \t]*=")
_PARTS = re.compile(_PART)


def key_lines(text: str) -> dict[Path, int]:
    """The line of every table and key, counted from 1; keys of inline tables are not looked into."""
    found: dict[Path, int] = {}
    table: Path = ()
    for line, statement in _statements(text):
        header = _HEADER.match(statement)
        if header:
            path = table = _split(header[1])
        elif key := _KEY.match(statement):
            path = table + _split(key[1])
        else:
            continue
        for depth in range(1, len(path) + 1):
            found.setdefault(path[:depth], line)
    return found


def line_of(lines: dict[Path, int], *path: str) -> int:
    """Where a key stands, or the nearest thing around it that is written down."""
    for depth in range(len(path), 0, -1):
        if path[:depth] in lines:
            return lines[path[:depth]]
    return 1


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Tables and keys with their values, each with the line it begins on."""
    depth = start = 0
    line = first = 1
    for token in _TOKEN.finditer(text):
        word = token[0]
        line += word.count("\n")
        if word in {"[", "{"}:
            depth += 1
        elif word in {"]", "}"}:
            depth -= 1
        elif word == "\n" and depth <= 0:
            yield first, text[start : token.start()]
            start, first, depth = token.end(), line, 0
    yield first, text[start:]


def _split(name: str) -> Path:
    return tuple(part.strip("\"'") for part in _PARTS.findall(name))
