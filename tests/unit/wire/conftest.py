"""kio as the oracle: random messages of every API and version, as kio's class, as ours, and as bytes."""

import datetime as dt
import io
import random
import string
import uuid
from collections.abc import Callable
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Any, NamedTuple

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import classify_field, get_field_tag
from kio.static.constants import EntityType

from headrace.model.ids import ZERO_ID

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
ALPHABET = string.ascii_letters + string.digits + "._-äß漢🙂"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Sample(NamedTuple):
    """One random message: the bytes kio wrote and the value we should read."""

    data: bytes
    ours: Any


def kio_class(api_key: int, version: int, kind: str) -> Any:
    """The class kio has for one message in one version."""
    path = schema_name_map[api_key_map[api_key]][version][EntityType[kind]]
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@cache
def kio_fields(cls: Any) -> list[tuple[Any, Any]]:
    """A kio class's fields with what kio's introspection says of each; asking it anew each time takes seconds."""
    return [(field, classify_field(field)) for field in fields(cls)]


def random_instance(cls: Any, chance: random.Random) -> Any:
    """A random instance of a kio class, with defaults and nulls as likely as values."""
    values = {}
    for field, kind in kio_fields(cls):
        if field.default is not MISSING and chance.random() < 0.3:
            continue
        nullable = isinstance(field.type, UnionType) and get_field_tag(field) is None
        if nullable and chance.random() < 0.3:
            values[field.name] = None
        elif kind.is_array:
            values[field.name] = tuple(random_value(field, kind, chance) for _ in range(chance.choice((0, 1, 2, 3))))
        else:
            values[field.name] = random_value(field, kind, chance)
    return cls(**values)


def random_value(field: Any, kind: Any, chance: random.Random) -> Any:
    """One random value of a field's (element) type."""
    kafka_type = field.metadata.get("kafka_type")
    if kafka_type is None:
        return random_instance(kind.type_, chance)
    if kafka_type in INTEGER_BITS:
        half = 2 ** (INTEGER_BITS[kafka_type] - 1)
        return chance.choice((-half, -1, 0, 1, half - 1, chance.randrange(-half, half)))
    return RANDOM_VALUES[kafka_type](chance)


RANDOM_VALUES: dict[str, Callable[[random.Random], Any]] = {
    "bool": lambda chance: chance.random() < 0.5,
    "uint16": lambda chance: chance.choice((0, 65535, chance.randrange(65536))),
    "float64": lambda chance: chance.uniform(-1e9, 1e9),
    "string": lambda chance: "".join(chance.choices(ALPHABET, k=chance.choice((0, 1, 7, 63, 130)))),
    "bytes": lambda chance: chance.randbytes(chance.choice((0, 1, 126, 127, 200))),
    "records": lambda chance: chance.randbytes(chance.choice((0, 1, 126, 127, 20_000))),
    "uuid": lambda chance: chance.choice((None, uuid.UUID(int=chance.getrandbits(128)))),
    "error_code": lambda chance: chance.choice(list(ErrorCode)),
    "timedelta_i32": lambda chance: dt.timedelta(milliseconds=chance.randrange(-(2**31), 2**31)),
    "timedelta_i64": lambda chance: dt.timedelta(milliseconds=chance.randrange(2**40)),
    "datetime_i64": lambda chance: EPOCH + dt.timedelta(seconds=chance.randrange(2**32)),
}


def to_ours(value: Any, classes: Any, prefix: str) -> Any:
    """A kio value as ours: plain numbers for codes and times, the zero UUID for none, our classes for kio's."""
    if isinstance(value, tuple):
        return tuple(to_ours(item, classes, prefix) for item in value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.datetime):
        return (value - EPOCH) // dt.timedelta(milliseconds=1)
    if not hasattr(value, "__flexible__"):
        return value
    name = type(value).__name__
    cls = getattr(classes, name, None) or getattr(classes, prefix + name)
    return cls(**dict(field_to_ours(value, field, kind, classes, prefix) for field, kind in kio_fields(type(value))))


def field_to_ours(owner: Any, field: Any, kind: Any, classes: Any, prefix: str) -> tuple[str, Any]:
    """One field of a kio instance under our name and with our value."""
    kafka_type = field.metadata.get("kafka_type") or ""
    is_time = kafka_type.startswith(("timedelta", "datetime"))
    value = to_ours(getattr(owner, field.name), classes, prefix)
    if kafka_type == "uuid" and kind.is_array and value is not None:
        value = tuple(item or ZERO_ID for item in value)
    elif kafka_type == "uuid" and not kind.is_array:
        value = value or ZERO_ID
    elif is_time and value is None:
        value = -1
    return field.name.rstrip("_") + "_ms" * is_time, value


def write_with_kio(instance: Any) -> bytes:
    """The bytes kio writes for an instance."""
    with io.BytesIO() as buffer:
        entity_writer(type(instance))(buffer, instance)
        return buffer.getvalue()


@pytest.fixture(scope="session")
def read_with_kio() -> Callable[[int, int, str, bytes], Any]:
    """Reads bytes of (api_key, version, "request"/"response") with kio and gives the message as ours."""

    def read(api_key: int, version: int, kind: str, data: bytes) -> Any:
        instance, size = entity_reader(kio_class(api_key, version, kind))(data, 0)
        assert size == len(data)
        return to_ours(instance, import_module(f"headrace.wire.messages.{api_key_map[api_key]}"), kind.capitalize())

    return read


@pytest.fixture(scope="session")
def sample() -> Callable[[int, int, str, int], Sample]:
    """Makes the random message of (api_key, version, "request"/"response", seed)."""

    def make(api_key: int, version: int, kind: str, seed: int) -> Sample:
        chance = random.Random(f"{api_key} {version} {kind} {seed}")
        instance = random_instance(kio_class(api_key, version, kind), chance)
        classes = import_module(f"headrace.wire.messages.{api_key_map[api_key]}")
        return Sample(write_with_kio(instance), to_ours(instance, classes, kind.capitalize()))

    return make
