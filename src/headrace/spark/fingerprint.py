"""Whether a task has the same rows as before: sums over their bytes, the same in whatever order they come."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

_SUMS = struct.Struct("<5Q")
_WORD = (1 << 64) - 1


class Fingerprint:
    """Takes rows in block by block; a shuffle may bring them in another order the next time."""

    def __init__(self) -> None:
        self.rows = 0
        self._bytes = [0, 0]
        self._sums = [0, 0]

    def add(self, keys: pa.Array, values: pa.Array) -> None:
        """Take in the keys and values of some rows."""
        self.rows += len(values)
        for place, column in enumerate((keys, values)):
            data = _data(column)
            self._bytes[place] += len(data)
            self._sums[place] += int(data.sum(dtype=np.uint64))

    @property
    def number(self) -> int:
        """Four bytes for all of it."""
        return zlib.crc32(_SUMS.pack(self.rows, *(number & _WORD for number in (*self._bytes, *self._sums))))


def _data(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """The bytes of all cells of a binary column, one after the other."""
    if not len(column) or column.null_count == len(column):
        return np.empty(0, np.uint8)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)
    if data is None:
        return np.empty(0, np.uint8)
    return np.frombuffer(data, np.uint8)[ends[column.offset] : ends[column.offset + len(column)]]
