"""Columns of byte strings as Arrow arrays, where they lie."""

import pyarrow as pa

from headrace.spark.columns import Cells


def binary_array(cells: Cells) -> pa.Array:
    """Byte strings, as they are and where they are."""
    return pa.Array.from_buffers(pa.binary(), cells.row_count, _buffers(cells), cells.null_count)


def string_array(cells: Cells) -> pa.Array:
    """The same as text; what is not UTF-8 becomes replacement characters, as Java's deserializer has it."""
    array = pa.Array.from_buffers(pa.string(), cells.row_count, _buffers(cells), cells.null_count)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        texts = [None if cell is None else cell.decode("utf-8", "replace") for cell in binary_array(cells).to_pylist()]
        return pa.array(texts, pa.string())
    return array


def _buffers(cells: Cells) -> list[pa.Buffer | None]:
    validity = None if cells.validity is None else pa.py_buffer(cells.validity)
    return [validity, pa.py_buffer(cells.offsets), pa.py_buffer(cells.data)]
