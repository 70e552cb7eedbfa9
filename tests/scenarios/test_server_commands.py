"""Servers started and stopped the way people do it, as processes of their own."""

import os
import signal
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")

SETTINGS = """\
process.roles=broker,controller
node.id={node_id}
controller.quorum.voters={node_id}@localhost:9093
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
"""


class Node:
    """One node's directory, and the commands run on it."""

    def __init__(self, directory, *, node_id: int = 1, port: int = 0) -> None:
        self.directory = directory
        self.data = directory / f"data{node_id}"
        self.config = directory / f"server{node_id}.properties"
        self.config.write_text(SETTINGS.format(node_id=node_id, port=port, data=self.data.as_posix()))
        self.environment = {
            **os.environ,
            "LOG_DIR": str(directory / "logs"),
            "XDG_STATE_HOME": str(directory / "state"),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-m", "headrace.cli", *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )

    def log(self) -> str:
        return (self.directory / "logs/server.log").read_text()


@pytest.fixture
def node(tmp_path):
    """A node; whatever is still running of it at the end is stopped."""
    node = Node(tmp_path)
    yield node
    node.run("server", "stop")


def test_daemon_start_and_stop(node):
    """Does -daemon return while the server lives on, and does stop end it cleanly, once?"""
    started = node.run("kafka-server-start", "-daemon", str(node.config))
    stopped = node.run("server", "stop")
    again = node.run("kafka-server-stop")

    assert (started.returncode, started.stdout, started.stderr) == (0, "", "")
    assert (stopped.returncode, stopped.stdout.startswith("Stopped node 1 (process ")) == (0, True)
    assert (again.returncode, again.stdout) == (1, "No kafka server to stop\n")
    assert "broker_started" in node.log()
    assert (node.data / ".kafka_cleanshutdown").exists()


def test_daemon_that_cannot_start(tmp_path):
    """If the port is taken, does -daemon fail here and now, with the server's own last words?"""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        node = Node(tmp_path, port=taken.getsockname()[1])
        started = node.run("kafka-server-start", "-daemon", str(node.config))

    assert started.returncode == 1
    assert "The server ended at once, with exit code 1." in started.stderr
    assert "address already in use" in started.stderr
    assert node.run("kafka-server-stop").returncode == 1


def test_stop_by_node_id(node, tmp_path):
    """With two servers, is only the one that is named stopped?"""
    other = Node(tmp_path, node_id=2)
    for one in (node, other):
        assert one.run("kafka-server-start", "-daemon", str(one.config)).returncode == 0

    stopped = node.run("server", "stop", "--node-id", "2")
    remaining = node.run("server", "stop")

    assert stopped.stdout.startswith("Stopped node 2 ")
    assert remaining.stdout.startswith("Stopped node 1 ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(node, number):
    """Do SIGTERM and SIGINT both end a server in the foreground with exit code 0 and the clean-shutdown marker?"""
    with subprocess.Popen(
        node.command("server", "start", str(node.config)), env=node.environment, stdout=subprocess.PIPE, text=True
    ) as server:
        began = next(line for line in server.stdout if "broker_started" in line)
        server.send_signal(number)
        rest = server.stdout.read()

    assert (server.returncode, "node=1" in began, "broker_stopped" in rest) == (0, True, True)
    assert (node.data / ".kafka_cleanshutdown").exists()


def test_first_start_formats_by_itself(node):
    """Does a start without a format step format the directory and say so, and keep that identity afterwards?"""
    identities = []
    for _ in range(2):
        node.run("kafka-server-start", "-daemon", str(node.config))
        node.run("server", "stop")
        identities.append((node.data / "meta.properties").read_text())

    assert node.log().count("log_dir_formatted") == 1
    assert identities[0] == identities[1]
