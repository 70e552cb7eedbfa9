"""Count the trucks' reports per minute and truck, each minute when it is over: from one topic to another.

    bin/headrace spark examples/spark_counts.py [BROKER]

The first use installs Spark. Java 17 or newer must be there.
"""

import sys

from pyspark.sql import functions as f

from headrace.spark.session import spark_session

broker = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
spark = spark_session("counts", "local[2]")

reports = (
    spark.readStream.format("headrace")
    .option("kafka.bootstrap.servers", broker)
    .option("subscribe", "trucks_gps")
    .option("startingOffsets", "earliest")
    .option("valueFormat", "json")
    .option("commitGroup", "spark-counts")
    .schema("truck_id string, speed_kmh double, ts timestamp, _corrupt_record string")
    .load()
)
counts = (
    reports.where("_corrupt_record IS NULL")
    .withWatermark("ts", "2 minutes")
    .groupBy(f.window("ts", "1 minute"), "truck_id")
    .agg(f.count("*").alias("reports"), f.round(f.avg("speed_kmh"), 1).alias("speed_kmh"))
)
query = (
    counts.select(
        f.col("truck_id").alias("key"),
        f.to_json(f.struct("truck_id", f.col("window.start").alias("minute"), "reports", "speed_kmh")).alias("value"),
    )
    .writeStream.format("headrace")
    .option("kafka.bootstrap.servers", broker)
    .option("topic", "trucks_counts")
    .option("exactlyOnce", "true")
    .option("checkpointLocation", sys.argv[2] if len(sys.argv) > 2 else "checkpoints/counts")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
done = sum(progress.numInputRows for progress in query.recentProgress)
print(f"Read {done} records of trucks_gps. What trucks_counts holds, the newest minutes first:")
(
    spark.read.format("headrace")
    .option("kafka.bootstrap.servers", broker)
    .option("subscribePattern", "trucks_counts")  # It is there once a minute is over.
    .option("valueFormat", "json")
    .schema("minute timestamp, truck_id string, reports long, speed_kmh double")
    .load()
    .orderBy(f.desc("minute"), "truck_id")
    .show()
)
spark.stop()
