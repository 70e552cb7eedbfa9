"""kafka-server-start: what it parses before a broker is asked for."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from headrace.cli import server, server_start
from headrace.cli.layout import sample_config
from headrace.cli.running import running_servers

SETTINGS = """\
process.roles=broker,controller
node.id=7
controller.quorum.voters=7@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
controller.listener.names=CONTROLLER
"""


@pytest.fixture
def config(tmp_path):
    """A combined node's settings in a file."""
    path = tmp_path / "server.properties"
    path.write_text(SETTINGS + f"log.dirs={(tmp_path / 'data').as_posix()}\n")
    return path


@pytest.fixture
def broker(monkeypatch, tmp_path):
    """A broker that notes what it is asked to run, and whom the list of servers, empty but for it, shows meanwhile."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    module = ModuleType("headrace.broker.server")
    module.runs = []

    def run(path: Path, overrides: dict[str, str]) -> int:
        module.runs.append((path, overrides, [one.node_id for one in running_servers()]))
        return 3

    module.run = run
    monkeypatch.setitem(sys.modules, "headrace.broker.server", module)
    return module


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-daemon"]])
def test_usage(capsys, arguments):
    """Without a file, is Kafka's usage line printed with the path the command was called by, and exit code 1?"""
    assert server_start.main(arguments, "bin/kafka-server-start.sh") == 1
    assert capsys.readouterr().out == (
        "USAGE: bin/kafka-server-start.sh [-daemon] server.properties [--override property=value]*\n"
    )


def test_runs_the_broker(config, broker):
    """Is the broker run with the file and the overrides, listed while it runs, and its exit code returned?"""
    code = server_start.main(
        [str(config), "--override", "node.id=8", "--override=controller.quorum.voters=8@localhost:9093"], "start"
    )

    assert code == 3
    assert broker.runs == [(config, {"node.id": "8", "controller.quorum.voters": "8@localhost:9093"}, [8])]
    assert running_servers() == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--override"], "--override is not an option, or lacks its argument"),
        (["--overide", "a=b"], "--overide is not an option"),
        (["stray"], "Found non argument parameters: stray"),
        (["--override", "=b"], "Invalid command line properties: =b"),
        (["--override", "node.id=many"], "node.id"),
    ],
)
def test_wrong_arguments(config, broker, capsys, arguments, words):
    """Is a wrong argument or setting named on stderr, with exit code 1 and nothing started?"""
    assert server_start.main([str(config), *arguments], "start") == 1
    assert words in capsys.readouterr().err
    assert broker.runs == []


@pytest.mark.parametrize("flags", [[], ["-daemon"]])
def test_missing_file(tmp_path, broker, capsys, flags):
    """Is a file that is not there named at once, detached or not?"""
    missing = tmp_path / "missing.properties"

    assert server_start.main([*flags, str(missing)], "start") == 1
    assert str(missing) in capsys.readouterr().err
    assert broker.runs == []


def test_headrace_server_start_needs_no_file(broker):
    """Does `headrace server start` use the sample configuration if none is named, also before overrides?"""
    server.main(["start", "--override", "node.id=1"], "headrace server")

    assert broker.runs[0][:2] == (sample_config("server.properties"), {"node.id": "1"})


def test_a_daemon_for_programs(config, monkeypatch, tmp_path, capsys):
    """Does a server in the background say to programs who and where it is?"""

    class Started:
        """A server that is up as soon as it is made."""

        pid, returncode = 4711, None

        def __init__(self, command: list[str], **how: object) -> None:
            how["stdout"].write(b"broker_started")
            how["stdout"].flush()
            assert command[-1] == str(config)

        def poll(self) -> None:
            """It lives."""

    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(server_start, "log_directory", lambda: tmp_path)

    assert server_start.main(["-daemon", str(config), "--output", "json"], "start") == 0
    assert json.loads(capsys.readouterr().out) == {
        "nodeId": 7,
        "processRoles": "broker,controller",
        "address": "localhost:9092",
        "pid": 4711,
        "log": str(tmp_path / "server.log"),
    }


@pytest.mark.parametrize("typed", [["--output", "json"], ["--output=yaml"], ["--output", "xml"]])
def test_a_log_is_no_document(config, broker, capsys, typed):
    """In the foreground, where the log is printed, is a document refused in a sentence?"""
    assert server_start.main([str(config), *typed], "start") == 1
    assert "go with -daemon" in capsys.readouterr().err
    assert broker.runs == []
