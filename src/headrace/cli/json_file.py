"""JSON files that tools are given: read, and refused in the words of the tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.model.errors import HeadraceError


class FileRefused(HeadraceError):
    """A file that cannot be read, or does not say what it must."""


def read_text(path: str) -> str:
    """The text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise FileRefused(f"Unable to read file {path}") from None


def read_json(path: str, invalid: str = "The input string is not a valid JSON") -> dict[str, Any]:
    """The object in a file; `invalid` says that it is none."""
    try:
        document = json.loads(read_text(path))
    except ValueError:
        raise FileRefused(invalid) from None
    if not isinstance(document, dict):
        raise FileRefused(f"Expected JSON object, received {json.dumps(document)}")
    return document


def check_version(document: dict[str, Any], known: int = 1) -> None:
    """Refuse a file of a version nobody knows; one that does not say is of the first."""
    version = document.get("version", known)
    if version != known:
        raise FileRefused(f"Not supported version field value {version}")


def field(row: Any, name: str, kind: type) -> Any:
    """A field of an object, which must be there and of its kind."""
    value = row.get(name) if isinstance(row, dict) else None
    if value is None:
        raise FileRefused(f"No such field exists: `{name}`")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FileRefused(f"Expected `{kind.__name__}` value, received {json.dumps(value)}")
    return value


def rows(document: dict[str, Any], name: str) -> list[Any]:
    """The list of that name, empty where there is none."""
    found = document.get(name, [])
    if not isinstance(found, list):
        raise FileRefused(f"Expected JSON array, received {json.dumps(found)}")
    return found
