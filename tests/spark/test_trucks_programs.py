"""The fleet's programs against a real broker; what Spark would write is written here by hand."""

import json
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from headrace import KafkaProducer
from headrace.cli.demo_children import wait_until
from headrace.testing.cluster import Cluster
from spark.trucks_oracle import TRUCKS, read, report_of, sent_number
from terminal import Terminal

from topics import ALERTS, DEAD_LETTERS, GPS, POSITIONS, STATS, TOPICS, make_topics  # isort: skip - by the oracle

TIMEOUT_S = 120


@pytest.fixture
def cluster():
    with Cluster({"auto.create.topics.enable": "false", "offsets.topic.num.partitions": "1"}) as found:
        make_topics(found.bootstrap)
        yield found


def command(program, cluster, *words):
    return [sys.executable, TRUCKS / f"{program}.py", "--bootstrap-server", cluster.bootstrap, *words]


def run(program, cluster, *words):
    """Run a program to its end; its words."""
    done = subprocess.run(
        command(program, cluster, *words), capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def drive(cluster, ledger):
    """Drive a small fleet for a moment; its ledger."""
    words = ["--trucks", "25", "--speedup", "600", "--duration", "2", "--ledger", ledger]
    run("generator", cluster, *words)
    return json.loads(ledger.read_text())


def process(cluster, records):
    """Do the pipeline's work: every report once as a position or as a dead letter, and one alert."""
    seen = set()
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for record in records:
            name = (record.key, sent_number(record))
            if name in seen:
                continue
            seen.add(name)
            report = report_of(record)
            if report is None:
                producer.send(DEAD_LETTERS, record.value, key=record.key, headers=list(record.headers))
            else:
                value = json.loads(record.value) | {"sent_ms": record.timestamp_ms}
                producer.send(POSITIONS, json.dumps(value).encode(), key=record.key)


def alert(number):
    document = {
        "alert_id": f"T-0003:speeding:{number}",
        "truck_id": "T-0003",
        "kind": "speeding",
        "detail": "120 km/h where 90 are allowed",
        "at": "2026-11-15T20:00:20.000Z",
    }
    return json.dumps(document).encode()


def send(cluster, topic, *values):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in values:
            producer.send(topic, value)


def test_topics(cluster):
    """Can the topics be made twice, and has each its partitions?"""
    make_topics(cluster.bootstrap)

    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        found = {name: len(producer.partitions_for(name)) for name in TOPICS}
    assert {GPS: 10, POSITIONS: 10, ALERTS: 3, STATS: 3, DEAD_LETTERS: 1} == found


def test_generator_and_accounting(cluster, tmp_path):
    """Does the ledger agree with the topic, and is an account whole with everything there and not without one? R32"""
    ledger = drive(cluster, tmp_path / "ledger.json")
    records = read(cluster.bootstrap, GPS)

    assert 0 == ledger["failed"]
    assert len(records) == ledger["sent"] > 1000
    assert ledger["reports"] == {
        truck: 1 + max(sent_number(record) for record in records if record.key.decode() == truck)
        for truck in ledger["reports"]
    }

    process(cluster, records)
    send(cluster, DEAD_LETTERS, b"from somebody who is no truck")
    words = run("accounting", cluster, "--ledger", tmp_path / "ledger.json", "--report", tmp_path / "account.json")
    account = json.loads((tmp_path / "account.json").read_text())

    assert "Nothing is lost, nothing came twice" in words
    assert account["whole"]
    assert sum(ledger["reports"].values()) == account["processed"] + account["dead_lettered"]

    ledger["reports"]["T-0000"] += 1
    (tmp_path / "ledger.json").write_text(json.dumps(ledger))
    done = subprocess.run(
        command("accounting", cluster, "--ledger", tmp_path / "ledger.json", "--patience", "3"),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )

    assert 1 == done.returncode
    assert "1 reports are missing" in done.stdout


def test_generator_stops_when_told(cluster, tmp_path):
    """Does a generator that is asked to end have everything acknowledged and write its ledger?"""
    ledger = tmp_path / "ledger.json"
    words = ["--trucks", "25", "--speedup", "600", "--ledger", ledger]
    with subprocess.Popen(command("generator", cluster, *words), stderr=subprocess.PIPE, text=True) as generator:
        assert "sent" in generator.stderr.readline()
        generator.send_signal(signal.SIGTERM)
        assert 0 == generator.wait(TIMEOUT_S)

    assert len(read(cluster.bootstrap, GPS)) == json.loads(ledger.read_text())["sent"]


def test_dashboard(cluster, tmp_path):
    """Does the dashboard show trucks and alerts, once as lines and live on a terminal left as it was? R32"""
    drive(cluster, tmp_path / "ledger.json")
    process(cluster, read(cluster.bootstrap, GPS))
    send(cluster, ALERTS, alert(1))

    lines = run("dashboard", cluster, "--once").splitlines()

    assert lines[0].startswith("Truck fleet   25 trucks")
    assert "alerts: speeding 1" == lines[2]
    assert lines[-1] == "20:00:20 T-0003 drives too fast: 120 km/h where 90 are allowed"

    environment = {**os.environ, "LINES": "30", "COLUMNS": "100"}
    with Terminal(command("dashboard", cluster, "--note", "over there"), environment=environment) as screen:
        screen.wait_for("Truck fleet   25 trucks")
        screen.wait_for("over there")
        screen.press("c")
        assert 0 == screen.finish()
        assert screen.shown.endswith("\033[?1049l")


def has_lines(path, count):
    return path.exists() and len(path.read_text().splitlines()) == count


def test_notifier_prints_once_across_restarts(cluster, tmp_path):
    """Is every alert printed once, although the notifier is killed and alerts come twice? R32"""
    journal, told = tmp_path / "journal", []
    for numbers, new in (((1, 2), 2), ((2, 3), 1)):
        send(cluster, ALERTS, *map(alert, numbers))
        words = command("notifier", cluster, "--journal", journal)
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as notifier:
            told += [notifier.stdout.readline() for _ in range(new)]
            # Between a line and its note is the one moment in which a death repeats an alert.
            assert wait_until(partial(has_lines, journal, max(numbers)), lambda: None, timeout_s=TIMEOUT_S)
            notifier.kill()
            told += notifier.stdout.read().splitlines()

    assert 3 == len(told)
    assert ["T-0003:speeding:1", "T-0003:speeding:2", "T-0003:speeding:3"] == sorted(journal.read_text().split())


class Hook(BaseHTTPRequestHandler):
    """Takes alerts, after refusing the first attempt."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.attempts += 1
        self.send_response(503 if self.server.attempts == 1 else 200)
        self.end_headers()
        if self.server.attempts > 1:
            self.server.taken.append((json.loads(body)["alert_id"], self.headers["Idempotency-Key"]))
            if len(self.server.taken) == 2:
                self.server.done.set()

    def log_message(self, *_):
        """Quietly."""


def test_notifier_posts(cluster, tmp_path):
    """Is an alert posted until the service takes it, under a key that repeats recognise?"""
    server = HTTPServer(("127.0.0.1", 0), Hook)
    server.attempts, server.taken, server.done = 0, [], threading.Event()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    send(cluster, ALERTS, alert(1), alert(2))
    words = ["--webhook", f"http://127.0.0.1:{server.server_port}/", "--journal", tmp_path / "journal"]
    with subprocess.Popen(command("notifier", cluster, *words), stderr=subprocess.DEVNULL) as notifier:
        assert server.done.wait(TIMEOUT_S)
        notifier.terminate()
    server.shutdown()
    thread.join()
    server.server_close()

    assert {"T-0003:speeding:1", "T-0003:speeding:2"} == {name for name, _ in server.taken}
    assert all(bytes.fromhex(key).decode() == name for name, key in server.taken)
