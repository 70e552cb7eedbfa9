"""Reading topics as a table: what is there between two places, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from headrace.client.fault import BadOption
from headrace.spark import task
from headrace.spark.catalog import Catalog
from headrace.spark.endpoints import end_of, start_of
from headrace.spark.offsets import Offsets, name_of, plan, ranges
from headrace.spark.positions import Kind
from headrace.spark.task import ReadTask

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark.option_table import SourceOptions


class BatchReader(DataSourceReader):
    """Plans once, where the query is planned; reads in the workers."""

    def __init__(self, schema: StructType, options: SourceOptions) -> None:
        self._schema = schema
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Ask the cluster what there is, and split it into tasks."""
        options = self._options
        catalog = Catalog(options)
        try:
            places = catalog.places()
            begin, end = start_of(catalog, options, places), end_of(catalog, options, places)
            self._check_order(begin, end)
            tasks = plan(
                ranges(begin, end),
                tasks_max=options.tasks_max,
                partitions_min=options.partitions_min,
                partition_records_max=options.partition_records_max,
            )
            return [ReadTask(tuple((one, catalog.leader_of(one.place)) for one in group)) for group in tasks]
        finally:
            catalog.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """One task's records; Spark makes up a task of its own where there is nothing to read."""
        if isinstance(partition, ReadTask):
            yield from task.run(partition, self._schema, self._options)

    def _check_order(self, begin: Offsets, end: Offsets) -> None:
        """Two lists of offsets that contradict each other are a slip; times that do are an empty table."""
        if not self._options.starting.kind is self._options.ending.kind is Kind.OFFSETS:
            return
        for place in sorted(begin):
            if begin[place] > end[place]:
                raise BadOption(
                    f"startingOffsets {begin[place]} is behind endingOffsets {end[place]} for {name_of(place)}",
                    "A read goes forward only.",
                )
