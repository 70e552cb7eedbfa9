"""The steps of a pipeline as Spark's data frames.

A source is read with one column more than declared, the reason why a record cannot be read. Records that can be and
fulfil what is required go on; the others are what the query for dead letters takes.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)
from pyspark.sql.types import StructType

from headrace.pipeline.declaration import TYPED_FORMATS, Pipeline, Source, Transform
from headrace.pipeline.failure import sentence_of, sql_line, text_of
from headrace.pipeline.fault import FileFault, Mistake
from headrace.pipeline.good_records import good_when
from headrace.pipeline.graph import steps_in_order
from headrace.pipeline.schedule import in_words
from headrace.pipeline.toml_lines import line_of
from headrace.spark.conditions import AND, IS_NULL, write_condition
from headrace.spark.session import register_source

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

FORMAT = "headrace"
ERROR, CORRUPT = "_error", "_corrupt_record"
RECORD = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "headers": "array<struct<key:string,value:binary>>",
}
"""The columns of a record itself, as Spark's Kafka connector has them."""
_PLAIN = "key {0}, value {0}, topic string, partition int, offset bigint, timestamp timestamp"
Built = TypeVar("Built")
_LETTER = ("key", "value", "headers", "topic", "partition", "offset")


class Frames:
    """A pipeline's data frames, each built once."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, *, brokers: str, starts: Mapping[str, str] | None = None
    ) -> None:
        """`starts` are starting offsets by source, where they stand in a consumer group."""
        self._spark = spark
        self._pipeline = pipeline
        self._brokers = brokers
        self._starts = starts or {}
        self.steps: dict[str, DataFrame] = {}

    def build(self) -> None:
        """Build every step that a sink needs; FileFault if Spark does not take one."""
        # The session may be somebody else's.
        register_source(self._spark)
        for name in steps_in_order(self._pipeline):
            if name in self._pipeline.sources:
                frame = self._source(self._pipeline.sources[name])
            else:
                frame = self._transform(self._pipeline.transforms[name])
            # Statements find their inputs by name.
            frame.createOrReplaceTempView(name)
            self.steps[name] = frame

    # --- sources

    def _source(self, source: Source) -> DataFrame:
        here = ("source", source.name)
        declared = self._asking((*here, "schema"), lambda: self._declared(source))
        wanted = _with(declared, {ERROR: "string"} if source.format in TYPED_FORMATS else {})
        options = {"dropRepeatsWithin": str(source.drop_repeats_within)} if source.drop_repeats_within else {}
        frame = self._asking(here, lambda: self._read(source, wanted, options))
        columns = [f"`{name}`" for name in declared.names]
        if source.can_fail:
            read = frame
            frame = self._asking((*here, "require"), lambda: read.where(_reason(source).isNull()).select(*columns))
        mark = source.watermark
        if mark is not None:
            good = frame
            frame = self._asking((*here, "watermark"), lambda: good.withWatermark(mark.column, in_words(mark.delay_ms)))
        return self._unique(here, frame, source.deduplicate)

    def _unique(self, here: tuple[str, str], frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
        """A frame without the repeats of what is unique by these columns, if there are any."""
        if not columns:
            return frame
        return self._asking((*here, "deduplicate"), lambda: frame.dropDuplicatesWithinWatermark(list(columns)))

    def dead_letters(self, name: str) -> DataFrame:
        """The records of a source that cannot be read or are refused: as they came, with headers that say why."""
        source = self._pipeline.sources[name]

        def build() -> DataFrame:
            declared = self._declared(source)
            extra = {one: RECORD[one] for one in _LETTER}
            if source.format in TYPED_FORMATS:
                extra |= {ERROR: "string"} | ({CORRUPT: "string"} if _is_nested(declared) else {})
            # Repeats too: two bad records may be the same, though what was meant was not.
            frame = self._read(source, _with(declared, extra), self._only_bad(source, declared))
            reason = _reason(source)
            facts = {
                "reason": reason,
                "pipeline": F.lit(self._pipeline.name),
                **{fact: F.col(fact).cast("string") for fact in ("topic", "partition", "offset")},
            }
            told = F.array(
                *(F.struct(F.lit(f"__error.{fact}").alias("key"), F.encode(what, "UTF-8").alias("value"))
                  for fact, what in facts.items())
            )  # fmt: skip
            own = F.coalesce(F.col("headers"), F.array().cast(RECORD["headers"]))
            value = F.coalesce(F.col(CORRUPT), F.to_json("value")) if _is_nested(declared) else F.col("value")
            return frame.where(reason.isNotNull()).select(
                F.col("key").cast("binary").alias("key"),
                value.cast("binary").alias("value"),
                F.concat(own, told).alias("headers"),
            )

        return self._asking(("source", name), build)

    def _only_bad(self, source: Source, declared: StructType) -> dict[str, str]:
        """What lets the data source leave out the good records, as far as it can tell."""
        conditions = [[IS_NULL, ERROR]] if source.format in TYPED_FORMATS else []
        if source.require:
            fulfilled = good_when(self._spark, declared, source.require)
            if fulfilled is None:
                return {}
            conditions.append(fulfilled)
        return {"dropWhere": write_condition([AND, *conditions])}

    def _declared(self, source: Source) -> StructType:
        return _schema(source.schema or _PLAIN.format(source.format))

    def _read(self, source: Source, schema: StructType, more: Mapping[str, str]) -> DataFrame:
        reader = self._spark.readStream.format(FORMAT).schema(schema)
        return reader.options(**{**more, **self._reader_options(source, schema)}).load()

    def _reader_options(self, source: Source, schema: StructType) -> dict[str, str]:
        options = connection_options(self._pipeline, self._brokers)
        options |= {
            "valueFormat": source.format,
            "failOnDataLoss": str(source.fail_on_data_loss).lower(),
            "includeHeaders": str("headers" in schema.names).lower(),
        }
        options |= {"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)}
        options |= self._starting(source)
        if source.max_records_per_batch:
            options["maxOffsetsPerTrigger"] = str(source.max_records_per_batch)
        if source.avro_schema:
            options["avroSchema"] = self._avro_schema(source.avro_schema)
        if source.avro_framing:
            options["avroFraming"] = source.avro_framing
        return options | dict(source.options)

    def _starting(self, source: Source) -> dict[str, str]:
        start = source.starting
        if isinstance(start, int):
            return {"startingTimestamp": str(start), "startingOffsetsByTimestampStrategy": "latest"}
        if isinstance(start, str):
            # A group's offsets are looked up by the runner; before that, as in `explain`, any start will do.
            return {"startingOffsets": self._starts.get(source.name, "earliest") if start == "group" else start}
        return {"startingOffsets": json.dumps(start)}

    def _avro_schema(self, given: str) -> str:
        return given if given.lstrip().startswith(("{", "[", '"')) else Path(self._pipeline.path(given)).read_text()

    # --- transforms

    def _transform(self, transform: Transform) -> DataFrame:
        return self._unique(("transform", transform.name), self._transformed(transform), transform.deduplicate)

    def _transformed(self, transform: Transform) -> DataFrame:
        if transform.sql:
            return self._asking(("transform", transform.name, "sql"), lambda: self._spark.sql(transform.sql))
        function = self._function(transform)
        inputs = {name: self.steps[name] for name in transform.inputs}

        def call() -> DataFrame:
            frame = function(inputs, self._spark, dict(transform.options))
            if not isinstance(frame, DataFrame):
                sentence = f"The function {transform.python} returned no DataFrame. Return one."
                raise self._fault(("transform", transform.name, "python"), sentence)
            return frame

        return self._asking(("transform", transform.name, "python"), call)

    def _function(self, transform: Transform) -> Callable[..., Any]:
        return find_function(self._pipeline, transform)

    # --- mistakes

    def _asking(self, path: tuple[str, ...], build: Callable[[], Built]) -> Built:
        """Build something with Spark; what it refuses is a mistake in the file."""
        try:
            return build()
        except (PySparkException, Py4JError, OSError) as error:
            text = text_of(error)
            raise self._fault(path, f"Spark refuses this: {sentence_of(text)}", sql_line(text)) from error

    def _fault(self, path: tuple[str, ...], sentence: str, below: int = 1) -> FileFault:
        line = line_of(dict(self._pipeline.lines), *path)
        if path[-1] == "sql":
            line += below - 1 + _begins_below(self._pipeline.file, line)
        return FileFault(str(self._pipeline.file), [Mistake(line, sentence)])


def find_function(pipeline: Pipeline, transform: Transform) -> Callable[..., Any]:
    """The Python function of a transform; its module is looked for beside the file first."""
    module, _, name = transform.python.partition(":")
    place = str(pipeline.directory.absolute())
    if place not in sys.path:
        sys.path.insert(0, place)
    line = line_of(dict(pipeline.lines), "transform", transform.name, "python")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # The module is the person's: whatever it raises is theirs to mend.
        sentence = f"The module '{module}' cannot be imported: {error}. It is looked for in {place}."
        raise FileFault(str(pipeline.file), [Mistake(line, sentence)]) from error
    if not callable(found):
        sentence = f"The module '{module}' has no function '{name}'. Define it, or mend the name."
        raise FileFault(str(pipeline.file), [Mistake(line, sentence)])
    return found  # type: ignore[no-any-return]


def connection_options(pipeline: Pipeline, brokers: str) -> dict[str, str]:
    """How the data source and the sink reach the cluster."""
    return {
        **{f"kafka.{name.removeprefix('kafka.')}": value for name, value in pipeline.properties.items()},
        "kafka.bootstrap.servers": brokers,
    }


def _reason(source: Source) -> Column:
    """Why a record is bad, null if it is good. What is required and unknown is not fulfilled."""
    reasons = []
    if source.format in TYPED_FORMATS:
        reasons.append(F.when(F.col(ERROR).isNotNull(), F.concat(F.lit("unreadable: "), F.col(ERROR))))
    for condition in source.require:
        holds = F.coalesce(F.expr(condition).cast("boolean"), F.lit(False))
        reasons.append(F.when(~holds, F.lit(f"refused: {condition}")))
    return F.coalesce(*reasons)


def _is_nested(schema: StructType) -> bool:
    """Whether the declared value is a struct: then the raw one cannot be asked for under the same name."""
    return "value" in schema.names and isinstance(schema["value"].dataType, StructType)


def _schema(ddl: str) -> StructType:
    """Columns in Spark's DDL."""
    found = StructType.fromDDL(ddl)
    assert isinstance(found, StructType), "a list of columns is a struct"
    return found


def _with(schema: StructType, more: Mapping[str, str]) -> StructType:
    """A schema with further columns, where it has none of that name."""
    missing = {name: kind for name, kind in more.items() if name not in schema.names}
    if not missing:
        return schema
    return StructType([*schema.fields, *_schema(", ".join(f"{name} {kind}" for name, kind in missing.items())).fields])


def _begins_below(file: Path, line: int) -> int:
    """1 if a statement begins on the line after its key, as long texts do."""
    try:
        text = file.read_text().splitlines()[line - 1]
    except (OSError, IndexError):
        return 0
    return int(text.rstrip().endswith(('"""', "'''")))
