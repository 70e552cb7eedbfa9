"""Records as columns: what the decoder makes of bytes and Arrow arrays are made of, with nothing of either in it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

COLUMN_NAMES = frozenset({"key", "value", "offset", "timestamp", "timestampType", "headers"})
"""What can be wanted of a record; its topic and partition are known without looking."""


class Cells(NamedTuple):
    """A column of byte strings in Arrow's layout: cell i is data[offsets[i]:offsets[i + 1]]."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int32]
    validity: npt.NDArray[np.uint8] | None
    """One bit per cell, lowest first, 0 where the cell is null; None if there is no null."""
    null_count: int

    @property
    def row_count(self) -> int:
        """How many cells there are."""
        return len(self.offsets) - 1

    def is_valid(self, index: int) -> bool:
        """Whether a cell is more than null."""
        return self.validity is None or bool(self.validity[index >> 3] >> (index & 7) & 1)

    def cell(self, index: int) -> bytes | None:
        """One cell's bytes; None if it is null."""
        if not self.is_valid(index):
            return None
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()


class HeaderCells(NamedTuple):
    """The headers of all records: record i has those from lists[i] to lists[i + 1]."""

    lists: npt.NDArray[np.int32]
    keys: Cells
    values: Cells


def _no_numbers() -> npt.NDArray[np.int64]:
    return np.zeros(0, np.int64)


def _no_cells() -> Cells:
    return Cells(np.zeros(0, np.uint8), np.zeros(1, np.int32), None, 0)


def _no_headers() -> HeaderCells:
    return HeaderCells(np.zeros(1, np.int32), _no_cells(), _no_cells())


@dataclass(slots=True, kw_only=True)
class Columns:
    """The records of one partition in order; columns that were not wanted are empty."""

    count: int
    next_offset: int
    """Where to go on reading: behind gaps, control batches and aborted ones; the start if nothing whole came."""
    offsets: npt.NDArray[np.int64] = field(default_factory=_no_numbers)
    timestamps_ms: npt.NDArray[np.int64] = field(default_factory=_no_numbers)
    timestamp_types: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """0 where the producer set the timestamp, 1 where the broker did."""
    keys: Cells = field(default_factory=_no_cells)
    values: Cells = field(default_factory=_no_cells)
    headers: HeaderCells = field(default_factory=_no_headers)
