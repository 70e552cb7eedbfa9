"""What servers of this machine are at."""

import asyncio
import os
import socket

import pytest

from headrace.cli import nodes
from headrace.cli.nodes import RUNNING, SILENT, STARTING, advice, is_suspended, statuses
from headrace.cli.running import RunningServer
from headrace.testing.ports import free_port


def server_at(address):
    """A server of this very process."""
    return RunningServer(node_id=3, process_roles="broker", address=address)


@pytest.fixture
def silent(monkeypatch):
    """Where somebody takes connections and says nothing; a short while is long enough to know."""
    monkeypatch.setattr(nodes, "_ANSWER_MS", 50)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_starting_and_hanging_are_told_apart(silent):
    """Is who takes no connections starting, who takes them in vain not answering, and who has no address running?"""
    servers = [server_at(f"127.0.0.1:{free_port()}"), server_at(silent), server_at("")]

    assert [STARTING, SILENT, RUNNING] == asyncio.run(statuses(servers))


def test_what_to_do_about_one_that_hangs():
    """Is the command that ends it said, with the node's number?"""
    said = advice(server_at("localhost:9092"))

    assert said.startswith(
        f"Node 3 (process {os.getpid()}) takes connections and does not answer; its log may say why."
    )
    assert said.endswith("kafka-server-stop --node-id 3")
    assert "SIGNAL=KILL" in said


def test_who_is_gone_is_not_suspended():
    """Is a process that is not there, or runs, not taken for a suspended one?"""
    assert [False, False] == [is_suspended(0), is_suspended(os.getpid())]
