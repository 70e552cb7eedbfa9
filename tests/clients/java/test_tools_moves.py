"""Partitions that really move, between two Kafka brokers and between a Headrace broker's log dirs: what tools say."""

import importlib
import json
import re
import subprocess

import pytest

from clients.java.live_clients import until
from headrace.testing.broker_process import HeadraceProcess
from headrace.testing.kafka_jars import classpath, java_command
from headrace.testing.peer import KafkaPeer

REASSIGN = ("reassign_partitions", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand")
TOPICS = ("topics", "org.apache.kafka.tools.TopicCommand")
STACK_TRACE = re.compile(r"(?m)^(\s+at .*|Caused by: .*|\s+\.\.\. \d+ more|[\w.$]+(Exception|Exited): .*)\n")


class SecondBroker(KafkaPeer):
    """Another broker of a cluster that is already there."""

    def __init__(self, directory, first: KafkaPeer):
        super().__init__(directory)
        self._first = first
        voter = re.search(r"(?m)^controller\.quorum\.voters=.*$", first.properties.read_text())
        text = self.properties.read_text()
        for pattern, line in (
            (r"process\.roles=.*", "process.roles=broker"),
            (r"node\.id=.*", "node.id=2"),
            (r"controller\.quorum\.voters=.*", voter[0]),
            (r"listeners=.*", f"listeners=PLAINTEXT://127.0.0.1:{self.port}"),
            (r"log\.dirs=.*", f"log.dirs={self.log_dir},{self.log_dir}-more"),
        ):
            text = re.sub(f"(?m)^{pattern}$", line, text)
        self.properties.write_text(text)

    def format(self) -> None:
        """Format for the first broker's cluster."""
        properties = (self._first.log_dir / "meta.properties").read_text()
        cluster_id = re.search(r"(?m)^cluster\.id=(.*)$", properties)[1]
        command = [java_command(), "-Xmx256M", "-cp", classpath(), "kafka.tools.StorageTool", "format"]
        command += [f"--cluster-id={cluster_id}", "--config", str(self.properties)]  # an id may begin with a dash
        subprocess.run(command, check=True, capture_output=True, timeout=60)


@pytest.fixture
def pair(java, tmp_path):
    """Two running brokers."""
    settings = {"broker.session.timeout.ms": "5000"}  # how long the second is missed before it counts as gone
    with KafkaPeer(tmp_path / "first", settings=settings) as first, SecondBroker(tmp_path / "second", first) as second:
        yield first, second


@pytest.fixture
def ours(pair, capsys):
    """Runs our tool; gives its exit code and what it printed."""

    def run(tool, line: str) -> tuple[int, str]:
        module = importlib.import_module(f"headrace.cli.{tool[0]}")
        capsys.readouterr()
        code = module.main(["--bootstrap-server", pair[0].bootstrap, *line.split()], module.TOOL.name)
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def alike(java, pair, ours):
    """Asserts that both tools print the same and agree on success; gives what they print."""

    def run(tool, line: str) -> str:
        theirs = java.run(tool[1], "--bootstrap-server", pair[0].bootstrap, *line.split())
        code, out = ours(tool, line)
        assert STACK_TRACE.sub("", theirs.out).rstrip() == out.rstrip()
        assert theirs.code == code
        return out

    return run


def fill(bootstrap: str, topic: str, partitions: int) -> None:
    """Give each partition some megabytes, so that a throttled move takes its time."""
    confluent = pytest.importorskip("confluent_kafka")
    producer = confluent.Producer({"bootstrap.servers": bootstrap, "log_level": 2})
    for number in range(6000):
        producer.produce(topic, bytes(1000), partition=number % partitions)
        producer.poll(0)
    assert producer.flush(60) == 0


def test_partitions_move_and_are_watched_alike(pair, ours, alike, tmp_path):
    """While partitions move, are cancelled, move to a directory and lose their broker: do both tools say the same?"""
    first, second = pair
    plan, dirs = tmp_path / "plan.json", tmp_path / "dirs.json"
    rows = [{"topic": "mv", "partition": 0, "replicas": [2]}, {"topic": "mv", "partition": 1, "replicas": [2, 1]}]
    plan.write_text(json.dumps({"partitions": rows}))
    elsewhere = f"{second.log_dir}-more"
    dirs.write_text(json.dumps({"partitions": [rows[0] | {"log_dirs": [elsewhere]}, rows[1]]}))
    assert ours(TOPICS, "--create --topic mv --replica-assignment 1,1,1") == (0, "Created topic mv.\n")
    fill(first.bootstrap, "mv", 3)

    code, out = ours(REASSIGN, f"--execute --reassignment-json-file {plan} --throttle 20000")
    assert (code, out.splitlines()[-1]) == (0, "Successfully started partition reassignments for mv-0,mv-1")
    assert alike(REASSIGN, "--list").splitlines() == [
        "Current partition reassignments:",
        "mv-0: replicas: 2,1. adding: 2. removing: 1.",
        "mv-1: replicas: 2,1. adding: 2.",
    ]
    assert "Reassignment of partition mv-0 is still in progress." in alike(
        REASSIGN, f"--verify --reassignment-json-file {plan}"
    )
    assert alike(REASSIGN, f"--execute --reassignment-json-file {plan}").startswith("Cannot execute because there is")
    alike(REASSIGN, f"--execute --reassignment-json-file {plan} --additional --throttle 25000")
    assert "\tAdding Replicas: 2\tRemoving Replicas: 1\t" in alike(TOPICS, "--describe --topic mv")
    alike(TOPICS, "--describe --under-replicated-partitions")

    out = ours(REASSIGN, f"--cancel --reassignment-json-file {plan}")[1]
    assert out.startswith("Successfully cancelled partition reassignments for: mv-0,mv-1\n")
    assert alike(REASSIGN, "--list") == "No partition reassignments found.\n"

    code, out = ours(REASSIGN, f"--execute --reassignment-json-file {dirs}")
    assert (code, out.splitlines()[-1]) == (
        0,
        f"Successfully started moving log directory to {elsewhere} for replica mv-0 with broker 2 ",
    )
    until(
        lambda: ours(REASSIGN, f"--verify --reassignment-json-file {dirs}")[1],
        lambda text: "is completed" in text and "completed successfully" in text and "in progress" not in text,
        "the partitions have moved",
    )
    alike(REASSIGN, f"--verify --reassignment-json-file {dirs}")

    second.kill()
    until(
        lambda: ours(TOPICS, "--describe --topic mv --unavailable-partitions")[1],
        lambda text: "Partition: 0\tLeader: none" in text,
        "the broker is missed",
    )
    for report in ("", "--unavailable-partitions", "--under-replicated-partitions", "--under-min-isr-partitions"):
        alike(TOPICS, f"--describe --topic mv {report}")


def test_kafkas_tool_moves_a_replica_between_log_dirs_of_headrace(java, tmp_path):
    """Does Kafka's own tool move a replica to another log dir of a Headrace broker, throttled, and see it there?"""
    data, more = tmp_path / "broker" / "data", tmp_path / "broker" / "more"
    with HeadraceProcess(tmp_path / "broker", settings={"log.dirs": f"{data},{more}"}) as broker:

        def theirs(tool, line):
            done = java.run(tool[1], "--bootstrap-server", broker.bootstrap, *line.split())
            assert done.code == 0, done.out
            return done.out

        theirs(TOPICS, "--create --topic mv --partitions 1")
        fill(broker.bootstrap, "mv", 1)
        source, target = (data, more) if (data / "mv-0").exists() else (more, data)
        plan = tmp_path / "dirs.json"
        rows = [{"topic": "mv", "partition": 0, "replicas": [1], "log_dirs": [str(target)]}]
        plan.write_text(json.dumps({"version": 1, "partitions": rows}))
        began = f"Successfully started moving log directory to {target} for replica mv-0 with broker 1"
        throttle = "--replica-alter-log-dirs-throttle 1000000000"
        assert began in theirs(REASSIGN, f"--execute --reassignment-json-file {plan} {throttle}")
        until(
            lambda: theirs(REASSIGN, f"--verify --reassignment-json-file {plan}"),
            lambda text: "Reassignment of replica mv-0-1 completed successfully." in text,
            "the replica has moved",
        )
        assert (target / "mv-0").exists()
        # The old place is left once the new one is safe, a moment after readers and tools see the replica there.
        until((source / "mv-0").exists, lambda there: not there, "the old directory is gone")
