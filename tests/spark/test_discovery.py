"""A session that knows nothing of Headrace."""

import os
import subprocess
import sys
from pathlib import Path

from headrace import KafkaProducer
from headrace.testing.cluster import Cluster

SCRIPT = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
reader = spark.read.format("headrace").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", "greetings")
print([bytes(row.value).decode() for row in reader.load().select("value").collect()])
"""
SOURCES = Path(__file__).parents[2] / "src"


def test_found_by_name():
    """Does a plain Spark session find the data source by its name, with nothing registered and no jar (R34)?"""
    with Cluster() as cluster:
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send("greetings", b"hello")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONASYNCIO", "SPARK_"))}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, cluster.bootstrap],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            env=kept | {"PYTHONPATH": str(SOURCES), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        )

    assert done.stdout == "['hello']\n", done.stderr
