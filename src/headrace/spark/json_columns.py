"""Flat JSON objects as columns: the kernels of object_kernels.py and what is left to do behind them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark import object_kernels as kernels
from headrace.spark.columns import Cells
from headrace.spark.compiled import ByteArray, reading
from headrace.spark.moments import MOMENTS, read_moments

_READ_AS = {
    pa.bool_(): kernels.BOOLEAN,
    pa.int8(): kernels.INTEGER,
    pa.int16(): kernels.INTEGER,
    pa.int32(): kernels.INTEGER,
    pa.int64(): kernels.INTEGER,
    pa.float32(): kernels.FLOATING,
    pa.float64(): kernels.FLOATING,
    pa.string(): kernels.TEXT,
    **dict.fromkeys(MOMENTS, kernels.TEXT),
}
"""How the kernel reads each type it can."""

_NO_BYTES = reading(np.zeros(0, np.uint8))
Rows = npt.NDArray[np.int64]


class _Found(NamedTuple):
    """What the kernel wrote down of one field: a number per row, and what kind of thing it is."""

    data: ByteArray
    numbers: npt.NDArray[np.int64]
    found: ByteArray

    def mask(self) -> npt.NDArray[np.bool_] | None:
        """Where there is nothing; None if there is something everywhere."""
        absent = (self.found == kernels.ABSENT) | (self.found == kernels.NULL)
        return absent if absent.any() else None


class FlatParser:
    """Reads objects by a schema of simple types."""

    __slots__ = ("_fields", "_kinds", "_limits", "_name_ends", "_names")

    def __init__(self, fields: Mapping[str, pa.DataType]) -> None:
        self._fields = dict(fields)
        names = [name.encode() for name in fields]
        self._names = reading(np.frombuffer(b"".join(names), np.uint8))
        self._name_ends = reading(np.cumsum([0, *map(len, names)], dtype=np.int32))
        self._kinds = reading(np.array([_READ_AS[data_type] for data_type in fields.values()], np.int64))
        self._limits = reading(np.array([_limit(data_type) for data_type in fields.values()], np.int64))

    def parse(self, values: Cells) -> tuple[list[pa.Array], Rows]:
        """The fields of all values, and the rows that have to be read with more care."""
        count, width = values.row_count, len(self._fields)
        numbers, found = np.empty((width, count), np.int64), np.zeros((width, count), np.uint8)
        outcome, seen = np.empty(count, np.uint8), np.full((kernels.KEYS_REMEMBERED, 3), -1, np.int64)
        data = reading(values.data)
        kernels.read_objects(
            *(data, reading(values.offsets), _NO_BYTES if values.validity is None else reading(values.validity)),
            *(self._names, self._name_ends, self._kinds, self._limits),
            *(seen, numbers, numbers.view(np.float64), found, outcome),
        )
        arrays, odd = [], [np.flatnonzero(outcome == kernels.ODD)]
        for line, data_type in enumerate(self._fields.values()):
            array, faults = _array(_Found(data, numbers[line], found[line]), data_type)
            arrays.append(array)
            odd.append(faults)
        return arrays, np.unique(np.concatenate(odd)) if any(map(len, odd)) else odd[0]


def can_parse(data_type: pa.DataType) -> bool:
    """Whether a type is one of the simple ones."""
    return data_type in _READ_AS


def _limit(data_type: pa.DataType) -> int:
    """The greatest number of a whole-number type; of no use to the others."""
    return int(np.iinfo(data_type.to_pandas_dtype()).max) if pa.types.is_integer(data_type) else 0


def _array(field: _Found, data_type: pa.DataType) -> tuple[pa.Array, Rows]:
    """One field's array, and the rows in which it was not what it seemed."""
    none = np.zeros(0, np.int64)
    if data_type == pa.string():
        return _texts(field), none
    if data_type in MOMENTS:
        return read_moments(_texts(field), data_type)
    if pa.types.is_floating(data_type):
        return _floats(field, data_type)
    return pa.array(field.numbers.astype(data_type.to_pandas_dtype()), data_type, mask=field.mask()), none


def _texts(field: _Found) -> pa.Array:
    """The texts a field's places point to."""
    count = len(field.found)
    room = int((field.numbers[_is_text(field.found)] & 0xFFFFFFFF).sum())
    out, ends = np.empty(room, np.uint8), np.empty(count + 1, np.int32)
    size = kernels.copy_texts(field.data, reading(field.numbers), reading(field.found), out, ends)
    mask = field.mask()
    validity = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), count, [validity, pa.py_buffer(ends), pa.py_buffer(out[:size])])


def _is_text(found: ByteArray) -> npt.NDArray[np.bool_]:
    return np.isin(found, (kernels.PRESENT, kernels.ESCAPED, kernels.INEXACT))


def _floats(field: _Found, data_type: pa.DataType) -> tuple[pa.Array, Rows]:
    """Numbers, those with many digits or an exponent converted from their texts; infinite ones are odd."""
    numbers = field.numbers.view(np.float64)
    rows = np.flatnonzero(field.found == kernels.INEXACT)
    if len(rows):
        numbers = numbers.copy()
        texts = _texts(_Found(field.data, field.numbers[rows], field.found[rows]))
        try:
            numbers[rows] = pc.cast(texts, pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            return pa.nulls(len(numbers), data_type), rows
        rows = rows[~np.isfinite(numbers[rows])]
    array = pa.array(numbers, pa.float64(), mask=field.mask())
    return array if data_type == pa.float64() else array.cast(data_type, safe=False), rows
