"""Whole messages to bytes and back, for every API and version of the table.

A codec is compiled when its (message, version) is first needed: about a millisecond once, nothing at import.
Decoding is for bytes that strangers send; whatever is wrong with them is one MalformedRequest. Encoding is for values
of our own; what is wrong there is our mistake and flies as the error it is, with a note saying which message it was.
"""

import struct
from functools import cache
from importlib import import_module
from typing import Any

from headrace.model.errors import MalformedRequest
from headrace.wire.apis import APIS
from headrace.wire.compiler import Classes, Reader, Writer, compile_reader, compile_writer
from headrace.wire.primitives import BAD_BYTES, AmpleBudget, Budget, Buffer
from headrace.wire.schema import Message, load_messages

_LENGTH = struct.Struct(">i")
_METADATA = 3
_CREATE_PARTITIONS = 37

_OBJECTS_MAX = {_CREATE_PARTITIONS: 20_000}
"""Where less than OBJECTS_MAX is allowed, because one element costs more: here a controller's decision, 9 µs each."""


def decode_request(api_key: int, version: int, view: Buffer, position: int = 0) -> Any:
    """The request whose body starts at `position` and fills the rest of `view`."""
    stray_bytes_max = 3 if api_key == _METADATA and _is_of_all_topics(version, view, position) else 0
    budget = Budget()
    if api_key in _OBJECTS_MAX:
        budget.objects = _OBJECTS_MAX[api_key]
    read = _api_reader(api_key, version, "Request")
    return decode(read, view, position, stray_bytes_max=stray_bytes_max, budget=budget)


def _is_of_all_topics(version: int, view: Buffer, position: int) -> bool:
    """Whether a Metadata request begins with the null list, in the one byte of the flexible encoding.

    librdkafka writes it in four bytes (librdkafka#5049), which pushes three past the request's end; Kafka lets them be.
    """
    return version >= APIS[_METADATA].flexible_first and view[position : position + 1] == b"\0"


def decode_response(api_key: int, version: int, view: Buffer, position: int = 0) -> Any:
    """The response whose body starts at `position` and fills the rest of `view`."""
    return decode(_api_reader(api_key, version, "Response"), view, position)


def encode_request(api_key: int, version: int, message: Any) -> bytes:
    """A request's body, without header or frame length."""
    return encode(_api_writer(api_key, version, "Request"), message)


def encode_response(api_key: int, version: int, message: Any) -> bytes:
    """A response's body, without header or frame length."""
    return encode(_api_writer(api_key, version, "Response"), message)


def frame_response(api_key: int, version: int, message: Any, head: bytes) -> bytearray:
    """A response as it goes over the wire: its length, its header, its body."""
    frame = bytearray(_LENGTH.size)
    frame += head
    _write(_api_writer(api_key, version, "Response"), message, frame)
    _LENGTH.pack_into(frame, 0, len(frame) - _LENGTH.size)
    return frame


def decode(
    read: Reader, view: Buffer, position: int = 0, *, stray_bytes_max: int = 0, budget: Budget | None = None
) -> Any:
    """The one message that fills `view` from `position` on; no more than `stray_bytes_max` may be left over."""
    try:
        message, end = read(view, position, budget or AmpleBudget())
    except BAD_BYTES as error:
        raise MalformedRequest(f"not a message: {error}") from error
    if not 0 <= len(view) - end <= stray_bytes_max:
        raise MalformedRequest(f"{len(view) - end} bytes after the end of the message")
    return message


def encode(write: Writer, message: Any, head: bytes = b"") -> bytes:
    """The bytes of one message, behind others."""
    out = bytearray(head)
    _write(write, message, out)
    return bytes(out)


def _write(write: Writer, message: Any, out: bytearray) -> None:
    try:
        write(out, message)
    except Exception as error:
        error.add_note(f"while encoding {type(message).__name__} with {write.__code__.co_filename}")
        raise


@cache
def reader_of(module: str, name: str, version: int) -> Reader:
    """What reads the message `name` of `messages/<module>` at `version`."""
    message, classes = _described(module, name, version)
    return compile_reader(message, version, classes)


@cache
def writer_of(module: str, name: str, version: int) -> Writer:
    """What writes the message `name` of `messages/<module>` at `version`."""
    message, classes = _described(module, name, version)
    return compile_writer(message, version, classes)


@cache
def _api_reader(api_key: int, version: int, kind: str) -> Reader:
    api = APIS.get(api_key)
    if api is None or not api.knows(version):
        raise MalformedRequest(f"no API {api_key} in version {version}")
    return reader_of(api.module, api.name + kind, version)


@cache
def _api_writer(api_key: int, version: int, kind: str) -> Writer:
    api = APIS[api_key]
    return writer_of(api.module, api.name + kind, version)


@cache
def _messages(module: str) -> dict[str, Message]:
    return {message.name: message for message in load_messages(module)}


def _described(module: str, name: str, version: int) -> tuple[Message, Classes]:
    message = _messages(module)[name]
    assert message.versions.cover(version), f"{name} has no version {version}"
    classes = import_module(f"headrace.wire.messages.{module}")
    return message, {struct: getattr(classes, struct) for struct in message.structs}
