"""A pipeline on a real standalone cluster: a master, two workers, spark-submit, each a process of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing.cluster import Cluster
from headrace.testing.ports import free_port
from spark.topics import Topics

SOURCE = Path(__file__).parents[2] / "src"
PIPELINE = """\
[pipeline]
name = "far"
dead_letter = false
checkpoint = "checkpoint"
[source.gps]
topic = "gps"
schema = "truck string, speed double"
[transform.fast]
python = "far_speed:fast"
inputs = "gps"
options = { limit = 90 }
[sink.fast]
from = "fast"
topic = "fast"
key = "truck"
exactly_once = true
"""
MODULE = """\
from pyspark.sql import functions as F

@F.udf("string")
def where_it_ran(truck):
    import headrace, os
    return os.environ["SPARK_LOCAL_DIRS"]

def fast(inputs, spark, options):
    return inputs["gps"].where(F.col("speed") > options["limit"]).withColumn("dirs", where_it_ran("truck"))
"""


@pytest.fixture
def spark_home():
    pyspark = pytest.importorskip("pyspark")
    from headrace.spark.java import NoJava, find_java, java_home

    try:
        java = find_java()
    except NoJava as missing:
        pytest.skip(str(missing))
    return Path(pyspark.__file__).parent, java_home(java)


@pytest.fixture
def environment(spark_home, tmp_path):
    home, java = spark_home
    return {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(SOURCE),
        "SPARK_LOCAL_DIRS": str(tmp_path / "scratch"),
        "SPARK_NO_DAEMONIZE": "1",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


@pytest.fixture
def master(environment, tmp_path):
    """The address of a master that two workers have joined."""
    processes = []

    def run(name, *arguments):
        log = tmp_path / f"{name}.log"
        with log.open("w") as output:
            command = [f"{environment['SPARK_HOME']}/bin/spark-class", *arguments]
            processes.append(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT))
        return log

    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    try:
        log = run("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port),
                  "--webui-port", "0")  # fmt: skip
        _await_words(log, "I have been elected leader", processes)
        for number in (1, 2):
            work = str(tmp_path / f"work{number}")
            log = run(f"worker{number}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1",
                      "--memory", "1g", "--work-dir", work, "--webui-port", "0", address)  # fmt: skip
            _await_words(log, "Successfully registered with master", processes)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(60)


def _await_words(log, words, processes):
    """Wait until a log has these words; looks again whenever the file may have grown."""
    import time

    deadline = time.monotonic() + 120
    while words not in log.read_text():
        assert processes[-1].poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_same_file_runs_on_a_cluster(master, environment, tmp_path):
    """R32: does spark-submit run a pipeline on two workers, Python function and all, and go on with a second run?"""
    (tmp_path / "far.toml").write_text(PIPELINE)
    (tmp_path / "far_speed.py").write_text(MODULE)
    with Cluster() as cluster, Topics(cluster.bootstrap) as topics:
        topics.create("gps", 4)
        for run, speeds in enumerate(((80, 100), (120, 10))):
            for part in range(4):
                topics.send(
                    "gps", [json.dumps({"truck": f"T{part}", "speed": s}).encode() for s in speeds], partition=part
                )
            done = _submit(master, environment, tmp_path, cluster.bootstrap)
            assert done.returncode == 0, done.stdout + done.stderr
            assert len(_read(cluster.bootstrap)) == 4 * (run + 1)
        records = _read(cluster.bootstrap)

    assert sorted((one["truck"], one["speed"]) for one in records) == [
        (f"T{n}", s) for n in range(4) for s in (100, 120)
    ]
    used = {re.search(r"executor-[\w-]+", one["dirs"])[0] for one in records}
    assert len(used) >= 1, "the function ran in executors"
    assert all(list((tmp_path / f"work{n}").rglob("stderr")) for n in (1, 2)), "both workers had executors"


def _submit(master, environment, place, bootstrap):
    command = [
        f"{environment['SPARK_HOME']}/bin/spark-submit",
        *("--master", master, "--driver-memory", "1g", "--executor-memory", "512m"),
        *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
        str(SOURCE / "headrace/pipeline/__main__.py"),
        *("far.toml", "--bootstrap-server", bootstrap, "--available-now", "--output", "json"),
    ]
    return subprocess.run(command, env=environment, cwd=place, capture_output=True, text=True, check=False)


def _read(bootstrap):
    from headrace import KafkaConsumer

    with KafkaConsumer(
        "fast", bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed",
        consumer_timeout_ms=3000,
    ) as consumer:  # fmt: skip
        return [json.loads(record.value) for record in consumer]
