"""The data source `headrace`: what Spark finds under that name.

    spark.readStream.format("headrace").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "t")

Options and columns are those of Spark's Kafka connector. Spark makes the object where the program runs, and copies of
it where plans are made and where tasks run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from headrace.spark.option_table import check_names, source_options
from headrace.spark.table import check_schema, default_schema

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from headrace.spark.option_table import SourceOptions

NAME = "headrace"


class HeadraceSource(DataSource):
    """Topics as tables and streams, to read and to write."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_names(options)

    @classmethod
    def name(cls) -> str:
        """What stands in `format(...)`."""
        return NAME

    def schema(self) -> StructType:
        """The connector's columns, unless the user names others."""
        options = source_options(self.options)
        return default_schema(options.value_format, include_headers=options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads a table."""
        from headrace.spark.batch_reader import BatchReader  # noqa: PLC0415 - each process needs one of these only

        options = source_options(self.options, is_stream=False)
        _check(schema, options)
        return BatchReader(schema, options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """What reads a stream."""
        from headrace.spark.stream_reader import StreamReader  # noqa: PLC0415

        options = source_options(self.options, is_stream=True)
        _check(schema, options)
        return StreamReader(schema, options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """What writes a table."""
        from headrace.spark.sink import BatchSink  # noqa: PLC0415

        return BatchSink(schema, self.options, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """What writes a stream."""
        from headrace.spark.sink import StreamSink  # noqa: PLC0415

        return StreamSink(schema, self.options)


def _check(schema: StructType, options: SourceOptions) -> None:
    """Refuse a schema that cannot be read while the query is planned: no task, and no checkpoint, has seen it then."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - as large as Arrow

    from headrace.spark.values import value_reader  # noqa: PLC0415

    check_schema(schema, options.value_format)
    value_reader(options.value_format, to_arrow_schema(schema, timezone="UTC"), options.value_options)
