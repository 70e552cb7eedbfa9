"""Keys and values as JSON shows them: JSON itself, text, or bytes in base64.

A client names the format by its media type; `application/json` means JSON. What was written as JSON is stored as it
was written, without the blanks, and is shown as it is stored: no number is rounded on the way.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from headrace.gateway.route import JSON, V2_JSON

FormatName = Literal["json", "binary", "text"]


class Misfit(ValueError):
    """What is there cannot be put into the form wanted; the text goes on from "records[0].value"."""


class Format(Struct, frozen=True, kw_only=True):
    """One way to show bytes in JSON."""

    name: FormatName
    to_bytes: Callable[[bytes], bytes]
    """From the JSON in a request, which is not null; Misfit if it is of another kind."""
    from_bytes: Callable[[bytes], Any]
    """To what is encoded as JSON; Misfit if the bytes are not of this format."""

    @property
    def media(self) -> str:
        """Its media type."""
        return f"application/vnd.kafka.{self.name}.v2+json"


def _json_to_bytes(raw: bytes) -> bytes:
    return msgspec.json.format(_as_json(raw), indent=-1)


def _json_from_bytes(stored: bytes) -> msgspec.Raw:
    return msgspec.Raw(_as_json(stored))


def _as_json(raw: bytes) -> bytes:
    """The same bytes, which are JSON in UTF-8."""
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
        raw.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Misfit("is not JSON") from None
    return raw


def _string(raw: bytes) -> str:
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Misfit("is not a string") from None


def _text_to_bytes(raw: bytes) -> bytes:
    return _string(raw).encode()


def _text_from_bytes(stored: bytes) -> str:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        raise Misfit("is not text in UTF-8") from None


def _binary_to_bytes(raw: bytes) -> bytes:
    return from_base64(_string(raw))


def from_base64(text: str) -> bytes:
    """The bytes; Misfit if it is something else."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Misfit("is not base64") from None


def to_base64(raw: bytes) -> str:
    """The bytes as text."""
    return base64.b64encode(raw).decode()


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format(name="json", to_bytes=_json_to_bytes, from_bytes=_json_from_bytes),
        Format(name="binary", to_bytes=_binary_to_bytes, from_bytes=to_base64),
        Format(name="text", to_bytes=_text_to_bytes, from_bytes=_text_from_bytes),
    )
}
BY_MEDIA: dict[str, Format] = {JSON: FORMATS["json"], **{one.media: one for one in FORMATS.values()}}
"""What a body may be, and what it is then."""
EMBEDDED: tuple[str, ...] = tuple(BY_MEDIA)
V2 = (V2_JSON, JSON)
"""What answers without records are."""
