"""`headrace pipeline` as people run it: a process of its own, that is listed, stopped, and outlives its broker."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headrace.testing.broker_process import HeadraceProcess
from spark.topics import Topics

COPY = """\
[pipeline]
name = "copy"
trigger = "200 milliseconds"
[pipeline.spark]
"spark.driver.memory" = "1g"
[source.lines]
topic = "lines"
format = "string"
[source.lines.options]
"kafkaConsumer.pollTimeoutMs" = 3000
[transform.copied]
python = "mortal:copied"
inputs = ["lines"]
[sink.out]
from = "copied"
topic = "out"
value = "value"
exactly_once = true
"""
MORTAL = """\
import os
import signal
from pathlib import Path
from pyspark.sql import functions as F

def copied(inputs, spark, options):
    mark = str(Path(__file__).with_name("died"))

    @F.udf("string")
    def die_once(text):
        if text == "201" and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return text

    return inputs["lines"].select(die_once("value").alias("value"))
"""
PATIENCE_S = 240


@pytest.fixture
def place(tmp_path):
    (tmp_path / "copy.toml").write_text(COPY)
    (tmp_path / "mortal.py").write_text(MORTAL)
    return tmp_path


@pytest.fixture
def headrace(place):
    """Runs a command of ours to its end."""

    def run(*words):
        return subprocess.run(
            _command(*words), capture_output=True, text=True, cwd=place, env=_environment(place), check=False
        )

    return run


def _command(*words):
    return [sys.executable, "-m", "headrace.cli", "pipeline", *words]


def _environment(place):
    source = str(Path(__file__).parents[2] / "src")
    return {**os.environ, "XDG_STATE_HOME": str(place / "state"), "PYTHONPATH": source}


class Started:
    """A run in the background, whose events are read as they come."""

    def __init__(self, place, bootstrap, *words):
        command = _command("run", "copy.toml", *words, "--output", "json", "--bootstrap-server", bootstrap)
        self.process = subprocess.Popen(
            command, cwd=place, env=_environment(place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._events = queue.Queue()
        self.texts = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            self.texts.append(event.get("text", ""))
            self._events.put(event)

    def until(self, wanted):
        """The next event that is wanted."""
        while True:
            event = self._events.get(timeout=PATIENCE_S)
            if wanted(event):
                return event

    def rows(self, total):
        """Wait until the sink has done so many rows since the start."""
        return self.until(lambda event: event.get("query") == "out" and event["rowsTotal"] >= total)

    def said(self, text):
        return self.until(lambda event: text in event.get("text", ""))

    def end(self):
        self.process.wait(PATIENCE_S)
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode, errors


@pytest.fixture
def start(place):
    """Starts runs; none outlives the test."""
    started = []

    def begin(bootstrap, *words):
        started.append(Started(place, bootstrap, *words))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGKILL)
            one.end()


@pytest.fixture
def broker(tmp_path):
    process = HeadraceProcess(tmp_path / "broker", settings={"auto.create.topics.enable": "false"})
    process.format()
    yield process
    process.remove()


def _values(bootstrap):
    """Everything committed in the topic `out`."""
    from headrace import KafkaConsumer

    with KafkaConsumer(
        "out", bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed",
        consumer_timeout_ms=3000,
    ) as consumer:  # fmt: skip
        return [record.value for record in consumer]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_run_from_a_missing_broker_to_a_clean_stop(broker, start, headrace, place):
    """Is a missing broker waited for, a broken one and a killed worker outlived, a run stopped, each record once?"""
    run = start(broker.bootstrap, "-m", "local[2]")
    run.said("Waiting for a broker")
    broker.start()
    run.said("Waiting for topic 'lines'")
    with Topics(broker.bootstrap) as topics:
        topics.create("lines", 2)
        topics.send("lines", [b"%d" % n for n in range(100)])
        run.rows(100)
        assert headrace("list").stdout.splitlines()[1].split()[:2] == ["copy", "running"]
        assert "runs already" in headrace("run", "copy.toml", "--bootstrap-server", broker.bootstrap).stderr
    broker.kill()
    run.said("Waiting for a broker")
    broker.start()
    with Topics(broker.bootstrap) as topics:
        topics.send("lines", [b"%d" % n for n in range(100, 200)])
        run.rows(200)
        assert headrace("stop", "copy").stdout == "Stopped copy.\n"
        code, errors = run.end()
        assert (code, errors) == (0, "")
        assert headrace("status", "copy").stdout.startswith("copy is stopped: ")
        topics.send("lines", [b"200"])
    again = start(broker.bootstrap)
    again.rows(1)
    # The worker that meets it is killed in the middle of its task; nobody named a master.
    with Topics(broker.bootstrap) as topics:
        topics.send("lines", [b"201"])
    again.rows(2)
    again.process.send_signal(signal.SIGINT)

    assert again.end() == (0, "")
    assert (place / "died").exists()
    assert not [text for text in again.texts if "died" in text], "the task was tried again, not the query"
    assert sorted(map(int, _values(broker.bootstrap))) == list(range(202))


@pytest.mark.timeout(600)
def test_a_bad_column_is_one_sentence(headrace, place):
    """Is what Spark refuses told in one line, without the stack trace that pyspark prints?"""
    text = COPY.replace(
        'python = "mortal:copied"\ninputs = ["lines"]', 'sql = "SELECT upper(valu) AS value FROM lines"'
    )
    (place / "copy.toml").write_text(text)
    done = headrace("validate", "--spark", "copy.toml", "-m", "local[1]")
    starting, *said = done.stderr.splitlines()

    assert (1, "", 1) == (done.returncode, done.stdout, len(said)), done.stderr
    assert starting.startswith("Starting Spark for copy (local[1])")
    assert said[0].startswith("copy.toml:12: Spark refuses this: A column")
