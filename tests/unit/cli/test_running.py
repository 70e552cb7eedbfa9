"""The list of running servers."""

import os
import subprocess
import sys

import pytest

from headrace.cli.running import (
    RunningGateway,
    RunningServer,
    directory,
    registered,
    running_gateways,
    running_servers,
)

HOLD = """
import sys
from headrace.cli.running import RunningServer, registered
with registered(RunningServer(node_id=int(sys.argv[1]), process_roles="broker,controller")):
    print("up", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_list(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def start_server(node_id: int) -> subprocess.Popen[str]:
    """A process that is listed as a server until its input ends."""
    server = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(node_id)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout.readline() == "up\n"
    return server


def test_listed_while_it_runs():
    """Is a server listed from its start to its end, and no longer?"""
    server = RunningServer(node_id=3, process_roles="broker")

    with registered(server):
        listed = running_servers()

    assert listed == [server]
    assert server.pid == os.getpid()
    assert running_servers() == []


def test_another_process_is_found():
    """Is a server in another process found, with its node id and process id?"""
    with start_server(5) as server:
        found = running_servers()
        server.stdin.close()

    assert [(one.node_id, one.pid) for one in found] == [(5, server.pid)]
    assert running_servers() == []


def test_killed_server_is_swept_away():
    """Is a server that was killed forgotten, file and all, although it could not say goodbye?"""
    with start_server(5) as server:
        server.kill()
        server.wait()

    assert len(list(directory().iterdir())) == 1
    assert running_servers() == []
    assert list(directory().iterdir()) == []


def test_server_being_born_is_left_alone():
    """Is a file whose server has not yet written what it is neither listed nor removed?"""
    with registered(RunningServer(node_id=1, process_roles="broker")):
        (path,) = directory().iterdir()
    path.touch()

    assert running_servers() == []
    assert path.exists()


def test_no_home_to_write_to(monkeypatch, tmp_path):
    """Where the state directory cannot be made, does the list fall back to the temporary directory?"""
    blocked = tmp_path / "a file"
    blocked.touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    with registered(RunningServer(node_id=1, process_roles="broker")):
        assert len(running_servers()) == 1
    assert directory().is_relative_to(tmp_path / "temporary")


def test_gateways_are_listed_apart():
    """Is a gateway listed among gateways and not among the servers that kafka-server-stop ends?"""
    gateway = RunningGateway(url="http://127.0.0.1:8082", brokers="localhost:9092", by_start=True)

    with registered(gateway):
        assert (running_gateways(), running_servers()) == ([gateway], [])
    assert running_gateways() == []


def test_servers_of_another_container(monkeypatch):
    """Are servers left alone whose process ids mean other processes here, though their files are the same?"""
    elsewhere = RunningServer(node_id=1, process_roles="broker", namespace="pid:[1]")

    with registered(elsewhere):
        assert running_servers() == []
        assert len(list(directory().iterdir())) == 1


def test_a_home_of_its_own(monkeypatch, tmp_path):
    """Are the servers of one HEADRACE_HOME unknown to another?"""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "a"))
    with registered(RunningServer(node_id=1, process_roles="broker")):
        found = len(running_servers())
        monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "b"))
        assert (found, running_servers()) == (1, [])
