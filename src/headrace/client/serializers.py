"""Serializers by name or as functions: what makes bytes of keys and values, and the other way round.

A serializer is "json", "str", "bytes", a function of one value, or an object with a `serialize` (or `deserialize`)
method as kafka-python has it. None is never serialized: it is no key, or a tombstone.
"""

from __future__ import annotations

import inspect
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
    near = get_close_matches(str(given), named, n=1, cutoff=0.5)
    hint = f'Did you mean "{near[0]}"?' if near else f"Use a function, or one of {', '.join(named)}."
    raise BadOption(f"{option}={given!r} is no serializer", hint)


def _method(named: dict[str, Any]) -> str:
    return "serialize" if named is SERIALIZERS else "deserialize"
