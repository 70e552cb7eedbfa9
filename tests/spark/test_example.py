"""The example program on Spark, run as a person would."""

import json
import subprocess
import sys
from pathlib import Path

from headrace import KafkaProducer
from headrace.testing.cluster import Cluster
from spark.committed import read_committed

ROOT = Path(__file__).parents[2]


def test_counts_from_topic_to_topic(tmp_path):
    """Does the example count the reports of each minute that is over, leave out what is none, and tell (R31, R34)?"""
    with Cluster() as cluster:
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            for truck, second in (("T-1", 1), ("T-1", 21), ("T-1", 61), ("T-2", 2), ("T-2", 600)):
                report = {
                    "truck_id": truck,
                    "speed_kmh": 60 + second,
                    "ts": f"2026-11-16T08:{second // 60:02}:{second % 60:02}Z",
                }
                producer.send("trucks_gps", json.dumps(report).encode(), key=truck.encode())
            producer.send("trucks_gps", b"not a report")
        done = subprocess.run(
            [sys.executable, ROOT / "examples/spark_counts.py", cluster.bootstrap, tmp_path / "checkpoint"],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Read 6 records of trucks_gps.")
        assert "|     T-1|      2|     71.0|" in done.stdout
        assert "replaced" not in done.stderr
        written = [json.loads(one.value) for one in read_committed(cluster.bootstrap, "trucks_counts", 1, at_least=3)]
        rows = {row["truck_id"] + row["minute"][14:16]: row for row in written}

    assert {name: row["reports"] for name, row in rows.items()} == {"T-100": 2, "T-101": 1, "T-200": 1}
    assert rows["T-100"]["speed_kmh"] == 71.0
