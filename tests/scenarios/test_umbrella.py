"""The umbrella command: a broker in the background, how it is, and the short ways to type Kafka's tools."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from tests.terminal import Terminal
from tests.wire_client import WireClient

from headrace.cli import health, status
from headrace.cli.completion_words import candidates
from headrace.cli.fronts import groups, topics
from headrace.client.cluster import GROUP, Cluster
from headrace.client.options import connection_options
from headrace.model.errors import ErrorCode, KafkaError
from headrace.testing.ports import free_port
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals are POSIX")

OTHER = """\
process.roles=broker,controller
node.id=7
controller.quorum.voters=7@localhost:9093
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
controller.listener.names=CONTROLLER
log.dirs={data}
"""


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("HEADRACE_BOOTSTRAP_SERVERS", "HEADRACE_PROFILE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ask(headrace_cluster, capsys, monkeypatch):
    """Runs a command of the umbrella against a broker with a topic; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", headrace_cluster.bootstrap)
    with WireClient(headrace_cluster.port) as wire:
        wire.create_topic("orders", partitions=3)

    def run(module, *arguments):
        code = module.main(list(arguments), "headrace")
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


# --- a broker in the background


class Person:
    """Somebody who types `headrace ...` as a program of its own."""

    def __init__(self, directory, port: int) -> None:
        self.directory = directory
        self.port = port
        self.environment = {
            **os.environ,
            "LOG_DIR": str(directory / "logs"),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "headrace.cli", *words]

    def types(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            env=self.environment,
            cwd=self.directory,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def starts(self) -> subprocess.CompletedProcess[str]:
        return self.types("start", "--port", str(self.port), "--data", "here")


def two_free_ports() -> int:
    """A port that is free together with the next one, which the controller takes."""
    while True:
        port = free_port()
        try:
            with socket.create_server(("", port)), socket.create_server(("", port + 1)):
                return port
        except OSError:
            continue


@pytest.fixture
def person(tmp_path):
    """A person in an empty directory; what they leave running is stopped."""
    person = Person(tmp_path, two_free_ports())
    yield person
    person.types("server", "stop")


@posix
def test_start_shows_the_node_and_what_to_type_next(person, tmp_path):
    """Does `start` print the table and three commands, remember the address, and is starting again harmless?"""
    first, again = person.starts(), person.starts()
    lines = first.stdout.splitlines()

    assert (first.returncode, first.stderr) == (0, "")
    assert lines[0].split() == ["NODE-ID", "STATUS", "KAFKA-ADDRESS", "DATA"]
    assert lines[1].split() == ["1", "running", f"localhost:{person.port}", "here"]
    assert lines[2:4] == ["", "What to type next:"]
    assert [line.split()[1:] for line in lines[4:]] == [
        ["topics", "create", "events"],
        ["produce", "events"],
        ["consume", "events", "--from-beginning"],
    ]
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "Node 1 is running already.\n")
    assert person.types("start", "--data", "here").stdout == first.stdout
    assert (tmp_path / "home/profiles/default.properties").is_file()


@posix
def test_tools_need_no_address_until_it_is_stopped(person, tmp_path):
    """Between `start` and `stop`, do the tools find the broker by themselves, and is it forgotten afterwards?"""
    assert person.starts().returncode == 0
    created = person.types("topics", "create", "events", "-p", "2")
    described = person.types("kafka-topics", "--describe", "--topic", "events", "--output", "json")
    shown = person.types("status")
    well = person.types("health", "--exit-when-healthy", "--timeout", "30")
    stopped = person.types("stop")
    gone = person.types("status")

    assert (created.returncode, created.stdout) == (0, "Created topic events.\n")
    assert described.returncode == 0
    assert (shown.returncode, f"The tools talk to localhost:{person.port} (default)." in shown.stdout) == (0, True)
    assert (well.returncode, well.stdout.splitlines()[0].split()) == (0, ["Healthy", "yes"])
    assert (stopped.returncode, stopped.stdout.startswith("Stopped node 1 ")) == (0, True)
    assert not (tmp_path / "home/profiles/default.properties").exists()
    assert (gone.returncode, gone.stderr.splitlines()[0]) == (1, "No server of yours runs on this machine.")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="who is suspended is asked of /proc")
def test_a_broker_that_hangs_is_not_starting(person):
    """Is a broker that takes connections and never answers shown as such, with what to do, and can it be stopped?"""
    assert person.starts().returncode == 0
    (node,) = json.loads(person.types("status", "--output", "json").stdout)["nodes"]
    os.kill(node["pid"], signal.SIGSTOP)
    shown, again, stopped = person.types("status"), person.starts(), person.types("stop")

    assert (1, "Node 1 is running already, and does not answer.") == (again.returncode, again.stderr.splitlines()[0])
    assert (1, f"1        not answering  localhost:{person.port}") == (
        shown.returncode,
        shown.stdout.splitlines()[1].removesuffix("here").rstrip(),
    )
    remedy = f"Let it go on with: kill -CONT {node['pid']}"
    assert f"Node 1 (process {node['pid']}) is suspended. {remedy}\n" == shown.stderr
    assert (0, f"Stopped node 1 (process {node['pid']}).\n") == (stopped.returncode, stopped.stdout)


@posix
def test_two_with_the_same_id(person):
    """Does `stop --node-id` end neither of two that have the id, and `--data` the one that is meant and no other?"""
    assert 0 == person.starts().returncode
    assert 0 == person.types("start", "--port", str(two_free_ports()), "--data", "there").returncode
    refused = person.types("stop", "--node-id", "1")
    shown = person.types("status", "--data", "there")
    stopped, again = (person.types("stop", "--node-id", "1", "--data", "there") for _ in range(2))

    assert (1, "Several nodes 1 run here: here and there.\nSay which one with --data.\n") == (
        refused.returncode,
        refused.stderr,
    )
    assert (0, ["there"]) == (shown.returncode, [line.split()[-1] for line in shown.stdout.splitlines()[1:2]])
    assert (0, 1) == (stopped.returncode, stopped.stdout.count("Stopped node 1 "))
    assert (1, "No node 1 runs in there that `headrace start` started.\nThere are: node 1 (here).\n") == (
        again.returncode,
        again.stderr,
    )
    assert 1 == person.types("status", "--data", "there").returncode
    assert (0, 1) == ((left := person.types("stop")).returncode, left.stdout.count("Stopped node 1 "))


@posix
def test_stop_leaves_other_servers_alone(person, tmp_path):
    """Does `stop` end what `start` started and nothing else, though both run for the same person?"""
    config = tmp_path / "other.properties"
    config.write_text(OTHER.format(data=(tmp_path / "other").as_posix()))
    assert person.starts().returncode == 0
    person.types("kafka-server-start", "-daemon", str(config))
    stopped, again = person.types("stop"), person.types("stop")
    others = person.types("server", "stop")

    assert (stopped.returncode, stopped.stdout.count("\n")) == (0, 1)
    assert stopped.stdout.startswith("Stopped node 1 ")
    assert (again.returncode, again.stderr.splitlines()[0]) == (1, "Nothing runs that `headrace start` started.")
    assert others.stdout.startswith("Stopped node 7 ")


def test_start_where_somebody_else_listens(tmp_path):
    """If something else listens on the port, is that said at once, with a way out?"""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = Person(tmp_path, taken.getsockname()[1]).starts()

    assert (done.returncode, done.stdout) == (1, "")
    assert "already." in done.stderr.splitlines()[0]
    assert "--port" in done.stderr.splitlines()[1]


# --- health and status


def test_health_in_the_exit_code(ask):
    """Is a cluster that is well told as such, in text and to programs, with exit code 0?"""
    code, out, err = ask(health)
    assert (code, err) == (0, "")
    assert [line.split()[-1] for line in out.splitlines()] == ["yes", "1", "0", "1", "3", "0", "0", "0"]

    code, out, _ = ask(health, "--output", "json")
    assert (code, json.loads(out)["healthy"], json.loads(out)["partitions"]) == (0, True, 3)


def test_a_lost_disk_is_not_healthy(ask, headrace_cluster):
    """If a log directory is offline, does `health` name it and exit with 1?"""
    directory = headrace_cluster.broker.store.log_dirs[0]
    headrace_cluster.ask(lambda broker: setattr(broker.store.log_dirs[0], "online", False))
    code, out, _ = ask(health)

    assert code == 1
    assert out.splitlines()[0].split() == ["Healthy", "no"]
    assert f"({directory.path} (broker 1))" in out


def test_health_gives_up_in_time(ask, monkeypatch):
    """Does waiting for a cluster that is not there end with exit code 1 when its time is over?"""
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", f"127.0.0.1:{free_port()}")
    code, out, _ = ask(health, "--exit-when-healthy", "--timeout", "0")

    assert (code, out.splitlines()[0].split()) == (1, ["Healthy", "no"])


def test_status_of_a_named_cluster(ask, headrace_cluster):
    """Does `status` show the nodes of the cluster that is named, wherever it runs?"""
    code, out, _ = ask(status, "--bootstrap-server", headrace_cluster.bootstrap)

    assert code == 0
    assert out.splitlines()[1].split() == ["1", "running", headrace_cluster.bootstrap, "-"]


# --- the short ways


def test_topics_in_fewer_words(ask):
    """Do the words for topics do what kafka-topics does, in its words, and delete the very name that was typed?"""
    assert ask(topics, "create", "a.b", "-p", "2", "-c", "retention.ms=1000")[:1] == (0,)
    assert ask(topics, "create", "aXb")[0] == 0
    assert ask(topics)[1] == "a.b\naXb\norders\n"
    assert ask(topics, "alter", "orders", "-p", "4") == (0, "Altered topic orders.\n", "")
    assert "PartitionCount: 4" in ask(topics, "describe", "orders")[1]
    assert ask(topics, "delete", "a.b") == (0, "Deleted topic a.b.\n", "")
    assert ask(topics, "list", "--output", "json")[1] == json.dumps(["aXb", "orders"], indent=2) + "\n"


def test_topics_says_what_is_missing(ask):
    """Is a word that is missing or too many said with a way to find out?"""
    for words, said in ((("create",), "the name of the topic is missing"), (("brew",), "'brew' is one word too many")):
        code, out, err = ask(topics, *words)
        assert (code, out) == (1, "")
        assert err == f"headrace topics: {said}\n`headrace topics --help` shows what can be typed.\n"


def test_help_of_a_front_is_no_error(ask):
    """Is --help answered on standard output, with success?"""
    code, out, err = ask(groups, "--help")

    assert (code, err) == (0, "")
    assert "headrace groups describe NAME" in out


def test_nothing_is_coloured_for_programs(ask):
    """Is what goes into a pipe free of colours?"""
    assert "\033" not in ask(topics, "describe", "orders")[1]


@posix
@pytest.mark.parametrize("declined", [False, True])
def test_colours_on_a_terminal(person, headrace_cluster, declined):
    """On a terminal, is the text Kafka's with colours in it, and without them where NO_COLOR is set?"""
    with WireClient(headrace_cluster.port) as wire:
        wire.create_topic("orders")
    person.environment |= {"HEADRACE_BOOTSTRAP_SERVERS": headrace_cluster.bootstrap, "TERM": "xterm"}
    person.environment |= {"NO_COLOR": "1"} if declined else {}
    piped = person.types("topics", "describe", "orders").stdout
    with Terminal(person.command("topics", "describe", "orders"), environment=person.environment) as terminal:
        code = terminal.finish()

    assert (code, "\033[" in terminal.shown) == (0, not declined)
    assert re.sub(r"\033\[[0-9]+m", "", terminal.shown) == piped


@posix
@pytest.mark.clients
def test_place_and_key_on_a_terminal(person, headrace_cluster):
    """Does `consume` show values alone in a pipe, and partition, offset and key before them on a terminal?"""
    person.environment |= {"HEADRACE_BOOTSTRAP_SERVERS": headrace_cluster.bootstrap, "TERM": "xterm"}
    sent = person.types("produce", "orders", "two boxes", "-k", "k")
    reading = ("consume", "orders", "--from-beginning", "--exit-at-end")
    piped = person.types(*reading)
    with Terminal(person.command(*reading), environment=person.environment) as terminal:
        terminal.wait_for("\033[2m0:0\033[0m \033[36mk\033[0m two boxes\n")

    assert (sent.returncode, sent.stdout) == (0, "")
    assert (piped.returncode, piped.stdout) == (0, "two boxes\n")


# --- completion


def commit(bootstrap: str, group: str) -> None:
    """Make a group by committing an offset in its name."""

    async def work() -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
        request = OffsetCommitRequest(group_id=group, topics=(topic,))
        async with Cluster(connection_options(bootstrap)) as cluster:
            await cluster.persist(lambda: _commit(cluster, group, request))

    asyncio.run(work())


async def _commit(cluster: Cluster, group: str, request: OffsetCommitRequest) -> None:
    answer = await cluster.ask_coordinator(GROUP, group, 8, request, version=8)
    code = ErrorCode(answer.topics[0].partitions[0].error_code)
    if code:
        raise KafkaError(code, "")


def test_topics_are_completed_from_the_broker(ask):
    """Are live names of topics offered for options and words, whoever is asked by the line itself?"""
    assert candidates("kafka-topics --describe --topic or") == ["orders"]
    assert candidates("headrace consume o") == ["orders"]
    assert candidates("headrace topics delete ") == ["orders"]


def test_groups_are_completed_from_the_broker(ask, headrace_cluster):
    """Are live names of groups offered?"""
    commit(headrace_cluster.bootstrap, "billing")

    assert candidates("kafka-consumer-groups --describe --group b") == ["billing"]
    assert candidates("headrace groups describe ") == ["billing"]


def test_completion_is_silent_where_nobody_answers(ask, capsys):
    """Does completion against nobody offer nothing and say nothing?"""
    assert candidates(f"kafka-topics --bootstrap-server 127.0.0.1:{free_port()} --topic ") == []
    assert capsys.readouterr() == ("", "")
