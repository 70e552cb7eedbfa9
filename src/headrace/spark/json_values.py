"""JSON values as typed columns: all at once where that works, one by one where it does not.

A kernel sorts out the values that could confuse a parser of many (json_kernels.py). The others are parsed in blocks
(json_block.py). A block with anything wrong in it is cut into smaller ones, and what is left in the end is read value
by value (json_records.py), which also finds the reasons. So good records cost the same whatever lies between them, and
what a record gives never depends on its neighbours.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.spark import json_block, json_columns
from headrace.spark import json_kernels as kernels
from headrace.spark.arrow_cells import binary_array
from headrace.spark.columns import Cells
from headrace.spark.compiled import ByteArray, Int32Array, reading
from headrace.spark.json_block import BlockParser, NotTogether
from headrace.spark.json_columns import FlatParser
from headrace.spark.json_records import BadValue, read_object, row_converter
from headrace.spark.layout import Layout

BLOCK_BYTES = 4 * 1024 * 1024
"""Parsed at once: enough that the start of a parse does not count, few enough that one bad value spoils little."""
CUTS = 16
"""Into how many a block is cut that cannot be parsed."""
ALONE = 64
"""Values up to this number are read one by one rather than cut again."""

_NO_BYTES = reading(np.zeros(0, np.uint8))


class JsonReader:
    """Reads values that are JSON objects."""

    __slots__ = ("_block_parser", "_flat_parser", "_layout", "_row_of")

    def __init__(self, schema: pa.Schema, corrupt_column: str) -> None:
        self._layout = Layout(schema, corrupt_column)
        fields = self._layout.fields
        self._row_of = row_converter(fields)
        is_flat = all(map(json_columns.can_parse, fields.values()))
        in_blocks = not is_flat and all(map(json_block.can_parse, fields.values()))
        self._flat_parser = FlatParser(fields) if is_flat else None
        self._block_parser = BlockParser(fields) if in_blocks else None

    def read(self, values: Cells) -> Mapping[str, pa.Array]:
        """The columns of the schema that come from the value."""
        if not self._layout.fields and not self._layout.wants_faults:
            return self._layout.columns(values, {}, {})
        work = _Reading(self._layout.fields, values)
        if self._flat_parser is not None:
            arrays, odd = self._flat_parser.parse(values)
            work.add(np.arange(values.row_count), arrays)
            self._read_alone(work, odd)
        else:
            self._read_screened(work)
        return self._layout.columns(values, work.arrays(), work.faults)

    def _read_screened(self, work: "_Reading") -> None:
        """Sort the values out, and read in blocks what can be."""
        values, kinds = work.values, np.empty(work.values.row_count, np.uint8)
        validity = _NO_BYTES if values.validity is None else reading(values.validity)
        whole = kernels.screen(reading(values.data), reading(values.offsets), validity, kinds)
        if self._block_parser is None:
            self._read_alone(work, np.flatnonzero(kinds != kernels.NULL))
            return
        rows = np.flatnonzero(kinds == kernels.WHOLE)
        if whole == values.row_count:
            self._read_blocks(work, values.data, values.offsets, rows)
        elif whole:
            self._read_blocks(work, *_gathered(values, rows), rows)
        self._read_alone(work, np.flatnonzero((kinds != kernels.NULL) & (kinds != kernels.WHOLE)))

    def _read_blocks(self, work: "_Reading", data: ByteArray, ends: Int32Array, rows: npt.NDArray[np.int64]) -> None:
        """Read values that lie one behind the other, block by block."""
        first = 0
        while first < len(rows):
            last = int(np.searchsorted(ends, int(ends[first]) + BLOCK_BYTES, side="right")) - 1
            last = min(max(last, first + 1), len(rows))
            self._read_block(work, data, ends, rows, first, last)
            first = last

    def _read_block(
        self, work: "_Reading", data: ByteArray, ends: Int32Array, rows: npt.NDArray[np.int64], first: int, last: int
    ) -> None:
        """Read some of them at once, or cut them up."""
        assert self._block_parser is not None, "without a parser nothing is read in blocks"
        try:
            arrays = self._block_parser.parse(data[ends[first] : ends[last]], last - first)
        except NotTogether:
            if last - first <= ALONE:
                self._read_alone(work, rows[first:last])
                return
            step = -(-(last - first) // CUTS)
            for cut in range(first, last, step):
                self._read_block(work, data, ends, rows, cut, min(cut + step, last))
        else:
            work.add(rows[first:last], arrays.values())

    def _read_alone(self, work: "_Reading", rows: npt.NDArray[np.int64]) -> None:
        """Read values one by one; those that are bad leave their reasons."""
        good, cells = [], []
        for row in rows.tolist():
            try:
                cells.append(self._row_of(read_object(work.values.cell(row) or b"")))
            except BadValue as fault:
                work.faults[row] = str(fault)
            else:
                good.append(row)
        columns: Iterable[tuple[Any, ...]] = zip(*cells, strict=True) if cells else ()
        types = self._layout.fields.values()
        if good and types:
            arrays = [pa.array(column, data_type) for column, data_type in zip(columns, types, strict=True)]
            work.add(np.array(good), arrays)


class _Reading:
    """What has been read so far: pieces of columns, the rows they are for, and what went wrong."""

    __slots__ = ("_fields", "_pieces", "_rows", "faults", "values")

    def __init__(self, fields: Mapping[str, pa.DataType], values: Cells) -> None:
        self.values = values
        self.faults: dict[int, str] = {}
        self._fields = fields
        self._rows: list[npt.NDArray[np.int64]] = []
        self._pieces: list[list[pa.Array]] = []

    def add(self, rows: npt.NDArray[np.int64], arrays: Iterable[pa.Array]) -> None:
        """Take in some rows, the fields in order; what comes later counts."""
        self._rows.append(rows)
        self._pieces.append(list(arrays))

    def arrays(self) -> dict[str, pa.Array]:
        """All rows in their order; those that were not read are null."""
        if not self._pieces:
            return {name: pa.nulls(self.values.row_count, data_type) for name, data_type in self._fields.items()}
        if len(self._pieces) == 1 and len(self._rows[0]) == self.values.row_count and not self.faults:
            return dict(zip(self._fields, self._pieces[0], strict=True))
        rows = np.concatenate(self._rows)
        places = np.full(self.values.row_count, -1, np.int64)
        places[rows] = np.arange(len(rows))
        places[list(self.faults)] = -1
        indices = pa.array(places, mask=places < 0)
        columns = [pa.concat_arrays(pieces).take(indices) for pieces in zip(*self._pieces, strict=True)]
        return dict(zip(self._fields, columns, strict=True))


def _gathered(values: Cells, rows: npt.NDArray[np.int64]) -> tuple[ByteArray, Int32Array]:
    """Some of the values, one behind the other."""
    _, ends, data = binary_array(values).take(pa.array(rows)).buffers()
    return np.frombuffer(data, np.uint8), np.frombuffer(ends, np.int32)[: len(rows) + 1]
