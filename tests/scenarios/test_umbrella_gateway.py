"""The gateway as a person has it: started beside the broker, shown, asked how it is, and stopped with it."""

import json
import os
import signal
import sys
import time
import urllib.request

import pytest
from tests.scenarios.test_umbrella import Person, two_free_ports

from headrace.cli.running import running_gateways

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX"),
]


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("HEADRACE_BOOTSTRAP_SERVERS", "HEADRACE_PROFILE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def person(tmp_path):
    """A person in an empty directory; what they leave running is killed."""
    person = Person(tmp_path, two_free_ports())
    yield person
    for gateway in running_gateways():
        os.kill(gateway.pid, signal.SIGKILL)
    person.environment["SIGNAL"] = "KILL"
    person.types("server", "stop")


def got(url: str) -> str:
    """What is there."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def test_beside_a_broker(person):
    """Do `start --gateway`, `status`, `health` and `stop` all know the gateway, and is starting it again harmless?"""
    started = person.types("start", "--gateway", "--port", str(person.port), "--data", "here", "--output", "json")
    assert started.returncode == 0, started.stderr
    (gateway,) = json.loads(started.stdout)["gateways"]
    created = person.types("topics", "create", "events")
    again = person.types("start", "-g", "--port", str(person.port), "--data", "here")
    status, health = person.types("status"), person.types("health", "--output", "json")
    topics = json.loads(got(f"{gateway['url']}/topics"))
    stopped = person.types("stop")

    assert (created.returncode, topics) == (0, ["events"])
    assert (again.returncode, f"Gateway {gateway['url']}" in again.stdout) == (0, True)
    assert (status.returncode, f"Gateway {gateway['url']}" in status.stdout) == (0, True)
    assert json.loads(health.stdout)["gateways"] == [gateway["url"]]
    assert stopped.returncode == 0
    assert [line.split(" (")[0] for line in stopped.stdout.splitlines()] == [
        f"Stopped the gateway at {gateway['url']}",
        "Stopped node 1",
    ]
    assert running_gateways() == []


def test_a_silent_gateway_is_unhealthy(person):
    """Is a gateway that hangs said to be a fault, and one that is gone no reason to complain?"""
    person.types("start", "--gateway", "--port", str(person.port), "--data", "here")
    (gateway,) = running_gateways()

    os.kill(gateway.pid, signal.SIGSTOP)
    ill, status = person.types("health", "--output", "json"), person.types("status")
    os.kill(gateway.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while running_gateways() and time.monotonic() < deadline:
        time.sleep(0.05)

    assert (ill.returncode, json.loads(ill.stdout)["silentGateways"]) == (1, [gateway.url])
    assert (status.returncode, f"Gateway {gateway.url}" in status.stdout) == (1, True)
    assert person.types("health").returncode == 0
    stopped = person.types("stop")
    assert (stopped.returncode, stopped.stdout.count("\n")) == (0, 1)


def test_daemon(person):
    """Does `gateway --daemon` return when it listens, before any cluster, and say at once what cannot be?"""
    words = ("--daemon", "--bootstrap-server", f"localhost:{person.port}", "--listen", "http://127.0.0.1:0")
    done = person.types("gateway", *words, "--output", "json")
    assert done.returncode == 0, done.stderr
    url = json.loads(done.stdout)["url"]
    taken = person.types("gateway", *words[:-1], url)
    wrong = person.types("gateway", *words, "--set", "no.such=1")

    assert json.loads(got(f"{url}/healthy")) == {"status": "ok"}
    assert (taken.returncode, "cannot listen" in taken.stderr) == (1, True)
    assert (wrong.returncode, "no setting 'no.such'" in wrong.stderr) == (1, True)
    # It was not `start` that started it.
    assert person.types("stop").returncode == 1
    assert len(running_gateways()) == 1


def test_metrics_of_a_started_broker(person):
    """Does a broker that `start` started tell its metrics where the page says?"""
    assert person.types("start", "--no-gateway", "--port", str(person.port), "--data", "here").returncode == 0
    if person.port + 312 >= 2**16:
        pytest.skip("there is no port so far above this one")

    text = got(f"http://127.0.0.1:{person.port + 312}/metrics")

    assert "kafka_server_brokertopicmetrics_messagesin_total 0\n" in text
