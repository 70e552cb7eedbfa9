"""kafka-server-stop: whom it asks to stop, and what it says."""

import json
import os
import signal

import pytest

from headrace.cli import server_stop
from headrace.cli.running import RunningServer

COMBINED = RunningServer(node_id=1, process_roles="broker,controller", pid=101, data="/one")
BROKER = RunningServer(node_id=2, process_roles="broker", pid=102, data="/two")
TWIN = RunningServer(node_id=2, process_roles="broker", pid=103, data="/three")


@pytest.fixture
def running():
    """The servers of the machine."""
    return [COMBINED, BROKER]


@pytest.fixture
def machine(monkeypatch, running):
    """A machine with two servers; returns the signals that were sent. A server asked to stop is gone at once."""
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
        (["--data=/two"], [102]),
    ],
)
def test_whom_it_stops(machine, arguments, stopped):
    """Are exactly the servers that match asked to stop, all of them if nothing is said?"""
    assert server_stop.main(arguments, "kafka-server-stop.sh") == 0
    assert machine == [(pid, signal.SIGTERM) for pid in stopped]


def test_an_id_that_two_clusters_have(machine, running, capsys):
    """Is nobody stopped by an id that two have, and one of them where its data is named too?"""
    running.append(TWIN)

    assert 1 == server_stop.main(["--node-id=2"], "kafka-server-stop.sh")
    assert ("Several nodes 2 run here: /three and /two.\nSay which one with --data.\n", "") == tuple(
        capsys.readouterr()
    )
    assert [] == machine
    assert 0 == server_stop.main(["--node-id=2", "--data=/three"], "kafka-server-stop.sh")
    assert [(103, signal.SIGTERM)] == machine


@pytest.mark.parametrize(
    "arguments", [["--node-id=9"], ["--process-role=controller"], ["--process-role=broker", "--data=/one"]]
)
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


def test_results_for_programs(machine, capsys):
    """Are those that were asked to stop one document with `--output json`, and is a sentence no part of it?"""
    assert server_stop.main(["--node-id=2", "--output", "json"], "kafka-server-stop.sh") == 0
    assert json.loads(capsys.readouterr().out) == [{"nodeId": 2, "processRoles": "broker", "pid": 102}]

    assert server_stop.main(["--node-id=9", "--output", "json"], "kafka-server-stop.sh") == 1
    assert ("", "No kafka server to stop\n") == tuple(capsys.readouterr())


@pytest.mark.parametrize(
    ("name", "number"), [("9", signal.SIGKILL), ("SIGINT", signal.SIGINT), ("term", signal.SIGTERM)]
)
def test_signal_by_number(machine, monkeypatch, name, number):
    """Is whatever kill(1) takes for a signal taken here?"""
    monkeypatch.setenv("SIGNAL", name)

    assert server_stop.main(["--node-id=1"], "kafka-server-stop.sh") == 0
    assert machine == [(101, number)]


@pytest.mark.parametrize("name", ["FOO", "999", ""])
def test_no_such_signal(machine, monkeypatch, capsys, name):
    """Is a signal that there is not told in a sentence, and nobody asked to stop?"""
    monkeypatch.setenv("SIGNAL", name)

    assert server_stop.main([], "kafka-server-stop.sh") == 1
    assert (f"SIGNAL={name} is no signal." in capsys.readouterr().out, machine) == (True, [])


def test_one_that_ended_by_itself(machine, monkeypatch):
    """Are the others asked to stop although one has gone between being found and being asked?"""
    send = os.kill

    def kill(pid: int, number: int) -> None:
        send(pid, number)
        if pid == 101:
            raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)

    assert server_stop.main([], "kafka-server-stop.sh") == 0
    assert [pid for pid, _ in machine] == [101, 102]
