"""A person who waits longer than expected is told what for, whichever tool was typed."""

import importlib
import socket

import pytest

from headrace.cli import patience
from headrace.cli.main import COMMANDS, TOOLS

LOCAL = {"kafka-dump-log", "kafka-storage", "kafka-run-class", "kafka-server-start", "kafka-server-stop"} | {
    name for name in TOOLS if name.startswith("zookeeper")
}
"""These ask no broker."""
QUESTIONS = {
    "kafka-acls": "--list",
    "kafka-broker-api-versions": "",
    "kafka-cluster": "cluster-id",
    "kafka-configs": "--describe --topic a",
    "kafka-console-consumer": "--topic a",
    "kafka-console-producer": "--topic a",
    "kafka-console-share-consumer": "--topic a",
    "kafka-consumer-groups": "--list",
    "kafka-consumer-perf-test": "--topic a --num-records 1",
    "kafka-delete-records": "--offset-json-file FILE",
    "kafka-e2e-latency": "--topic a --num-records 1 --producer-acks 1 --record-size 1",
    "kafka-features": "describe",
    "kafka-get-offsets": "",
    "kafka-groups": "--list",
    "kafka-leader-election": "--election-type preferred --all-topic-partitions",
    "kafka-log-dirs": "--describe",
    "kafka-metadata-quorum": "describe --status",
    "kafka-producer-perf-test": "--topic a --num-records 1 --throughput -1 --record-size 1",
    "kafka-reassign-partitions": "--list",
    "kafka-share-groups": "--list",
    "kafka-streams-groups": "--list",
    "kafka-topics": "--list",
    "kafka-transactions": "list",
    "headrace health": "",
    "headrace status": "",
}


@pytest.fixture
def silent():
    """A port at which connections are taken and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_every_tool_that_asks_is_here():
    """Is no tool that asks a broker left out below?"""
    assert {*TOOLS} - LOCAL == {name for name in QUESTIONS if name.startswith("kafka-")}


@pytest.mark.parametrize("name", QUESTIONS)
def test_who_waits_is_told(name, silent, tmp_path, monkeypatch, capsys):
    """Does a tool whose broker keeps silent say that it waits, on the error stream, before it gives up?"""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.setattr(patience, "_SLOW_S", 0.0)
    (tmp_path / "records.json").write_text(
        '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "offset": 1}]}'
    )
    # The producer makes its engine first, which takes no shorter time than a second.
    timeout_ms = 1000 if name == "kafka-console-producer" else 50
    (tmp_path / "client.properties").write_text(f"socket.connection.setup.timeout.ms={timeout_ms}\n")
    typed = QUESTIONS[name].replace("FILE", str(tmp_path / "records.json")).split()
    where = ["--bootstrap-server", silent, "--command-config", str(tmp_path / "client.properties")]
    modules = TOOLS | {f"headrace {command}": module for command, module in COMMANDS.items()}

    code = importlib.import_module(modules[name]).main([*where, *typed], name)

    shown = capsys.readouterr()
    assert code == 1
    assert f"Headrace: {name} waits for the cluster's answer (0 s)\n" in shown.err
    assert "waits for" not in shown.out
