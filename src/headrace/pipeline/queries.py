"""The streaming queries of a pipeline: one per sink, one for the dead letters of each source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)

from headrace.pipeline.declaration import Pipeline, Sink
from headrace.pipeline.failure import sentence_of, text_of
from headrace.pipeline.fault import FileFault, Mistake
from headrace.pipeline.frames import FORMAT, Frames, connection_options
from headrace.pipeline.graph import DEAD_LETTERS
from headrace.pipeline.lake import Lake, partition_column
from headrace.pipeline.schedule import Trigger
from headrace.pipeline.toml_lines import line_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    Show = Callable[[str], None]


class Queries:
    """Starts the queries of one pipeline."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        frames: Frames,
        *,
        brokers: str,
        checkpoint: str,
        trigger: Trigger | None,
        show: Show,
    ) -> None:
        """`trigger` overrides those of the file; `show` prints what a console sink has."""
        self._spark = spark
        self._pipeline = pipeline
        self._frames = frames
        self._brokers = brokers
        self._checkpoint = checkpoint
        self._trigger = trigger
        self._show = show

    def start(self, name: str) -> StreamingQuery:
        """Start a query by its name, or start it again where its checkpoint says."""
        if name.startswith(DEAD_LETTERS):
            return self._start_dead_letters(name)
        sink = self._pipeline.sinks[name]
        try:
            frame = self._prepared(sink)
            writer = self._begin(frame, name, sink.trigger).outputMode(sink.mode)
            query: StreamingQuery = _WRITERS[sink.kind](self, writer, sink).start()
            return query
        except (PySparkException, Py4JError) as error:
            raise self._fault(sink, f"Spark refuses this: {sentence_of(text_of(error))}") from error

    def rows_of(self, name: str) -> DataFrame:
        """What a sink is given, in the shape it wants."""
        return self._prepared(self._pipeline.sinks[name])

    def _start_dead_letters(self, name: str) -> StreamingQuery:
        source = self._pipeline.sources[name.removeprefix(DEAD_LETTERS)]
        writer = self._begin(self._frames.dead_letters(source.name), name, self._pipeline.trigger)
        # A crash must not make one bad record two: whoever counts them would find more than were sent.
        options = {"topic": source.dead_letter, "includeHeaders": "true", "exactlyOnce": "true"}
        return self._to_topic(writer, name, options).start()

    def _begin(self, frame: DataFrame, name: str, trigger: Trigger) -> DataStreamWriter:
        writer = frame.writeStream.queryName(name).option("checkpointLocation", f"{self._checkpoint}/{name}")
        chosen = self._trigger or trigger
        return writer.trigger(availableNow=True) if chosen.is_available_now else writer.trigger(
            processingTime=str(chosen)
        )  # fmt: skip

    # --- what becomes of the rows

    def _prepared(self, sink: Sink) -> DataFrame:
        """The rows of a step in the shape its sink wants."""
        frame = self._frames.steps[sink.step]
        for key, columns in (("key", (sink.key,)), ("value", _listed(sink.value)), ("headers", (sink.headers,)),
                             ("timestamp", (sink.timestamp,))):  # fmt: skip
            for column in filter(None, columns):
                if column not in frame.columns:
                    known = ", ".join(frame.columns)
                    raise self._fault(sink, f"'{sink.step}' has no column '{column}'. Its columns are: {known}.", key)
        if sink.kind == "topic":
            return _as_records(frame, sink)
        if sink.kind == "parquet":
            for one in sink.partition_by:
                name, made = partition_column(one)
                frame = frame if made is None else frame.withColumn(name, made)
        return frame

    def _topic(self, writer: DataStreamWriter, sink: Sink) -> DataStreamWriter:
        options = {"topic": sink.target, "exactlyOnce": str(sink.exactly_once).lower(), **sink.options}
        if sink.headers:
            options["includeHeaders"] = "true"
        return self._to_topic(writer, sink.name, options)

    def _to_topic(self, writer: DataStreamWriter, name: str, options: dict[str, str]) -> DataStreamWriter:
        prefix = f"{self._pipeline.name}-{name}"
        given = {**connection_options(self._pipeline, self._brokers), "transactionalIdPrefix": prefix, **options}
        return writer.format(FORMAT).options(**given)

    def _parquet(self, writer: DataStreamWriter, sink: Sink) -> DataStreamWriter:
        lake = Lake(
            self._spark,
            self._pipeline.path(sink.target),
            partition_by=[partition_column(one)[0] for one in sink.partition_by],
            compact_after_ms=sink.compact_after_ms if sink.compact else None,
        )
        return writer.foreachBatch(lake.write)

    def _console(self, writer: DataStreamWriter, sink: Sink) -> DataStreamWriter:
        def show(frame: DataFrame, batch_id: int) -> None:
            rows = frame.limit(sink.rows)
            text: str = rows._jdf.showString(sink.rows, 0, False)  # noqa: SLF001  What show() prints, unprinted.
            self._show(f"{sink.name}, batch {batch_id}\n{text.rstrip()}")

        return writer.foreachBatch(show)

    def _jdbc(self, writer: DataStreamWriter, sink: Sink) -> DataStreamWriter:
        def insert(frame: DataFrame, _: int) -> None:
            batch = frame.write.options(**sink.options)
            if sink.mode == "complete":
                batch.mode("overwrite").option("truncate", value=True).jdbc(sink.target, sink.table)
            else:
                batch.mode("append").jdbc(sink.target, sink.table)

        return writer.foreachBatch(insert)

    def _fault(self, sink: Sink, sentence: str, key: str = "") -> FileFault:
        line = line_of(dict(self._pipeline.lines), "sink", sink.name, key)
        return FileFault(str(self._pipeline.file), [Mistake(line, sentence)])


_WRITERS: dict[str, Callable[[Queries, Any, Sink], Any]] = {
    "topic": Queries._topic,  # noqa: SLF001  The table belongs to the class.
    "parquet": Queries._parquet,  # noqa: SLF001
    "console": Queries._console,  # noqa: SLF001
    "jdbc": Queries._jdbc,  # noqa: SLF001
}


def _listed(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _as_records(frame: DataFrame, sink: Sink) -> DataFrame:
    """Key, value, headers and timestamp of the records that rows become."""
    kinds = dict(frame.dtypes)
    columns = []
    if sink.key:
        plain = kinds[sink.key] in {"string", "binary"}
        columns.append(F.col(sink.key).cast(kinds[sink.key] if plain else "string").alias("key"))
    if isinstance(sink.value, str):
        value = F.to_json(sink.value) if sink.format == "json" else F.col(sink.value).cast(sink.format)
    else:
        chosen = sink.value or tuple(name for name in frame.columns if name not in {sink.headers} - {""})
        value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in chosen)))
    columns.append(value.alias("value"))
    columns += [
        F.col(one).alias(name) for one, name in ((sink.headers, "headers"), (sink.timestamp, "timestamp")) if one
    ]
    return frame.select(*columns)
