"""One task of a read, and how it is carried out in a worker: fetch, decode, and hand on as Arrow."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from headrace.spark.offsets import Range, name_of
from headrace.spark.table import CONNECTOR_COLUMNS, FORMATS_WITH_FIELDS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark.fetching import Chunk
    from headrace.spark.option_table import SourceOptions
    from headrace.spark.values import ValueReader


class ReadTask(InputPartition):
    """Ranges that are read together, each with the broker that led it when the task was planned."""

    def __init__(self, ranges: tuple[tuple[Range, int], ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


def run(task: ReadTask, schema: StructType, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Read all of a task's ranges, in batches of some megabytes."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - only workers need Arrow

    from headrace.spark.fetching import Fetching, FetchRules  # noqa: PLC0415
    from headrace.spark.links import links_to  # noqa: PLC0415
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
    with contextlib.closing(Fetching(links_to(options.connection), rules).chunks(task.ranges)) as chunks:
        for chunk in chunks:
            yield from _batches(chunk, arrow_schema, values, wanted)


def wanted_columns(names: Iterable[str], value_format: str) -> frozenset[str]:
    """What has to be read of each record; fields of the value need all of it."""
    asked = frozenset(names)
    if value_format in FORMATS_WITH_FIELDS and asked - CONNECTOR_COLUMNS:
        asked |= {"value"}
    return asked & (CONNECTOR_COLUMNS - {"topic", "partition"})


def _batches(chunk: Chunk, schema: pa.Schema, values: ValueReader, wanted: frozenset[str]) -> Iterator[pa.RecordBatch]:
    """A chunk as one Arrow batch, or as several if it unpacks to very much."""
    from headrace.spark.arrow import to_arrow  # noqa: PLC0415
    from headrace.spark.decoder import BadRecords, decode  # noqa: PLC0415

    offset = chunk.start
    while True:
        try:
            columns = decode(chunk.records, start=offset, stop=chunk.next, wanted=wanted, aborted=chunk.aborted)
        except BadRecords as fault:
            raise BadRecords(f"{name_of(chunk.place)} cannot be read from {offset} on: {fault}") from fault
        if columns.count:
            yield to_arrow(columns, schema, chunk.place.topic, chunk.place.partition, values)
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
