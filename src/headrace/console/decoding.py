"""Bytes as people read them: JSON, text or hexadecimal, found out by looking."""

from __future__ import annotations

import json
from typing import NamedTuple

_CONTROL = frozenset(range(32)) - {9, 10, 13}


class Decoded(NamedTuple):
    """What bytes turned out to be."""

    kind: str
    """null, empty, json, text or hex."""
    text: str
    """On one line where it is JSON; hexadecimal digits where it is no text."""


def decode(data: bytes | None) -> Decoded:
    """Look at bytes."""
    if data is None:
        return Decoded("null", "")
    if not data:
        return Decoded("empty", "")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Decoded("hex", data.hex(" "))
    if not _CONTROL.isdisjoint(data):
        return Decoded("hex", data.hex(" "))
    if text.lstrip()[:1] in {"{", "["} and _is_json(text):
        return Decoded("json", text)
    return Decoded("text", text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def pretty(decoded: Decoded) -> str:
    """The same over several lines: JSON indented, bytes sixteen to a line with their text beside them."""
    if decoded.kind == "json":
        return json.dumps(json.loads(decoded.text), indent=2, ensure_ascii=False)
    if decoded.kind == "hex":
        return hex_dump(bytes.fromhex(decoded.text))
    return decoded.text


def hex_dump(data: bytes) -> str:
    """As hexdump -C shows them."""
    lines = []
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:08x}  {row.hex(' '):<47}  {text}")
    return "\n".join(lines)


def as_kind(data: bytes | None, kind: str) -> str:
    """Bytes in a form that a person chose: json, text or hex; what cannot be that is shown as it can."""
    if data is None:
        return ""
    if kind == "hex":
        return hex_dump(data)
    if kind == "text":
        return data.decode(errors="replace")
    return pretty(decode(data))
