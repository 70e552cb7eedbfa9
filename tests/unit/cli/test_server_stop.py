"""kafka-server-stop: whom it asks to stop, and what it says."""

import os
import signal

import pytest

from headrace.cli import server_stop
from headrace.cli.running import RunningServer

COMBINED = RunningServer(node_id=1, process_roles="broker,controller", pid=101)
BROKER = RunningServer(node_id=2, process_roles="broker", pid=102)


@pytest.fixture
def machine(monkeypatch):
    """A machine with two servers; returns the signals that were sent. A server asked to stop is gone at once."""
    running = [COMBINED, BROKER]
    sent = []

    def kill(pid: int, number: int) -> None:
        sent.append((pid, number))
        running[:] = [server for server in running if server.pid != pid]

    monkeypatch.setattr(server_stop, "running_servers", lambda: list(running))
    monkeypatch.setattr(os, "kill", kill)
    return sent


@pytest.mark.parametrize(
    ("arguments", "stopped"),
    [
        ([], [101, 102]),
        (["--node-id=2"], [102]),
        (["--node-id", "1"], [101]),
        (["--process-role=broker"], [102]),
        (["--process-role=controller,broker"], [101]),
        (["--process-role=broker", "--node-id=1"], [101]),
    ],
)
def test_whom_it_stops(machine, arguments, stopped):
    """Are exactly the servers that match asked to stop, all of them if nothing is said?"""
    assert server_stop.main(arguments, "kafka-server-stop.sh") == 0
    assert machine == [(pid, signal.SIGTERM) for pid in stopped]


@pytest.mark.parametrize("arguments", [["--node-id=9"], ["--process-role=controller"]])
def test_nothing_to_stop(machine, capsys, arguments):
    """If nothing matches, does it say so as Kafka's script does, and exit 1?"""
    assert server_stop.main(arguments, "kafka-server-stop.sh") == 1
    assert (capsys.readouterr().out, machine) == ("No kafka server to stop\n", [])


def test_signal_by_name(machine, monkeypatch):
    """Is Kafka's way of choosing another signal honoured?"""
    monkeypatch.setenv("SIGNAL", "INT")

    server_stop.main(["--node-id=1"], "kafka-server-stop.sh")

    assert machine == [(101, signal.SIGINT)]


def test_waiting(machine, capsys):
    """Does `headrace server stop` report each server once it is gone?"""
    assert server_stop.main([], "headrace server stop", wait=True) == 0
    assert capsys.readouterr().out == "Stopped node 1 (process 101).\nStopped node 2 (process 102).\n"


def test_wrong_argument(machine, capsys):
    """Does a wrong argument exit 1, as Kafka's tools do, and stop nobody?"""
    with pytest.raises(SystemExit) as ended:
        server_stop.main(["--node"], "kafka-server-stop.sh")

    assert (ended.value.code, machine) == (1, [])
    assert "unrecognized arguments: --node" in capsys.readouterr().err
