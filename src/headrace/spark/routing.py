"""Which rows go to which partition: a block of rows falls apart by topic and partition, in order within each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.encoder import partitions_of
from headrace.spark.sink_columns import BadColumns, SinkColumns
from headrace.spark.topic_leaders import no_partition

if TYPE_CHECKING:
    from headrace.spark.outbox import Place

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_INT16 = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Records of one block, column by column."""

    keys: pa.Array
    values: pa.Array
    headers: pa.Array | None
    timestamps_ms: pa.Array

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, count: int) -> Rows:
        """Some of them, without a copy."""
        return self._each(lambda column: column.slice(start, count))

    def take(self, order: np.ndarray[Any, np.dtype[np.int64]]) -> Rows:
        """Some of them, in this order."""
        places = pa.array(order)
        return self._each(lambda column: column.take(places))

    def _each(self, change: Callable[[pa.Array], pa.Array]) -> Rows:
        return Rows(
            keys=change(self.keys),
            values=change(self.values),
            headers=None if self.headers is None else change(self.headers),
            timestamps_ms=change(self.timestamps_ms),
        )


def rows_of(block: pa.RecordBatch, columns: SinkColumns, *, now_ms: int) -> Rows:
    """The records in a block; without a time of their own they are of now."""
    count = block.num_rows
    # Text is bytes in Arrow too: the cast copies nothing.
    keys = pa.nulls(count, pa.binary()) if columns.key < 0 else block.column(columns.key).cast(pa.binary())
    headers = None if columns.headers < 0 else block.column(columns.headers).cast(HEADERS_TYPE)
    return Rows(
        keys=keys,
        values=block.column(columns.value).cast(pa.binary()),
        headers=headers,
        timestamps_ms=_timestamps(block, columns, now_ms),
    )


def _timestamps(block: pa.RecordBatch, columns: SinkColumns, now_ms: int) -> pa.Array:
    if columns.timestamp < 0:
        return pa.array(np.full(block.num_rows, now_ms, dtype=np.int64))
    micros = block.column(columns.timestamp).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    # Towards the past, as Java's producers have it from the milliseconds of an instant.
    found = pc.divide(pc.subtract(micros, _remainders(micros)), 1000)
    return found.fill_null(now_ms)


def _remainders(micros: pa.Array) -> pa.Array:
    filled = np.asarray(micros.fill_null(0))
    return pa.array(filled % 1000)


def route(
    block: pa.RecordBatch,
    columns: SinkColumns,
    *,
    topic: str,
    count_of: Callable[[str], int],
    sticky: int,
    now_ms: int,
) -> Iterator[tuple[Place, Rows]]:
    """The rows of a block by topic and partition; those without a key all go to the partition `sticky` points to."""
    rows = rows_of(block, columns, now_ms=now_ms)
    wished = None if columns.partition < 0 else block.column(columns.partition)
    if topic:
        yield from _route(topic, rows, wished, count_of(topic), sticky)
        return
    names = block.column(columns.topic)
    if names.null_count:
        raise BadColumns("A row has no topic", "Fill the column named topic, or set the option topic.")
    coded = names.dictionary_encode()
    numbers = np.asarray(coded.indices)
    for number, name in enumerate(coded.dictionary.to_pylist()):
        if len(coded.dictionary) == 1:
            chosen, wish = rows, wished
        else:
            order = np.flatnonzero(numbers == number)
            chosen, wish = rows.take(order), None if wished is None else wished.take(pa.array(order))
        yield from _route(name, chosen, wish, count_of(name), sticky)


def _route(topic: str, rows: Rows, wished: pa.Array | None, count: int, sticky: int) -> Iterator[tuple[Place, Rows]]:
    chosen = _partitions(topic, rows, wished, count, sticky)
    first = int(chosen[0]) if len(chosen) else 0
    if (chosen == first).all():
        if len(chosen):
            yield (topic, first), rows
        return
    # Small numbers are sorted by radix, several times as fast.
    order = np.argsort(chosen.astype(np.int16) if count < _INT16 else chosen, kind="stable")
    moved, chosen = rows.take(order), chosen[order]
    starts = [0, *(np.flatnonzero(np.diff(chosen)) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        yield (topic, int(chosen[start])), moved.slice(start, end - start)


def _partitions(
    topic: str, rows: Rows, wished: pa.Array | None, count: int, sticky: int
) -> np.ndarray[Any, np.dtype[np.int32]]:
    by_key = partitions_of(rows.keys, count, sticky=sticky % count)
    if wished is None:
        return by_key
    asked = np.asarray(wished.fill_null(-1))
    is_asked = np.asarray(wished.is_valid())
    wrong = asked[is_asked & ((asked < 0) | (asked >= count))]
    if len(wrong):
        raise no_partition(topic, int(wrong[0]), count)
    return np.where(is_asked, asked, by_key).astype(np.int32)
