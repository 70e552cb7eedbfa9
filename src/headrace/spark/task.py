"""One task of a read, and how it is carried out in a worker: fetch, decode, and hand on as Arrow."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from headrace.spark.offsets import Range, name_of
from headrace.spark.table import CONNECTOR_COLUMNS, FORMATS_WITH_FIELDS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark.columns import Columns
    from headrace.spark.fetching import Chunk, Fetching
    from headrace.spark.option_table import SourceOptions
    from headrace.spark.repeats import Repeats
    from headrace.spark.values import ValueReader

KNOWN_BY = frozenset({"key", "value", "offset"})
"""What has to be read of a record to see whether it came before."""


class ReadTask(InputPartition):
    """Ranges that are read together, each with the broker that led it when the task was planned."""

    def __init__(self, ranges: tuple[tuple[Range, int], ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


def run(task: ReadTask, schema: StructType, options: SourceOptions, query: str = "") -> Iterator[pa.RecordBatch]:
    """Read all of a task's ranges, in batches of some megabytes; `query` is whose task it is, if that has more."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - only workers need Arrow

    from headrace.spark.conditions import read_condition, without  # noqa: PLC0415
    from headrace.spark.fetching import Fetching, FetchRules  # noqa: PLC0415
    from headrace.spark.links import links_to  # noqa: PLC0415
    from headrace.spark.repeats import Repeats  # noqa: PLC0415
    from headrace.spark.values import value_reader  # noqa: PLC0415

    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    wanted = wanted_columns(schema.fieldNames(), options.value_format)
    values = value_reader(options.value_format, arrow_schema, options.value_options)
    settle(options.value_format)
    rules = FetchRules(
        is_committed_only=options.is_committed_only,
        fail_on_data_loss=options.fail_on_data_loss,
        bytes_max=options.fetch_bytes_max,
        partition_bytes_max=options.partition_bytes_max,
        wait_max_ms=options.fetch_wait_max_ms,
        patience_s=options.patience_s,
    )
    links = links_to(options.connection)
    unwanted = read_condition(options.drop_where) if options.drop_where else None
    repeats = None
    if options.repeats_within is not None:
        repeats = Repeats(options.repeats_within, query)
        wanted |= KNOWN_BY
        # What retention has taken need not be looked at: there is nothing to be done for it.
        _look_back(Fetching(links, replace(rules, may_be_gone=True)), repeats, task)
    with contextlib.closing(Fetching(links, rules).chunks(task.ranges)) as chunks:
        for chunk in chunks:
            for batch in _batches(chunk, arrow_schema, values, wanted, repeats):
                yield without(batch, unwanted) if unwanted else batch
    if repeats is not None:
        repeats.keep()


def _look_back(fetching: Fetching, repeats: Repeats, task: ReadTask) -> None:
    """Look at what stands before a task's ranges, as far as a repeat may be away."""
    with contextlib.closing(fetching.chunks(repeats.before(task.ranges))) as chunks:
        for chunk in chunks:
            for columns in _decoded(chunk, KNOWN_BY):
                repeats.new_among(chunk.place, columns)


def wanted_columns(names: Iterable[str], value_format: str) -> frozenset[str]:
    """What has to be read of each record; fields of the value need all of it."""
    asked = frozenset(names)
    if value_format in FORMATS_WITH_FIELDS and asked - CONNECTOR_COLUMNS:
        asked |= {"value"}
    return asked & (CONNECTOR_COLUMNS - {"topic", "partition"})


def _batches(
    chunk: Chunk, schema: pa.Schema, values: ValueReader, wanted: frozenset[str], repeats: Repeats | None
) -> Iterator[pa.RecordBatch]:
    """A chunk as one Arrow batch, or as several if it unpacks to very much."""
    from headrace.spark.arrow import to_arrow  # noqa: PLC0415

    for columns in _decoded(chunk, wanted):
        is_new = None if repeats is None else repeats.new_among(chunk.place, columns)
        batch = to_arrow(columns, schema, chunk.place.topic, chunk.place.partition, values)
        yield batch if is_new is None or is_new.all() else batch.filter(is_new)


def _decoded(chunk: Chunk, wanted: frozenset[str]) -> Iterator[Columns]:
    """The records of a chunk as columns, in one piece or in several."""
    from headrace.spark.decoder import BadRecords, decode  # noqa: PLC0415

    offset = chunk.start
    while True:
        try:
            columns = decode(chunk.records, start=offset, stop=chunk.next, wanted=wanted, aborted=chunk.aborted)
        except BadRecords as fault:
            raise BadRecords(f"{name_of(chunk.place)} cannot be read from {offset} on: {fault}") from fault
        if columns.count:
            yield columns
        if not offset < columns.next_offset < chunk.next:
            return
        offset = columns.next_offset


@cache
def settle(value_format: str) -> None:
    """Once in each worker, when all that a format needs is imported: let the garbage collector forget it.

    Spark's workers collect garbage after every task. With numba and Arrow loaded, that costs more than the task.
    """
    import headrace.spark.arrow  # noqa: PLC0415
    import headrace.spark.decoder  # noqa: F401, PLC0415

    gc.collect()
    gc.freeze()
