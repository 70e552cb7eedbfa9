"""One JSON value at a time: slower than all at once, and the judge of what is good.

Types are taken as Spark's from_json takes them: whole numbers for whole-number types, any number for DOUBLE, ISO 8601
for dates and timestamps (or, for TIMESTAMP, whole seconds since 1970), base64 for BINARY, and STRING takes anything as
its text. Where it differs, it is mostly stricter. Bad here, and not there: anything behind the object, single quotes,
bytes that are not UTF-8, half a surrogate pair, a number too large for its type, an empty value. One field that does
not fit makes all fields null, where from_json keeps the others. A number taken as text keeps all its digits.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.client.fault import BadOption
from headrace.model.errors import HeadraceError
from headrace.spark import time_kernels
from headrace.spark.compiled import reading

DEPTH_MAX = 500
"""Brackets within brackets; beyond this a value is refused rather than followed."""

Convert = Callable[[Any], Any]

_INTEGER_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_INTEGER_DIGITS_MAX = 20
_NOT_FINITE = {"NaN": "NaN", "Infinity": "Infinity", "+Infinity": "Infinity", "-Infinity": "-Infinity"}
_NOT_FINITE |= {"INF": "Infinity", "+INF": "Infinity", "-INF": "-Infinity"}
"""The strings that from_json takes for a DOUBLE."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,6})?", re.ASCII)
_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?(?:Inf(?:inity)?|NaN)\b', re.DOTALL)
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_CONSTANTS = {"Inf": "Infinity", "-Inf": "-Infinity", "-NaN": "NaN"}
_NO_BYTES = reading(np.zeros(0, np.uint8))


class BadValue(HeadraceError):
    """Why a value could not be read, for its row's `_error` column."""


class Number(str):
    """A number as it was written, so that none of its digits is lost before its type is known."""

    __slots__ = ()


def read_object(value: bytes) -> dict[str, Any]:
    """The object that a value is; BadValue if it is none, or more than one."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise BadValue("The value is not UTF-8 text.") from None
    if not text.strip(" \t\r\n"):
        raise BadValue("The value is empty.")
    if _depth(text) > DEPTH_MAX:
        raise BadValue(f"The value has brackets more than {DEPTH_MAX} deep.")
    try:
        found = _parse(text)
    except json.JSONDecodeError as fault:
        if not _STRING_OR_CONSTANT.search(text):
            raise _not_json(fault) from None
        try:
            found = _parse(_STRING_OR_CONSTANT.sub(lambda token: _CONSTANTS.get(token[0], token[0]), text))
        except json.JSONDecodeError:
            raise _not_json(fault) from None
    if not isinstance(found, dict):
        raise BadValue(f"The value is {_kind(found)}, not a JSON object.")
    return found


def _depth(text: str) -> int:
    """How deep brackets lie in brackets, those in strings not counted; 0 if they cannot be deep at all."""
    if text.count("{") + text.count("[") <= DEPTH_MAX:
        return 0
    depth = deepest = 0
    for token in _STRING_OR_BRACKET.findall(text):
        depth += _STEPS.get(token, 0)
        deepest = max(deepest, depth)
    return deepest


def _parse(text: str) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)


def _not_json(fault: json.JSONDecodeError) -> BadValue:
    return BadValue(f"The value is not JSON: {fault.msg} at character {fault.pos + 1}.")


def row_converter(fields: Mapping[str, pa.DataType]) -> Callable[[dict[str, Any]], list[Any]]:
    """A function that makes a row of an object, the fields in order; BadOption if a type cannot be read from JSON."""
    converters = [(name, converter(data_type, name)) for name, data_type in fields.items()]

    def convert(found: dict[str, Any]) -> list[Any]:
        row = []
        for name, convert_field in converters:
            field = found.get(name)
            try:
                row.append(None if field is None else convert_field(field))
            except BadValue as fault:
                raise BadValue(f"The field {name} {fault}.") from None
        return row

    return convert


def converter(data_type: pa.DataType, name: str) -> Convert:
    """A function that makes what `pa.array` takes of a JSON value that is not null; BadValue if it does not fit."""
    for is_kind, make in _CONVERTERS:
        if is_kind(data_type):
            return make(data_type, name)
    raise BadOption(f"The field {name} is of type {data_type}, which cannot be read from JSON")


def _null_or(convert: Convert) -> Convert:
    return lambda found: None if found is None else convert(found)


def _kind(found: Any) -> str:
    """What kind of JSON value something is, for a sentence."""
    kinds = {Number: "a number", str: "a string", bool: "a boolean", dict: "an object", list: "an array"}
    return kinds.get(type(found), "null")


def _boolean(data_type: pa.DataType, name: str) -> Convert:
    def convert(found: Any) -> bool:
        if not isinstance(found, bool):
            raise BadValue(f"is {_kind(found)}, not a boolean")
        return found

    return convert


def _integer(data_type: pa.DataType, name: str) -> Convert:
    limit = 1 << _INTEGER_BITS[data_type] - 1

    def convert(found: Any) -> int:
        if not isinstance(found, Number):
            raise BadValue(f"is {_kind(found)}, not a whole number")
        if not found.lstrip("-").isdecimal():
            raise BadValue(f"is {found[:40]}, not a whole number")
        if len(found) > _INTEGER_DIGITS_MAX or not -limit <= int(found) < limit:
            raise BadValue(f"is {found[:40]}, which {_INTEGER_BITS[data_type]} bits do not hold")
        return int(found)

    return convert


def _floating(data_type: pa.DataType, name: str) -> Convert:
    def convert(found: Any) -> float:
        if not isinstance(found, Number):
            if isinstance(found, str) and found in _NOT_FINITE:
                return float(_NOT_FINITE[found])
            raise BadValue(f"is {_kind(found)}, not a number")
        number = float(found)
        if number in (np.inf, -np.inf) and found not in _NOT_FINITE:
            raise BadValue(f"is {found[:40]}, which is too large for a DOUBLE")
        return number

    return convert


def _text(data_type: pa.DataType, name: str) -> Convert:
    def convert(found: Any) -> str:
        text = found if isinstance(found, str) else write(found)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadValue("has half a surrogate pair") from None
        return str(text)

    return convert


def write(found: Any) -> str:
    """JSON again, with numbers as they were written and nothing between the parts."""
    if isinstance(found, Number):
        return str(found)
    if isinstance(found, dict):
        return "{" + ",".join(f"{write(key)}:{write(part)}" for key, part in found.items()) + "}"
    if isinstance(found, list):
        return "[" + ",".join(map(write, found)) + "]"
    return json.dumps(found, ensure_ascii=False)


def _decimal(data_type: pa.DataType, name: str) -> Convert:
    unit, context = Decimal(1).scaleb(-data_type.scale), Context(prec=data_type.precision, rounding=ROUND_HALF_UP)

    def convert(found: Any) -> Decimal:
        if not isinstance(found, str) or not _NUMBER.fullmatch(found):
            raise BadValue(f"is {_kind(found)}, not a decimal number")
        try:
            return Decimal(found).quantize(unit, context=context)
        except InvalidOperation:
            raise BadValue(f"is {found[:40]}, which {data_type} does not hold") from None

    return convert


def _moment(kind: int, words: str, *, numbers: bool = False) -> Callable[[pa.DataType, str], Convert]:
    out = np.zeros(1, np.int64)

    def convert(found: Any) -> int:
        if numbers and isinstance(found, Number) and found.lstrip("-").isdecimal() and len(found) <= 13:
            return int(found) * 1_000_000
        if not isinstance(found, str) or isinstance(found, Number):
            raise BadValue(f"is {_kind(found)}, not {words}")
        data = reading(np.frombuffer(found.encode("utf-8", "replace"), np.uint8))
        ends = reading(np.array([0, len(data)], np.int32))
        if time_kernels.read_moments(data, ends, _NO_BYTES, kind, out):
            raise BadValue(f"is {found[:40]!r}, not {words}")
        return int(out[0])

    return lambda data_type, name: convert


def _binary(data_type: pa.DataType, name: str) -> Convert:
    def convert(found: Any) -> bytes:
        if not isinstance(found, str) or isinstance(found, Number):
            raise BadValue(f"is {_kind(found)}, not a base64 string")
        try:
            return base64.b64decode(found, validate=True)
        except (binascii.Error, ValueError):
            raise BadValue("is not base64") from None

    return convert


def _list(data_type: pa.DataType, name: str) -> Convert:
    convert_item = _null_or(converter(data_type.value_type, name))

    def convert(found: Any) -> list[Any]:
        if not isinstance(found, list):
            raise BadValue(f"is {_kind(found)}, not an array")
        return [convert_item(item) for item in found]

    return convert


def _struct(data_type: pa.DataType, name: str) -> Convert:
    parts = [(part.name, _null_or(converter(part.type, f"{name}.{part.name}"))) for part in data_type]

    def convert(found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise BadValue(f"is {_kind(found)}, not an object")
        return {part_name: convert_part(found.get(part_name)) for part_name, convert_part in parts}

    return convert


def _map(data_type: pa.DataType, name: str) -> Convert:
    if data_type.key_type != pa.string():
        raise BadOption(
            f"The field {name} is a map with keys of {data_type.key_type}", "JSON has only strings for keys."
        )
    convert_key, convert_item = converter(pa.string(), name), _null_or(converter(data_type.item_type, name))

    def convert(found: Any) -> list[tuple[str, Any]]:
        if not isinstance(found, dict):
            raise BadValue(f"is {_kind(found)}, not an object")
        return [(convert_key(key), convert_item(item)) for key, item in found.items()]

    return convert


def _nothing(data_type: pa.DataType, name: str) -> Convert:
    return lambda found: None


_CONVERTERS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], Convert]]] = [
    (pa.types.is_boolean, _boolean),
    (lambda data_type: data_type in _INTEGER_BITS, _integer),
    (lambda data_type: data_type in (pa.float32(), pa.float64()), _floating),
    (pa.types.is_string, _text),
    (pa.types.is_large_string, _text),
    (pa.types.is_binary, _binary),
    (pa.types.is_large_binary, _binary),
    (pa.types.is_decimal128, _decimal),
    (pa.types.is_date32, _moment(time_kernels.DATE, "a date")),
    (
        lambda data_type: data_type == pa.timestamp("us", tz="UTC"),
        _moment(time_kernels.MOMENT, "a timestamp", numbers=True),
    ),
    (lambda data_type: data_type == pa.timestamp("us"), _moment(time_kernels.LOCAL_MOMENT, "a timestamp without zone")),
    (pa.types.is_map, _map),
    (pa.types.is_list, _list),
    (pa.types.is_struct, _struct),
    (pa.types.is_null, _nothing),
]
"""How each type is read; the first that fits."""
