"""Leaves out records that are there again: what a sender that was not sure of the first time has sent twice.

Whether a record is a repeat depends on nothing but the log: it is, if one of the `within` offsets before it in its
partition has the same key and the same value. So nothing has to be kept in a checkpoint, and a batch that is run again
leaves out the same records. To know what came before a task, its worker reads that far back, and remembers it for the
next task of the same query.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.spark import repeat_kernels as kernels
from headrace.spark.compiled import reading
from headrace.spark.offsets import Range

if TYPE_CHECKING:
    import numpy.typing as npt

    from headrace.client.records import TopicPartition
    from headrace.spark.columns import Cells, Columns

REMEMBERED_MAX = 64 * 1024 * 1024
"""Bytes of what partitions held, beyond which a worker forgets those it has not seen for longest."""
_NO_BYTES = reading(np.zeros(0, np.uint8))


class Memory:
    """What the last records of a partition were, up to an offset."""

    __slots__ = ("_state", "_tables", "_within", "end")

    def __init__(self, within: int, start: int) -> None:
        self.end = start
        self._within = within
        # No table is ever more than two thirds full.
        rows = 1 << (within + within // 2).bit_length()
        self._tables = tuple(np.full((rows, kernels.WIDTH), kernels.EMPTY, np.int64) for _ in range(2))
        self._state = np.zeros(kernels.STATE_WIDTH, np.int64)

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return sum(table.nbytes for table in self._tables)

    def new_among(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """Which records did not come before; all are remembered."""
        is_new = np.empty(columns.count, np.uint8)
        young, old = self._tables
        kernels.mark_new(
            *_arguments(columns.keys), *_arguments(columns.values), reading(columns.offsets), self._within,
            young, old, self._state, is_new,
        )  # fmt: skip
        self.end = columns.next_offset
        return is_new.view(np.bool_)


class _Name(NamedTuple):
    """Whose memory it is: queries are at different places of the same partition."""

    query: str
    place: TopicPartition
    within: int


_MEMORIES: OrderedDict[_Name, Memory] = OrderedDict()
"""What this worker remembers, those it has used last at the end."""


class Repeats:
    """The memories of one task."""

    def __init__(self, within: int, query: str) -> None:
        self._within = within
        self._query = query
        self._memories: dict[TopicPartition, Memory] = {}

    def before(self, ranges: Sequence[tuple[Range, int]]) -> list[tuple[Range, int]]:
        """What has to be looked at before these ranges are read, each with the leader of its partition."""
        found = []
        for one, leader in ranges:
            memory = self._recalled(one)
            if memory.end < one.start:
                found.append((Range(one.place, memory.end, one.start), leader))
        return found

    def new_among(self, place: TopicPartition, columns: Columns) -> npt.NDArray[np.bool_]:
        """Which records of a partition did not come before."""
        return self._memories[place].new_among(columns)

    def keep(self) -> None:
        """Remember all of it for the next task."""
        for place, memory in self._memories.items():
            _MEMORIES[_Name(self._query, place, self._within)] = memory
        size = sum(memory.nbytes for memory in _MEMORIES.values())
        while size > REMEMBERED_MAX:
            _, oldest = _MEMORIES.popitem(last=False)
            size -= oldest.nbytes

    def _recalled(self, one: Range) -> Memory:
        """What is known of the records before a range; whatever becomes of the task, nobody else has it meanwhile."""
        earliest = max(0, one.start - self._within)
        memory = _MEMORIES.pop(_Name(self._query, one.place, self._within), None)
        if memory is None or not earliest <= memory.end <= one.start:
            memory = Memory(self._within, earliest)
        self._memories[one.place] = memory
        return memory


def _arguments(cells: Cells) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """A column as the kernel takes it."""
    validity = _NO_BYTES if cells.validity is None else reading(cells.validity)
    return reading(cells.data), reading(cells.offsets), validity
