"""What is measured of Spark: our data source beside Spark's own connector, in one application, on the same broker.

Every workload runs both, one after the other, in an order that changes; the numbers to read are the parts: ours as a
part of the connector's. How many records were seen is checked: an answer that is wrong is not fast.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from bench.load import Load
from bench.seats import Seat
from bench.spark_application import CONNECTOR, OURS, Application, Cost, WrongAnswer
from bench.spark_fleet import PARTITIONS, SCHEMA, Fleet, positions, summed_up, windowed
from bench.spark_latency import passing_ms
from bench.workloads import MILLION, Numbers, fresh_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CPU_PART: Final = "part of the connector's CPU"
RATE_PART: Final = "part of the connector's rate"
_PREFIXES: Final = {OURS: "", CONNECTOR: "connector "}
# What whoever writes much with the connector sets; ours is told the same.
_SINK_OPTIONS: Final = {"kafka.linger.ms": "20", "kafka.batch.size": "524288"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a query reads: a data source, a broker, and a topic of so many records on it."""

    app: Application
    source: str
    bootstrap: str
    topic: str
    records: int

    def reader(self, *, stream: bool) -> Any:
        """Spark's reader of it, from the beginning."""
        base = self.app.spark.readStream if stream else self.app.spark.read
        options = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": self.topic, "startingOffsets": "earliest"}
        return base.format(self.source).options(**options)

    def check(self, seen: int) -> None:
        """Refuse a run that did not see every record once."""
        if seen != self.records:
            raise WrongAnswer(f'format("{self.source}") on {self.bootstrap} gave {seen} of {self.records} records')


Query = Callable[[Origin], object]
"""Gives an answer on which both data sources must agree."""


# --- the workloads


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A query over everything a topic holds."""

    name: str
    records: int
    warm_up_records: int
    query: Query
    app: Application
    fleet: Fleet
    depends_on_flush: bool = False

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """CPU per record and records per second of both, and what part of the connector's CPU ours is."""
        few = self.fleet.topic(seat, load, self.warm_up_records)
        many = self.fleet.topic(seat, load, self.records)
        costs, answers = {}, []
        for source in self.app.turn():
            bootstrap = seat.broker.bootstrap
            little = Origin(app=self.app, source=source, bootstrap=bootstrap, topic=few, records=self.warm_up_records)
            self.query(little)
            with self.app.cost() as costs[source]:
                answers.append(self.query(replace(little, topic=many, records=self.records)))
        if len(set(answers)) > 1:
            raise WrongAnswer(f"{self.name}: the data sources answer {' and '.join(map(str, answers))}")
        return _numbers(costs, self.records) | _part(costs, CPU_PART, lambda cost: cost.cpu_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Records made by Spark, written to a topic as one batch."""

    name: str
    records: int
    warm_up_records: int
    app: Application
    depends_on_flush: bool = False

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """CPU per record and records per second of both, and what part of the connector's rate ours is."""
        costs = {}
        for source in self.app.turn():
            self._run(seat, load, source, self.warm_up_records)
            costs[source] = self._run(seat, load, source, self.records)
        return _numbers(costs, self.records) | _part(costs, RATE_PART, lambda cost: 1 / cost.seconds)

    def _run(self, seat: Seat, load: Load, source: str, records: int) -> Cost:
        bootstrap = seat.broker.bootstrap
        with fresh_topic(seat, load, PARTITIONS) as topic:
            with self.app.cost() as cost:
                writer = positions(self.app.spark, records).write.mode("append").format(source)
                writer.options(**_destination(bootstrap, topic), **_SINK_OPTIONS).save()
            written = Origin(
                app=self.app, source=self.app.sources[0], bootstrap=bootstrap, topic=topic, records=records
            )
            written.check(written.reader(stream=False).load().count())
        return cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """A record every 70 ms through a stream that never pauses, from one topic to another."""

    name: str
    seconds: float
    app: Application
    depends_on_flush: bool = False

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Milliseconds from the sending of a record until a consumer of the other topic has it."""
        taken: dict[str, Numbers] = {}
        bootstrap = seat.broker.bootstrap
        for source in self.app.turn():
            with fresh_topic(seat, load, PARTITIONS) as origin, fresh_topic(seat, load, PARTITIONS) as target:
                read = Origin(app=self.app, source=source, bootstrap=bootstrap, topic=origin, records=0)
                records = read.reader(stream=True).load().select("key", "value")
                writer = records.writeStream.format(source).options(**_destination(bootstrap, target))
                query = writer.trigger(processingTime="0 seconds").start(checkpointLocation=self.app.checkpoint())
                try:
                    taken[source] = passing_ms(bootstrap, origin, target, seconds=self.seconds)
                    # A task that is under way when its topic goes would wait for it for a minute.
                    query.processAllAvailable()
                finally:
                    query.stop()
        return {
            f"{_PREFIXES[source]}{quantile} ms": value
            for source in sorted(taken)  # ours, then the connector's, whoever came first
            for quantile, value in taken[source].items()
        }


# --- the queries


def pass_through(origin: Origin) -> object:
    """A stream of all columns that takes what is there in one batch and drops it."""
    return _until_caught_up(origin, origin.reader(stream=True).load())


def batch_windows(origin: Origin) -> object:
    """JSON to typed columns, then counted and averaged by truck and ten minutes; all of it in one row."""
    answer = summed_up(windowed(_typed(origin, origin.reader(stream=False)))).first()
    assert answer is not None, "an aggregate without groups has one row"
    origin.check(answer["records"])
    return answer


def stream_windows(per_batch: int) -> Query:
    """The same, as a stream in micro-batches of that many records."""

    def query(origin: Origin) -> object:
        reader = origin.reader(stream=True).option("maxOffsetsPerTrigger", per_batch)
        return _until_caught_up(origin, windowed(_typed(origin, reader)))

    return query


def _typed(origin: Origin, reader: Any) -> "DataFrame":
    """The fields of the values: decoded by our source, or by Spark's from_json."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    if origin.source == OURS:
        typed: DataFrame = reader.schema(SCHEMA).option("valueFormat", "json").load()
        return typed
    parsed = functions.from_json(functions.col("value").cast("string"), SCHEMA).alias("parsed")
    fields: DataFrame = reader.load().select(parsed).select("parsed.*")
    return fields


def _until_caught_up(origin: Origin, frame: "DataFrame") -> object:
    writer = frame.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    query = writer.start(checkpointLocation=origin.app.checkpoint())
    query.awaitTermination()
    seen = sum(progress["numInputRows"] for progress in query.recentProgress)
    origin.check(seen)
    return seen


def _destination(bootstrap: str, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "topic": topic}


# --- the numbers


def _numbers(costs: dict[str, Cost], records: int) -> Numbers:
    numbers: Numbers = {}
    for source in (OURS, CONNECTOR):
        if source in costs:
            numbers[f"{_PREFIXES[source]}CPU µs/record"] = costs[source].cpu_seconds / records * MILLION
            numbers[f"{_PREFIXES[source]}records/s"] = records / costs[source].seconds
    return numbers


def _part(costs: dict[str, Cost], metric: str, of: Callable[[Cost], float]) -> Numbers:
    """Ours over the connector's, where both were measured."""
    return {metric: of(costs[OURS]) / of(costs[CONNECTOR])} if len(costs) > 1 else {}
