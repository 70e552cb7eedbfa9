"""The records Spark is measured with: a fleet's positions, in the form of the truck example, the same in every run."""

from typing import TYPE_CHECKING, Final

from bench.load import Load
from bench.seats import Seat
from bench.spark_application import Application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRUCKS: Final = 1000
PARTITIONS: Final = 10
SCHEMA: Final = "truck_id string, speed_kmh double, ts timestamp"
"""The fields the aggregate needs; both data sources are asked for these and no others."""
# 11 seconds apart, so that 3,000 records of a truck fall into 55 windows of ten minutes.
_VALUE: Final = """to_json(named_struct(
    'truck_id', format_string('T-%04d', id % {trucks}),
    'lat', round(45 + pmod(hash(id), 500000) / 100000, 5),
    'lon', round(5 + pmod(hash(id, 1), 900000) / 100000, 5),
    'speed_kmh', round(40 + pmod(hash(id, 2), 600) / 10, 1),
    'heading', pmod(hash(id, 3), 360),
    'ts', date_format(timestamp_seconds(1790000000 + (id div {trucks}) * 11), "yyyy-MM-dd'T'HH:mm:ss'Z'"),
    'seq', id div {trucks})) AS value"""


def positions(spark: "SparkSession", records: int) -> "DataFrame":
    """Keys and values, made by Spark itself in as many tasks as there are partitions."""
    made = spark.range(0, records, 1, PARTITIONS)
    return made.selectExpr(f"format_string('T-%04d', id % {TRUCKS}) AS key", _VALUE.format(trucks=TRUCKS))


def windowed(typed: "DataFrame") -> "DataFrame":
    """How many records each truck sent in each ten minutes, and how fast it was."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    return typed.groupBy(f.window("ts", "10 minutes"), "truck_id").agg(
        f.count("*").alias("records"), f.avg("speed_kmh").alias("speed_kmh")
    )


def summed_up(windows: "DataFrame") -> "DataFrame":
    """One row to compare: how many windows and records, and the mean speeds added up, as far as doubles agree."""
    return windows.selectExpr("truck_id", "window.start", "records", "speed_kmh").selectExpr(
        "count(truck_id) AS trucks",
        "count(start) AS windows",
        "sum(records) AS records",
        "round(sum(speed_kmh)) AS speeds",
    )


class Fleet:
    """Topics that hold so many positions, made the first time a broker is asked for one, and kept."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._made: set[tuple[str, str]] = set()

    def topic(self, seat: Seat, load: Load, records: int) -> str:
        """The name of a topic of so many records, in batches as large as a producer makes them by itself."""
        bootstrap, topic = seat.broker.bootstrap, f"fleet-{records}"
        if (bootstrap, topic) not in self._made:
            load.create_topic(bootstrap, topic, PARTITIONS, seat.topic_settings)
            writer = positions(self._app.spark, records).write.mode("append").format(self._app.sources[0])
            writer.options(**{"kafka.bootstrap.servers": bootstrap, "topic": topic, "kafka.linger.ms": "5"}).save()
            self._made.add((bootstrap, topic))
        return topic
