"""Serializers by name or as functions: what makes bytes of keys and values, and the other way round.

A serializer is "json", "str", "bytes", a function of one value, or an object with a `serialize` (or `deserialize`)
method as kafka-python has it; in a file written for Java also one of the classes that Kafka's clients bring with them.
None is never serialized: it is no key, or a tombstone.
"""

from __future__ import annotations

import inspect
import struct
import uuid
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import msgspec

from headrace.client.fault import BadOption

ToBytes = Callable[[Any], bytes]
FromBytes = Callable[[bytes], Any]


def _encode_text(text: str) -> bytes:
    return text.encode()


def _decode_text(raw: bytes) -> str:
    return bytes(raw).decode()


def _decode_uuid(raw: bytes) -> uuid.UUID:
    return uuid.UUID(bytes(raw).decode())


def _nothing(value: Any) -> Any:
    raise ValueError(f"{value!r} is given where nothing can be")


def _packed(form: str) -> tuple[ToBytes, FromBytes]:
    layout = struct.Struct(form)
    return layout.pack, lambda raw: layout.unpack(raw)[0]


_JAVA: dict[str, tuple[ToBytes | None, FromBytes | None]] = {
    "String": (_encode_text, _decode_text),
    "ByteArray": (None, None),
    "Bytes": (None, None),
    "ByteBuffer": (None, None),
    "Short": _packed(">h"),
    "Integer": _packed(">i"),
    "Long": _packed(">q"),
    "Float": _packed(">f"),
    "Double": _packed(">d"),
    "Boolean": _packed("?"),
    "UUID": (lambda value: str(value).encode(), _decode_uuid),
    "Void": (_nothing, _nothing),
}
"""The types for which Kafka's clients have a class: how Java writes and reads them."""
_JAVA_PACKAGE = "org.apache.kafka.common.serialization."

SERIALIZERS: dict[str, ToBytes | None] = {"bytes": None, "str": _encode_text, "json": msgspec.json.encode}
DESERIALIZERS: dict[str, FromBytes | None] = {"bytes": None, "str": _decode_text, "json": msgspec.json.decode}


def serializer(option: str, given: Any) -> Callable[[str, Any], bytes | None] | None:
    """What `key_serializer` or `value_serializer` says, as a function of topic and value; None: leave bytes alone."""
    plain = _chosen(option, given, SERIALIZERS)
    if plain is None:
        return None
    method = getattr(plain, "serialize", None)
    if method is None:
        return lambda _, value: None if value is None else plain(value)
    if _parameters(method) == _TOPIC_HEADERS_DATA:
        return lambda topic, value: None if value is None else method(topic, None, value)
    return lambda topic, value: None if value is None else method(topic, value)


def deserializer(option: str, given: Any) -> FromBytes | None:
    """What `key_deserializer` or `value_deserializer` says, as a function; None: leave bytes alone."""
    plain: FromBytes | None = _chosen(option, given, DESERIALIZERS)
    method = getattr(plain, "deserialize", None)
    if method is None:
        return plain
    if _parameters(method) == _TOPIC_HEADERS_DATA:
        return lambda raw: method(None, None, raw)
    return lambda raw: method(None, raw)


_TOPIC_HEADERS_DATA = 3


def _parameters(method: Callable[..., Any]) -> int:
    return len(inspect.signature(method).parameters)


def _chosen(option: str, given: Any, named: dict[str, Any]) -> Any:
    if given is None or (not isinstance(given, str) and (callable(given) or hasattr(given, _method(named)))):
        return given
    if isinstance(given, str) and given in named:
        return named[given]
    suffix = "Serializer" if named is SERIALIZERS else "Deserializer"
    java = str(given).removeprefix(_JAVA_PACKAGE).removesuffix(suffix)
    if str(given) == f"{_JAVA_PACKAGE}{java}{suffix}" and java in _JAVA:
        return _JAVA[java][named is DESERIALIZERS]
    near = get_close_matches(str(given), named, n=1, cutoff=0.5)
    hint = f'Did you mean "{near[0]}"?' if near else f"Use a function, or one of {', '.join(named)}."
    raise BadOption(f"{option}={given!r} is no {suffix.lower()}", hint)


def _method(named: dict[str, Any]) -> str:
    return "serialize" if named is SERIALIZERS else "deserialize"
