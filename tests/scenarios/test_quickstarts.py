"""Four ways people start, typed as they stand in tutorials, on a terminal and through pipes, and what they get."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.scenarios.project_copy import ROOT, Network, clean_environment, copy_project
from tests.terminal import Terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.clients,
    pytest.mark.skipif(sys.platform == "win32", reason="these are typed into a POSIX shell"),
]

HINT = (
    "The consumer rebalance protocol (KIP-848) is production-ready! Set group.protocol=consumer to try it out. "
    "See https://kafka.apache.org/documentation/#consumer_rebalance_protocol"
)
ATTEMPTS_MAX = 60


def described(topic: str) -> str:
    """What `--describe` prints of a topic with one partition, but for its id."""
    return (
        f"Topic: {topic}\tTopicId: ID\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: segment.bytes=1073741824\n"
        f"\tTopic: {topic}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
    )


def without_id(text: str) -> str:
    return re.sub(r"TopicId: [\w-]{22}", "TopicId: ID", text)


class Desk:
    """A person in the project's directory who types commands as a tutorial has them."""

    def __init__(self, project: Path, network: Network, environment: dict[str, str]) -> None:
        self.project = project
        self.network = network
        self.environment = environment

    def run(self, line: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Through pipes, to the end."""
        return subprocess.run(
            self.network.command(line),
            cwd=self.project,
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def prints(self, line: str, text: str = "") -> str:
        """What a command that succeeds prints."""
        done = self.run(line, text)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def terminal(self, line: str) -> Terminal:
        """On a terminal of its own."""
        return Terminal(self.network.command(line), environment=self.environment, directory=self.project)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project that has set itself up, as it does on first use."""
    directory = tmp_path_factory.mktemp("quickstarts")
    copy = copy_project(directory)
    subprocess.run(
        [copy / "bin/headrace", "python", "-c", "import confluent_kafka"],
        env=clean_environment(directory),
        check=True,
        capture_output=True,
        timeout=300,
    )
    return copy


@pytest.fixture
def desk(project, tmp_path):
    """A fresh start: nothing listens, nothing is stored, nothing is remembered."""
    shutil.rmtree(project / "data", ignore_errors=True)
    with Network() as network:
        for name in ("config/server.properties",):
            (project / name).write_text(network.words((ROOT / name).read_text()))
        desk = Desk(project, network, clean_environment(tmp_path))
        if not network.is_real:
            # What `--zookeeper` stands for is on another port then.
            desk.environment["HEADRACE_BOOTSTRAP_SERVERS"] = network.words("localhost:9092")
        yield desk
        desk.run("bin/headrace server stop")


def test_zookeeper_era(desk):
    """A. Do the commands of the ZooKeeper era work as typed, also with underscores and misspelt? (R15, R27)"""
    assert desk.prints("bin/zookeeper-server-start.sh config/zookeeper.properties") == ""
    with desk.terminal("bin/kafka-server-start.sh config/server.properties") as server:
        server.wait_for("broker_started")
        assert (
            desk.prints("bin/kafka-topics.sh --create --bootstrap-server localhost:9092 --topic Topic")
            == "Created topic Topic.\n"
        )
        assert desk.prints("bin/kafka-topics.sh --list --zookeeper localhost:2181") == "Topic\n"
        shown = desk.prints("bin/kafka-topics.sh --describe --zookeeper localhost:2181 --topic Topic")
        assert without_id(shown) == described("Topic")
        _type_and_read(desk, "Topic")
        assert [path.name for path in (desk.project / "data/kraft-combined-logs").glob("Topic-*")] == ["Topic-0"]
        _misspelt(desk)
        server.press("C")
        assert server.finish() == 0


def _type_and_read(desk: Desk, topic: str) -> None:
    """One person types while another one reads; then a third reads it all."""
    with (
        desk.terminal(f"bin/kafka-console-producer.sh --broker-list localhost:9092 --topic {topic}") as producer,
        desk.terminal(f"bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic {topic}") as consumer,
    ):
        typed = _until_seen(producer, consumer)
        producer.press("D")
        assert producer.finish() == 0
        shown = producer.shown.replace("^D\b\b", "").removeprefix("--broker-list is called --bootstrap-server now.\n")
        assert shown == "".join(f">{line}\n" for line in typed) + ">"
    with desk.terminal(
        f"bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic {topic} --from-beginning"
    ) as reader:
        for line in typed:
            reader.wait_for(f"{line}\n")
        reader.press("C")
        reader.wait_for(f"Processed a total of {len(typed)} messages")
        reader.finish()
        # Ctrl-C is shown by the terminal itself.
        assert reader.shown.replace("^C", "").splitlines() == [
            HINT,
            *typed,
            f"Processed a total of {len(typed)} messages",
        ]


def _until_seen(producer: Terminal, consumer: Terminal) -> list[str]:
    """Type lines until the reader, who begins somewhere in the middle, has seen one."""
    typed: list[str] = []
    consumer.wait_for("KIP-848")
    while not any(f"line {number}\n" in consumer.shown for number in range(len(typed))):
        assert len(typed) < ATTEMPTS_MAX, "the reader sees nothing"
        producer.wait_for(">")
        typed.append(f"line {len(typed)}")
        producer.type(typed[-1])
        consumer.look(seconds=1.0)
    producer.wait_for(">")
    return typed


def _misspelt(desk: Desk) -> None:
    assert desk.prints("bin/zookeeper_server_start.sh config/zookeeper.properties") == ""
    assert desk.prints("bin/kafka_topics.sh --list --zookeeper localhost:2181") == "Topic\n__consumer_offsets\n"
    desk.prints("bin/kafka_topics.sh --create --bootstrap-server localhost:9092 --topic Other")
    desk.prints("bin/kafka_console_producer.sh --broker-list localhost:9092 --topic Other", "one\ntwo\n")
    read = desk.prints(
        "bin/kafka_console_consumer.sh --bootstrap-server localhost:9092 --topic Other --from-begining --max-messages 2"
    )
    assert read == "one\ntwo\n"
    assert desk.run("bin/kafka_server.sh").stdout == (
        "USAGE: bin/kafka_server.sh [-daemon] server.properties [--override property=value]*\n"
    )


def test_quick_start(desk):
    """B. Does the quick start's describe, typing on a terminal, and reading it back give what it shows? (R26, R27)"""
    desk.prints("bin/kafka-server-start.sh -daemon config/server.properties")
    desk.prints("bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092")
    shown = desk.prints("bin/kafka-topics.sh --describe --topic quickstart-events --bootstrap-server localhost:9092")
    assert without_id(shown) == described("quickstart-events")

    with desk.terminal(
        "bin/kafka-console-producer.sh --topic quickstart-events --bootstrap-server localhost:9092"
    ) as producer:
        for line in ("This is my first event", "This is my second event"):
            producer.wait_for(">")
            producer.type(line)
        producer.wait_for(">")
        producer.press("C")
        assert producer.finish() == 0
        assert producer.shown.startswith(">This is my first event\n>This is my second event\n>")

    with desk.terminal(
        "bin/kafka-console-consumer.sh --topic quickstart-events --from-beginning --bootstrap-server localhost:9092"
    ) as consumer:
        consumer.wait_for("This is my first event\nThis is my second event\n")
        consumer.press("C")
        consumer.wait_for("Processed a total of 2 messages")


def test_groups(desk):
    """C. Do the tools without suffix show topics and the groups of two readers, column for column? (R26, R28)"""
    desk.environment["PATH"] = f"{desk.project / 'bin'}:{desk.environment['PATH']}"
    desk.prints("kafka-server-start -daemon config/server.properties")
    server = "--bootstrap-server localhost:9092"
    created = desk.prints(f"kafka-topics {server} --create --topic myTopic --partitions 1 --replication-factor 1")
    assert created == "Created topic myTopic.\n"
    assert desk.prints(f"kafka-topics {server} --list") == "myTopic\n"
    for option in ("--topic", "-topic"):
        assert without_id(desk.prints(f"kafka-topics {server} --describe {option} myTopic")) == described("myTopic")
    assert desk.prints(f"kafka-console-producer {server} --topic myTopic", "a\nb\nc\nd\n") == ""

    reading = f"kafka-console-consumer {server} --topic myTopic --from-beginning"
    with desk.terminal(reading) as one, desk.terminal(reading) as two:
        for reader in (one, two):
            reader.wait_for("a\nb\nc\nd\n")
        listed = desk.prints(f"kafka-consumer-groups {server} --list").splitlines()
        assert len(listed) == 2
        assert all(re.fullmatch(r"console-consumer-\d{1,5}", name) for name in listed)
        for name in listed:
            _check_group(name, desk.prints(f"kafka-consumer-groups {server} --describe --group {name}"))
        for reader in (one, two):
            reader.press("C")
            reader.wait_for("Processed a total of 4 messages")


def _check_group(name: str, shown: str) -> None:
    """The table of a group that never committed, whose columns are as wide as Kafka makes them."""
    blank, header, row = shown.splitlines()
    member = re.search(r"console-consumer-[0-9a-f]{8}-[0-9a-f-]{27}", row)[0]
    columns = [(name, "GROUP"), ("myTopic", "TOPIC"), ("0", "PARTITION"), ("-", "CURRENT-OFFSET")]
    columns += [("4", "LOG-END-OFFSET"), ("-", "LAG"), (member, "CONSUMER-ID"), ("/127.0.0.1", "HOST")]
    least = [15, 15, 10, 15, 15, 15, 15, 15]
    widths = [max(width, len(value)) for (value, _), width in zip(columns, least, strict=True)]
    expected = [
        " ".join(f"{pair[index]:<{width}}" for pair, width in zip(columns, widths, strict=True)) + f" {last}"
        for index, last in ((1, "CLIENT-ID"), (0, "console-consumer"))
    ]

    assert blank == ""
    assert [header.rstrip(), row.rstrip()] == expected


def test_howto_works_as_typed(desk):
    """Does every command of the page on the command line succeed, in its order?"""
    page = (ROOT / "docs/howto/command-line.md").read_text()
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    for line in lines:
        done = desk.run(f"sh -c '{line}'")
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"

    assert len(lines) > 20


def test_cluster_howto_works_as_typed(desk):
    """Does every command of the page on clusters succeed, in its order, and is the cluster as the page shows it?"""
    page = (ROOT / "docs/howto/cluster.md").read_text()
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    # A cluster finds ports by itself, and the tools find the cluster.
    desk.environment.pop("HEADRACE_BOOTSTRAP_SERVERS", None)
    shown = {}
    for line in lines:
        done = desk.run(f"sh -c '{line}'")
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        shown[line] = done.stdout

    assert len(lines) > 10
    assert shown["bin/headrace consume events --from-beginning --max-messages 1"] == "first event\n"
    if desk.network.is_real:
        assert re.search(r"```\n(NODE-ID.*?)```", page, re.DOTALL)[1] in shown["bin/headrace start -n 3"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page says curl")
def test_metrics_howto_works_as_typed(desk):
    """Does a broker tell its metrics where and as the page shows it?"""
    if not desk.network.is_real:
        pytest.skip("the page's ports may be taken")
    page = (ROOT / "docs/howto/metrics.md").read_text()
    *before, last = re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1].splitlines()
    for line in before:
        desk.prints(line)

    assert desk.prints(f"sh -c '{last}'") == re.search(r"```\n(# HELP.*?)```", page, re.DOTALL)[1]


@pytest.mark.parametrize(
    "command",
    ["kafka-server-start", "kafka-topics", "kafka-console-producer", "kafka-console-consumer", "kafka-consumer-groups"],
)
def test_windows_twins_lead_to_the_same_tools(command):
    """D. Does each launcher the Windows tutorials type lead to the tool that its shell twin leads to?"""
    called = re.search(r"-m headrace\.cli (\S+)", (ROOT / f"bin/windows/{command}.bat").read_text())[1]
    twin = re.search(r'/headrace" (\S+)', (ROOT / f"bin/{command}.sh").read_text())[1]

    assert called == twin == command


def test_nothing_needs_a_posix_system_to_be_loaded():
    """D. Can every tool be loaded where the modules that only POSIX systems have are missing?"""
    script = """
import argparse, asyncio, logging, mmap, multiprocessing, pathlib, shutil, ssl, subprocess, sys, tempfile, types
# From here on it looks like Windows to our own modules; the standard library has made up its mind before.
sys.platform = "win32"
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
for name in ("fcntl", "termios", "tty", "pty", "resource", "pwd", "grp", "syslog", "uvloop", "readline"):
    sys.modules[name] = None
import importlib
from headrace.cli.main import COMMANDS, TOOLS
for module in sorted({*TOOLS.values(), *COMMANDS.values()}):
    importlib.import_module(module)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**clean_environment(ROOT), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (done.returncode, done.stderr) == (0, "")
