"""A Spark application with Spark's own Kafka connector, which does what it is told, one line of JSON at a time.

A process has one JVM, and a JVM is given its jars when it starts: this one is not the JVM of the other Spark tests.
Asked: {"do": "read" | "write" | "stream" | "copy", ...}. Answered: {"rows": [...]} or {"error": "..."}.
"""

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

Question = dict[str, Any]

# What a record is compared by: text is easier to send as JSON than bytes.
SHOWN = (
    "topic",
    "partition",
    "offset",
    "string(key) AS key",
    "string(value) AS value",
    "unix_millis(timestamp) AS timestamp",
    "timestampType",
    "transform(headers, h -> struct(h.key AS key, string(h.value) AS value)) AS headers",
)


def session(jars: str) -> SparkSession:
    """A small session of two threads."""
    settings = {
        "spark.jars": jars,
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[2]").appName("connector")
    return builder.config(map=settings).getOrCreate()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The records in order, as JSON has them."""
    ordered = frame.orderBy("topic", "partition", "offset")
    return [json.loads(text) for text in ordered.toJSON().collect()]


def read(spark: SparkSession, asked: Question) -> list[dict[str, Any]]:
    """What a batch read finds."""
    frame = spark.read.format("kafka").options(includeHeaders="true", **asked["options"]).load()
    return rows_of(frame.selectExpr(*SHOWN))


def write(spark: SparkSession, asked: Question) -> list[dict[str, Any]]:
    """A batch write of the columns that were given, and no others."""
    given = spark.read.schema(asked["schema"]).json(spark.sparkContext.parallelize(map(json.dumps, asked["rows"]), 2))
    given.selectExpr(*asked["columns"]).write.format("kafka").options(**asked["options"]).save()
    return []


def stream(spark: SparkSession, asked: Question) -> list[dict[str, Any]]:
    """What a stream finds until it has caught up."""
    frame = spark.readStream.format("kafka").options(includeHeaders="true", **asked["options"]).load()
    writer = frame.selectExpr(*SHOWN).writeStream.format("json").trigger(availableNow=True)
    query = writer.start(asked["out"], checkpointLocation=asked["checkpoint"])
    query.awaitTermination()
    schema = "topic string, partition int, offset long, key string, value string, timestamp long, timestampType int"
    return rows_of(spark.read.schema(schema).json(asked["out"]))


def copy(spark: SparkSession, asked: Question) -> list[dict[str, Any]]:
    """Topic to topic, until it has caught up; one row per batch that had anything to do."""
    frame = spark.readStream.format("kafka").options(includeHeaders="true", **asked["options"]).load()
    writer = frame.select("key", "value", "headers").writeStream.format("kafka").options(**asked["to"])
    query = writer.trigger(availableNow=True).start(checkpointLocation=asked["checkpoint"])
    query.awaitTermination()
    return [{"batch": one["batchId"], "rows": one["numInputRows"]} for one in query.recentProgress]


DOES = {"read": read, "write": write, "stream": stream, "copy": copy}


def main(jars: str) -> None:
    """Answer until there are no more questions."""
    spark = session(jars)
    print(json.dumps({"rows": []}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer: Question = {"rows": DOES[asked["do"]](spark, asked)}
        except PySparkException as failure:
            answer = {"error": str(failure)}
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
