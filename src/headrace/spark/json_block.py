"""Many JSON values parsed as one text, by pyarrow; all of them or none.

The parser reads numbers, strings, booleans, lists and structs by itself. What it does not read the way Spark does goes
through a type it does read: dates, timestamps and BINARY through strings, FLOAT through DOUBLE. Maps it cannot read.
"""

import base64
import binascii
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from headrace.spark.compiled import ByteArray
from headrace.spark.moments import MOMENTS, read_moments

_PLAIN = (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64(), pa.string())
_ROW_COUNTER = "\x00"
"""A field nobody has: a text in which no field is looked for would yield no rows to count."""


class NotTogether(Exception):
    """These values cannot be read as one text; read alone, each may be good or bad."""


class BlockParser:
    """Parses texts of objects by one schema."""

    __slots__ = ("_fields", "_options")

    def __init__(self, fields: Mapping[str, pa.DataType]) -> None:
        self._fields = dict(fields)
        wanted = {name: _parsed_type(data_type) for name, data_type in fields.items()} or {_ROW_COUNTER: pa.bool_()}
        self._options = pa.json.ParseOptions(
            explicit_schema=pa.schema(list(wanted.items())), unexpected_field_behavior="ignore"
        )

    def parse(self, text: ByteArray, count: int) -> dict[str, pa.Array]:
        """The fields of the `count` objects in a text; NotTogether if there is anything about it."""
        read_options = pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        try:
            table = pa.json.read_json(
                pa.BufferReader(pa.py_buffer(text)), read_options=read_options, parse_options=self._options
            )
        except pa.ArrowInvalid as fault:
            raise NotTogether from fault
        if table.num_rows != count:
            raise NotTogether
        try:
            table.validate(full=True)  # A decimal of too many digits passes the parser.
        except pa.ArrowInvalid as fault:
            raise NotTogether from fault
        return {
            name: _finish(table.column(name).combine_chunks(), data_type) for name, data_type in self._fields.items()
        }


def can_parse(data_type: pa.DataType) -> bool:
    """Whether a type can be read in this way at all."""
    if pa.types.is_struct(data_type):
        return all(can_parse(part.type) for part in data_type)
    if pa.types.is_list(data_type):
        return can_parse(data_type.value_type)
    return (
        data_type in _PLAIN
        or data_type in MOMENTS
        or data_type in (pa.binary(), pa.float32())
        or pa.types.is_decimal128(data_type)
    )


def _parsed_type(data_type: pa.DataType) -> pa.DataType:
    """The type the parser is asked for, to make this one of it."""
    if pa.types.is_struct(data_type):
        return pa.struct([part.with_type(_parsed_type(part.type)) for part in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_parsed_type(data_type.value_type)))
    if data_type in MOMENTS or data_type == pa.binary():
        return pa.string()
    return pa.float64() if data_type == pa.float32() else data_type


def _finish(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """What was parsed, in the type it is to have."""
    if array.type == data_type:
        return array
    if pa.types.is_struct(data_type):
        parts = [_finish(pc.struct_field(array, [index]), part.type) for index, part in enumerate(data_type)]
        return pa.StructArray.from_arrays(parts, fields=list(data_type), mask=array.is_null())
    if pa.types.is_list(data_type):
        items = _finish(array.values, data_type.value_type)
        return pa.Array.from_buffers(
            data_type, len(array), array.buffers()[:2], array.null_count, array.offset, children=[items]
        )
    if data_type in MOMENTS:
        return _moments(array, data_type)
    if data_type == pa.binary():
        return _decoded(array)
    return array.cast(data_type, safe=False)


def _moments(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Texts as dates or timestamps, all of them."""
    moments, faults = read_moments(array, data_type)
    if len(faults):
        raise NotTogether
    return moments


def _decoded(array: pa.Array) -> pa.Array:
    """Texts of base64 as the bytes they stand for."""
    try:
        cells = [None if text is None else base64.b64decode(text, validate=True) for text in array.to_pylist()]
    except (binascii.Error, ValueError) as fault:
        raise NotTogether from fault
    return pa.array(cells, pa.binary())
