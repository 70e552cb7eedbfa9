"""Avro values as typed columns, by a schema that the query gives.

Each value is one record in Avro's binary form, or, with avroFraming=confluent, that behind a zero byte and the four
bytes of a schema's number, which is not looked up. Reading is by fastavro, one value at a time.
"""

import struct
from collections.abc import Callable, Mapping
from decimal import DecimalException
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa

from headrace.client.fault import BadOption
from headrace.spark.arrow_cells import binary_array
from headrace.spark.avro_schema import read_schema
from headrace.spark.columns import Cells
from headrace.spark.layout import Layout

Adapt = Callable[[Any], Any]

FRAMINGS = {"none": 0, "confluent": 5}
"""Bytes in front of the record, by the option avroFraming."""

_READ_FAULTS = (
    *(EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, StopIteration, MemoryError),
    *(struct.error, DecimalException),
)
"""What fastavro raises over bytes that are not of the schema."""
_ARROW_FAULTS = (OverflowError, TypeError, ValueError)
"""What Arrow raises over a value that is not of a column's type, in its own classes derived from these."""


class AvroReader:
    """Reads values that are Avro records."""

    __slots__ = ("_adapts", "_frame_bytes", "_layout", "_schema")

    def __init__(self, schema: pa.Schema, corrupt_column: str, avro_schema: str | None, framing: str) -> None:
        if framing.lower() not in FRAMINGS:
            raise BadOption(f"The Avro framing {framing} is unknown", f"The framings are {', '.join(FRAMINGS)}.")
        self._frame_bytes = FRAMINGS[framing.lower()]
        self._layout = Layout(schema, corrupt_column)
        self._schema = read_schema(avro_schema)
        there = [field["name"] for field in self._schema["fields"]]
        for name in self._layout.fields:
            if name not in there:
                raise BadOption(
                    f"The column {name} is no field of the Avro schema", f"Its fields are {', '.join(there)}."
                )
        self._adapts = {name: _adapt_to(data_type) for name, data_type in self._layout.fields.items()}

    def read(self, values: Cells) -> Mapping[str, pa.Array]:
        """The columns of the schema that come from the value."""
        faults: dict[int, str] = {}
        rows: list[Mapping[str, Any] | None] = [None] * values.row_count
        for row, value in enumerate(binary_array(values).to_pylist()):
            if value is None:
                continue
            try:
                rows[row] = self._read_one(value)
            except _READ_FAULTS as fault:
                faults[row] = f"The value is not Avro of this schema: {str(fault) or 'it ends too early'}."
        return self._layout.columns(values, self._fitting(rows, faults), faults)

    def _read_one(self, value: bytes) -> dict[str, Any]:
        """The wanted fields of one record."""
        if self._frame_bytes and (len(value) < self._frame_bytes or value[0]):
            raise ValueError("it does not begin with a zero byte and the number of a schema")
        source = BytesIO(value)
        source.seek(self._frame_bytes)
        found: Any = fastavro.schemaless_reader(source, self._schema, None)
        left = len(value) - source.tell()
        if left:
            raise ValueError(f"{left} bytes are left behind the record")
        return {name: None if found[name] is None else adapt(found[name]) for name, adapt in self._adapts.items()}

    def _arrays(self, rows: list[Mapping[str, Any] | None]) -> dict[str, pa.Array]:
        """The fields as columns; rows that are None are null in all of them."""
        return {
            name: pa.array([None if row is None else row[name] for row in rows], data_type)
            for name, data_type in self._layout.fields.items()
        }

    def _fitting(self, rows: list[Mapping[str, Any] | None], faults: dict[int, str]) -> dict[str, pa.Array]:
        """The fields as columns; rows that hold something a column's type does not are bad."""
        try:
            return self._arrays(rows)
        except _ARROW_FAULTS:
            for number, row in enumerate(rows):
                try:
                    self._arrays([row])
                except _ARROW_FAULTS as fault:
                    rows[number] = None
                    faults[number] = f"The value does not fit the columns: {fault}."
        return self._arrays(rows)


def _adapt_to(data_type: pa.DataType) -> Adapt:
    """What is done to a value that fastavro found, to make it one that Arrow takes for a type."""
    if pa.types.is_map(data_type):
        item = _null_or(_adapt_to(data_type.item_type))
        return lambda found: [(key, item(part)) for key, part in found.items()]
    if pa.types.is_list(data_type):
        element = _null_or(_adapt_to(data_type.value_type))
        return lambda found: [element(part) for part in found]
    if pa.types.is_struct(data_type):
        parts = [(part.name, _null_or(_adapt_to(part.type))) for part in data_type]
        return lambda found: {name: adapt(found.get(name)) for name, adapt in parts}
    if pa.types.is_string(data_type):
        return lambda found: str(found) if isinstance(found, UUID) else found
    return lambda found: found


def _null_or(adapt: Adapt) -> Adapt:
    return lambda found: None if found is None else adapt(found)
