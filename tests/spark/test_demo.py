"""`headrace demo` from end to end, undisturbed and with its programs killed under it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from headrace.cli import demo, demo_run
from seeds import chance_for
from spark.processes import command_of, descendants, is_alive
from spark.trucks_oracle import Expected, need_spark, read, sent_number

from topics import ALERTS, DEAD_LETTERS, GPS, POSITIONS  # isort: skip - found through the oracle

PATIENCE_S = 900


class RunningDemo:
    """A demo as a process, with its files; what it started is gone when the context is left, or the test fails."""

    def __init__(self, place, *words):
        self.place = place
        self.data = place / "demo"
        self._output = (place / "output").open("w+")
        command = [sys.executable, "-m", "headrace.cli", "demo", "--headless", "--data", self.data, "--output", "json"]
        self.process = subprocess.Popen(
            [*command, *words],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "XDG_STATE_HOME": str(place / "state")},
            start_new_session=True,
        )
        self.seen = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._output.close()
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE_S)

    def said(self):
        """Everything it printed."""
        return (self.place / "output").read_text()

    def processes(self):
        """Its programs by name, once the fleet drives."""
        path = self.data / "processes.json"
        found = json.loads(path.read_text()) if path.exists() else {}
        self.seen |= set(found.values())
        return found

    def wait_for(self, done, what):
        """Until something is so, as long as the demo lives."""
        end = time.monotonic() + PATIENCE_S
        while not done():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, f"waited for {what}:\n{self.said()}"
            time.sleep(0.2)

    def kill(self, name):
        """Kill a program at once, and wait until another one is in its place."""
        victim = self.processes()[name]
        os.kill(victim, signal.SIGKILL)
        self.wait_for(lambda: self.processes().get(name) not in {victim, None}, f"a new {name}")

    def kill_worker(self):
        """Kill the processes in which Spark runs Python."""
        workers = [pid for pid in descendants(self.processes()["pipeline"]) if "-m pyspark.daemon" in command_of(pid)]
        for pid in workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        assert workers, "Spark has workers"

    def positions(self):
        """How many reports the demo has accounted for so far."""
        log = self.data / "accounting.log"
        lines = [line for line in log.read_text().splitlines() if " processed," in line] if log.exists() else []
        return int(lines[-1].split()[0]) if lines else 0

    def result(self):
        """What it says at its end."""
        self.process.wait(PATIENCE_S)
        text = self.said()
        assert 0 == self.process.returncode, text
        return json.loads(text[text.index("{\n") :])


@pytest.fixture(scope="module")
def _everything():
    """What a demo needs beside Headrace."""
    need_spark()


@pytest.mark.usefixtures("_everything")
@pytest.mark.timeout(1800)
def test_demo(tmp_path):
    """Does a short demo account for every report, show its latency, and leave no process and no pipeline? R32"""
    with RunningDemo(tmp_path, "--trucks", "40", "--speedup", "60", "--duration", "15") as demo:
        demo.wait_for(demo.processes, "the fleet")
        below = set(descendants(demo.process.pid))
        found = demo.result()

    assert found["whole"]
    assert found["sent"] == found["processed"] + found["deadLettered"] > 500
    assert found["deadLettered"] > 0
    assert 0 == found["lag"]
    assert found["notified"] == sum(found["alerts"].values()) > 0
    assert 0 < found["latencyP50Ms"] <= found["latencyP99Ms"]
    assert set() == {pid for pid in below | demo.seen if is_alive(pid)}
    assert [] == list((tmp_path / "state" / "headrace" / "pipelines").glob("fleet*"))


@pytest.mark.long
@pytest.mark.usefixtures("_everything")
@pytest.mark.timeout(1800)
def test_demo_on_three_brokers(tmp_path):
    """Is every report accounted for on a cluster of three, one of which is killed while the fleet drives?"""
    with RunningDemo(tmp_path, "--brokers", "3", "--trucks", "40", "--speedup", "60") as demo:
        demo.wait_for(lambda: demo.positions() > 0, "the first positions")
        demo.kill("broker-2")
        before = demo.positions()
        demo.wait_for(lambda: demo.positions() > before, "progress after the kill")
        demo.process.send_signal(signal.SIGINT)
        found = demo.result()

    assert found["whole"], found
    assert 0 == found["lag"]


@pytest.mark.long
@pytest.mark.usefixtures("_everything")
@pytest.mark.timeout(1800)
def test_ctrl_c_ends_in_order(tmp_path):
    """Does Ctrl-C while the fleet drives end everything, with the account closed?"""
    with RunningDemo(tmp_path, "--trucks", "25", "--speedup", "60") as demo:
        demo.wait_for(lambda: demo.positions() > 0, "the first positions")
        below = set(descendants(demo.process.pid))
        os.killpg(demo.process.pid, signal.SIGINT)
        found = demo.result()

    assert found["whole"]
    assert set() == {pid for pid in below if is_alive(pid)}


@pytest.mark.usefixtures("_everything")
@pytest.mark.timeout(1800)
def test_ctrl_c_before_the_fleet_drives(tmp_path):
    """Does Ctrl-C while Spark is still starting end everything at once, with a shell's exit code and in a sentence?"""
    with RunningDemo(tmp_path, "--trucks", "25") as demo:
        demo.wait_for(lambda: "starting Spark" in demo.said(), "Spark to start")
        below = set(descendants(demo.process.pid))
        os.killpg(demo.process.pid, signal.SIGINT)
        demo.wait_for(lambda: "Headrace: stopping" in demo.said(), "a word")
        demo.process.wait(PATIENCE_S)

    assert 130 == demo.process.returncode
    assert "Stopped before the trucks drove." in demo.said()
    assert set() == {pid for pid in below if is_alive(pid)}


def survives(place, kills, chance):
    """Kill programs while a fleet drives; afterwards the account must be whole, record by record."""
    with RunningDemo(place, "--trucks", "50", "--speedup", "30", "--seed", str(chance.randrange(1000))) as demo:
        for kill in kills:
            before = demo.positions()
            demo.wait_for(lambda before=before: demo.positions() > before, f"progress before {kill} dies")
            time.sleep(chance.uniform(0, 2))  # a moment nobody chose
            demo.kill_worker() if kill == "worker" else demo.kill(kill)
        before = demo.positions()
        demo.wait_for(lambda: demo.positions() > before, "progress after the last kill")
        demo.process.send_signal(signal.SIGINT)
        found = demo.result()

    assert found["whole"], found
    assert found["sent"] == found["processed"] + found["deadLettered"]
    assert 0 == found["alertsTwice"]
    assert 0 == found["lag"]
    assert_outcome(demo)


def assert_outcome(demo):
    """The topics hold, record by record, what the rules make of what was sent."""
    from headrace.testing.broker_process import HeadraceProcess

    class Again(HeadraceProcess):
        """A broker on the data the demo left."""

    broker = Again(demo.place / "again", settings={"log.dirs": str(demo.data / "data")})
    with broker:
        expected = Expected(read(broker.bootstrap, GPS))
        positions = [json.loads(record.value) for record in read(broker.bootstrap, POSITIONS)]
        letters = read(broker.bootstrap, DEAD_LETTERS)
        ids = [json.loads(record.value)["alert_id"] for record in read(broker.bootstrap, ALERTS)]

    assert expected.positions() == sorted((one["truck_id"], one["seq"]) for one in positions)
    assert expected.bad == {(record.key.decode(), sent_number(record)) for record in letters}
    assert len(ids) == len(set(ids))
    assert expected.alerts <= set(ids) <= expected.alerts | expected.late_alerts


@pytest.mark.long
@pytest.mark.usefixtures("_everything")
@pytest.mark.timeout(1800)
def test_survives_kills(tmp_path):
    """Is every report processed or dead-lettered, and every alert told once, when driver, worker and broker die? R35"""
    survives(tmp_path, ["pipeline", "worker", "broker"], chance_for("demo-kills", campaign=False))


@pytest.mark.long
@pytest.mark.usefixtures("_everything")
@pytest.mark.timeout(7200)
def test_survives_many_kills(tmp_path):
    """The same, over a long drive with many kills in random order?"""
    chance = chance_for("demo-many-kills", campaign=True)
    kills = chance.choices(["pipeline", "worker", "broker"], k=int(os.environ.get("HEADRACE_KILLS", "12")))
    survives(tmp_path, kills, chance)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--brokers", "0"], "at least 1"),
        (["--trucks", "0"], "at least 1"),
        (["--speedup", "fast"], "speedup is a number above 0"),
        (["--burst", "1000", "--burst-for", "0"], "burst-for is a number above 0"),
        (["somewhere"], "not understood"),
    ],
)
def test_refusals(words, sentence):
    """Is what the demo cannot do refused in a sentence before anything starts?"""
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli", "demo", *words], capture_output=True, text=True, check=False, timeout=60
    )

    assert 1 == done.returncode
    assert sentence in done.stderr


@pytest.mark.parametrize(("words", "seconds"), [([], 60), (["--burst-for", "180"], 180)])
def test_how_long_a_burst_lasts(words, seconds, monkeypatch):
    """Do the trucks hear how fast and for how long they are to send, a minute if nobody says?"""
    heard = []

    class Heard(demo_run.Demo):
        def __init__(self, plan):
            self._plan, self._bootstrap = plan, "localhost:1"

        def _start_script(self, name, *words):
            heard.append((name, " ".join(words)))

    monkeypatch.setattr(demo_run, "run_demo", lambda plan, _: Heard(plan)._start_fleet() or 0)

    assert demo.main(["--burst", "50000", *words], "headrace demo") == 0
    ((name, said),) = heard
    assert name == "generator"
    assert f"--rate 50000.0 --burst-at 20 --burst-for {float(seconds)}" in said
