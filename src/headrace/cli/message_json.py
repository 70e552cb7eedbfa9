"""Kafka's records of its own topics as JSON, in the shape and under the names Kafka's tools print them."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from functools import cache
from typing import TYPE_CHECKING, Any

from headrace.cli.report import camel_case
from headrace.wire.schema import load_messages

if TYPE_CHECKING:
    from headrace.wire.schema import Field, Message


def message_json(module: str, value: Any, version: int) -> dict[str, Any]:
    """A message of `messages/<module>` at `version`: every field of that version; tagged ones only where they speak."""
    return described_json(_messages(module)[type(value).__name__], value, version)


def described_json(message: Message, value: Any, version: int) -> dict[str, Any]:
    """The same for a message whose description is at hand."""
    return _struct_json(message, message.name, value, version)


@cache
def _messages(module: str) -> dict[str, Message]:
    return {message.name: message for message in load_messages(module)}


def _struct_json(message: Message, struct: str, value: Any, version: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in message.structs[struct]:
        if not field.versions.cover(version):
            continue
        content = getattr(value, field.name)
        if field.tag is not None and _is_default(field, content, type(value)):
            continue
        found[camel_case(field.name)] = _field_json(message, field, content, version)
    return found


def _is_default(field: Field, content: Any, owner: type) -> bool:
    return bool(content == getattr(owner(), field.name))


def _field_json(message: Message, field: Field, content: Any, version: int) -> Any:
    if content is None:
        return None
    if field.is_array:
        return [_item_json(message, field, item, version) for item in content]
    return _item_json(message, field, content, version)


def _item_json(message: Message, field: Field, content: Any, version: int) -> Any:
    if field.is_struct:
        return _struct_json(message, field.type, content, version)
    if field.type == "uuid":
        return urlsafe_b64encode(content.bytes).decode().rstrip("=")
    if field.type in {"bytes", "records"}:
        return b64encode(content).decode()
    return content
