"""Columns become Arrow record batches, in just the types that Spark declared."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.spark.arrow_cells import binary_array, string_array
from headrace.spark.columns import Cells, Columns
from headrace.spark.row_schema import CONNECTOR_COLUMNS, is_value_struct
from headrace.spark.values import ValueReader

_US_PER_MS = 1000
_MS_MAX = (2**63 - 1) // _US_PER_MS
"""Timestamps beyond what Spark's microseconds hold, the year 294247, are taken back to it."""


def to_arrow(columns: Columns, schema: pa.Schema, topic: str, partition: int, values: ValueReader) -> pa.RecordBatch:
    """The records as a record batch of just this schema."""
    typed = values.read(columns.values)
    arrays = []
    for field in schema:
        if field.name in CONNECTOR_COLUMNS and not is_value_struct(field):
            arrays.append(_ARRAYS[field.name](columns, field.type, topic, partition))
        else:
            arrays.append(typed[field.name])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cell_array(cells: Cells, data_type: pa.DataType) -> pa.Array:
    """Byte strings in the type asked for."""
    is_text = pa.types.is_string(data_type) or pa.types.is_large_string(data_type)
    array = string_array(cells) if is_text else binary_array(cells)
    return array if array.type == data_type else array.cast(data_type)


def _moment_array(timestamps_ms: npt.NDArray[np.int64], data_type: pa.DataType) -> pa.Array:
    """Milliseconds as Spark's microseconds."""
    return pa.array(np.clip(timestamps_ms, -_MS_MAX, _MS_MAX) * _US_PER_MS).view(data_type)


def _header_array(columns: Columns, data_type: pa.DataType) -> pa.Array:
    """The headers of each record; null where there are none, as the connector has it."""
    headers = columns.headers
    parts = pa.StructArray.from_arrays(
        [string_array(headers.keys), binary_array(headers.values)], fields=list(data_type.value_type)
    )
    has_headers = np.diff(headers.lists) > 0
    validity = None if has_headers.all() else pa.py_buffer(np.packbits(has_headers, bitorder="little"))
    return pa.Array.from_buffers(data_type, columns.count, [validity, pa.py_buffer(headers.lists)], children=[parts])


_ARRAYS: dict[str, Callable[[Columns, pa.DataType, str, int], pa.Array]] = {
    "key": lambda columns, data_type, topic, partition: _cell_array(columns.keys, data_type),
    "value": lambda columns, data_type, topic, partition: _cell_array(columns.values, data_type),
    "topic": lambda columns, data_type, topic, partition: pa.repeat(pa.scalar(topic, data_type), columns.count),
    "partition": lambda columns, data_type, topic, partition: pa.array(np.full(columns.count, partition, np.int32)),
    "offset": lambda columns, data_type, topic, partition: pa.array(columns.offsets),
    "timestamp": lambda columns, data_type, topic, partition: _moment_array(columns.timestamps_ms, data_type),
    "timestampType": lambda columns, data_type, topic, partition: pa.array(columns.timestamp_types),
    "headers": lambda columns, data_type, topic, partition: _header_array(columns, data_type),
}
"""How each of the connector's columns is made: of the records, the type asked for, the topic and the partition."""
