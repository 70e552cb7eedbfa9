"""A Spark application that copies a topic to another, exactly once, and ends when all is copied; made to be killed."""

import json
import sys

from headrace.spark.session import spark_session

JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def main() -> None:
    """Copy what there is, through a shuffle; tasks are repeated up to eight times."""
    given = json.loads(sys.argv[1])
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JVM,
        "spark.sql.shuffle.partitions": given["tasks"],
    }
    spark = spark_session("copy", "local[2,8]", settings)
    spark.sparkContext.setLogLevel("OFF")
    where = {"kafka.bootstrap.servers": given["bootstrap"]}
    reading = {"subscribe": given["source"], "startingOffsets": "earliest", "maxOffsetsPerTrigger": given["rows"]}
    writing = {"topic": given["target"], "exactlyOnce": "true", "checkpointLocation": given["checkpoint"]}
    frame = spark.readStream.format("headrace").options(**where, **reading).load()
    shuffled = frame.select("key", "value").repartition(int(given["tasks"]), "key")
    query = shuffled.writeStream.format("headrace").options(**where, **writing, **given["options"])
    query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
