"""Our administration tools and Kafka's own, asked the same of the same broker: what they print is the same.

Both brokers are asked: Headrace, and Apache Kafka, whose answers our tools must understand too. A list of commands is
a story: each one is given to both tools in turn, so that what changes something is a change that can be made twice.
"""

import importlib
import re

import pytest

from clients.java.administration_tools import CLASSES, NOISE, Tools
from headrace.testing.broker_process import HeadraceProcess
from headrace.testing.peer import KafkaPeer


@pytest.fixture(scope="module", params=[HeadraceProcess, KafkaPeer], ids=["headrace", "kafka"])
def running(java, request, tmp_path_factory):
    """A running broker of each kind."""
    with request.param(tmp_path_factory.mktemp("tools") / "broker") as broker:
        yield broker


@pytest.fixture
def tools(java, running, capsys, tmp_path, monkeypatch):
    """Both tools, with two topics to look at."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    made = Tools(java, running, capsys, tmp_path)
    made.create("d1", "zeta_2")
    return made


@pytest.fixture
def kafka_only(running):
    """Skips where the broker does not serve what the tool needs."""
    if not isinstance(running, KafkaPeer):
        pytest.skip("Headrace does not serve this API yet")


def test_topics(tools):
    """Are lists, descriptions, warnings and refusals of kafka-topics those of Kafka's?"""
    for line in (
        "--list",
        "--describe",
        "--describe --topic d1",
        "--describe --topic d.*,zeta.*",
        "--describe --partition-size-limit-per-response 2",
        "--describe --topics-with-overrides",
        "--describe --unavailable-partitions",
        "--describe --at-min-isr-partitions",
        "--describe --under-replicated-partitions",
        "--create --topic d1",
        "--create --topic zeta_2 --if-not-exists",
        "--create --topic a/b",
        "--create --topic c_f --config x.y=3",
        "--create --topic conf --config retention.ms=hello",
        "--create --topic x --partitions x",
        "--create --topic x --partitions 0",
        "--create --topic x --replica-assignment 1,1:2",
        "--create --topic x --replica-assignment 1,2",
        "--create --topic=",
        "--describe --topic nix",
        "--describe --topic a[",
        "--describe --topic-id zz",
        "--describe --topic-id AAAAAAAAAAAAAAAAAAAAAA",
        "--alter --topic d1 --partitions 1",
        "--delete --topic nix",
        "--delete --topic nix --if-exists",
        "--alter --topic d1 --config a=b",
        "--list --partitions 2",
    ):
        tools.compare("topics", line)


def test_configs_of_things(tools):
    """Are settings of topics, brokers and groups shown and changed as Kafka's kafka-configs does?"""
    for line in (
        "--alter --topic d1 --add-config retention.ms=5000,cleanup.policy=[compact,delete]",
        "--describe --topic d1",
        "--describe --topic d1 --all",
        "--describe --entity-type topics",
        "--alter --topic d1 --delete-config retention.ms",
        "--describe --entity-type brokers",
        "--describe --broker 1 --all",
        "--describe --broker 7",
        "--describe --topic nix",
        "--describe --group nix",
        "--alter --group g1 --add-config consumer.session.timeout.ms=50000",
        "--describe --group g1",
        "--describe --entity-type groups",
        "--alter --broker-defaults --add-config log.cleaner.threads=2",
        "--describe --broker-defaults",
        "--alter --broker-defaults --delete-config log.cleaner.threads",
        "--alter --topic d1 --add-config a=b",
        "--alter --topic nix --add-config retention.ms=5",
        "--describe --topic nix --all",
        "--alter",
        "--describe --topic a/b",
    ):
        tools.compare("configs", line)


def test_offsets_records_and_directories(tools):
    """Do kafka-get-offsets, kafka-delete-records and kafka-log-dirs print what Kafka's print?"""
    rows = [{"topic": "d1", "partition": 0, "offset": 0}, {"topic": "d1", "partition": 1, "offset": 50}]
    tools.file("some.json", {"partitions": rows, "version": 1})
    tools.file("twice.json", {"partitions": [rows[0], rows[0]]})
    tools.file("bad.json", "xx")
    for when in ("latest", "earliest", "max-timestamp", "latest-tiered", "1700000000000", "soon"):
        tools.compare("get_offsets", f"--topic d1 --time {when}")
    for rule in ("d1:0,zeta_2", "d1:0-2", ":1", "d.*:-2", "d1:x", "nix"):
        tools.compare("get_offsets", f"--topic-partitions {rule}")
    tools.compare("delete_records", "--offset-json-file FILES/some.json", sort=True)
    for name in ("twice", "bad", "absent"):
        tools.compare("delete_records", f"--offset-json-file FILES/{name}.json")
    for line in ("--describe", "--describe --topic-list d1", "--describe --broker-list 1,7"):
        tools.compare("log_dirs", line)


def test_the_cluster(tools):
    """Do kafka-features and kafka-broker-api-versions print what Kafka's print?"""
    for line in (
        "describe",
        "version-mapping",
        "version-mapping --release-version 4.0",
        "version-mapping --release-version 9",
        "feature-dependencies --feature eligible.leader.replicas.version=1 --feature metadata.version=25",
        "upgrade",
        "upgrade --feature x",
        "upgrade --release-version 3.9 --feature a=1",
    ):
        tools.compare("features", line)
    tools.compare("broker_api_versions", "")


def test_cluster_id_and_endpoints(tools, java, running, capsys):
    """Does kafka-cluster, whose command comes first, print what Kafka's prints?"""
    module = importlib.import_module("headrace.cli.cluster")
    for command in ("cluster-id", "list-endpoints"):
        arguments = (command, "--bootstrap-server", running.bootstrap)
        expected = java.check(CLASSES["cluster"], *arguments).out
        capsys.readouterr()
        assert module.main(arguments, "kafka-cluster") == 0
        assert capsys.readouterr().out == expected


def test_controllers_and_leaders(tools):
    """Do kafka-metadata-quorum, kafka-features' updates and kafka-leader-election print what Kafka's print?"""
    tools.file("some.json", {"partitions": [{"topic": name, "partition": 0} for name in ("d1", "zeta_2", "nix")]})
    for line in (
        "describe --status",
        "describe --replication",
        "describe",
        "remove-controller -i 3 -d AAAAAAAAAAAAAAAAAAAAAQ --dry-run",
        "remove-controller -i 3 -d AAAAAAAAAAAAAAAAAAAAAQ",
        "add-controller",
    ):
        tools.compare("metadata_quorum", line)
    for line in (
        "upgrade --feature share.version=1 --dry-run",
        "upgrade --feature foo=1",
        "downgrade --feature metadata.version=20",
        "disable --feature share.version --dry-run",
    ):
        tools.compare("features", line)
    for line in (
        "--election-type preferred --topic d1 --partition 0",
        "--election-type preferred --path-to-json-file FILES/some.json",
        "--election-type unclean --all-topic-partitions",
        "--election-type preferred",
    ):
        tools.compare("leader_election", line)


def test_controllers_are_asked_directly(tools, java, running, capsys):
    """Do tools that may be given the address of a controller print what Kafka's print then?"""
    address = re.search(r"controller\.quorum\.voters=1@(\S+)", running.properties.read_text())[1]
    for name, line in (
        ("cluster", "cluster-id"),
        ("cluster", "list-endpoints"),
        ("metadata_quorum", "describe --status"),
        ("features", "upgrade --feature share.version=1 --dry-run"),
        ("configs", "--describe --entity-type brokers"),
        ("reassign_partitions", "--list"),
    ):
        where, words = ["--bootstrap-controller", address], line.split()
        typed = [*words, *where] if name == "cluster" else [*where, *words]  # that one wants its command first
        expected = java.check(CLASSES[name], *typed).out
        capsys.readouterr()
        module = importlib.import_module(f"headrace.cli.{name}")
        assert module.main(typed, module.TOOL.name) == 0, line
        assert NOISE.sub("", capsys.readouterr().out) == NOISE.sub("", expected)


def test_reassignments(tools, running):
    """Does kafka-reassign-partitions print what Kafka's prints, plans and refusals too?"""
    here = {"topic": "d1", "partition": 0, "replicas": [1]}
    tools.file("topics.json", {"topics": [{"topic": "d1"}, {"topic": "zeta_2"}], "version": 1})
    tools.file("plan.json", {"version": 1, "partitions": [here, here | {"partition": 1}]})
    tools.file("dirs.json", {"version": 1, "partitions": [here | {"log_dirs": [str(running.log_dir)]}]})
    tools.file("elsewhere.json", {"version": 1, "partitions": [here | {"replicas": [7]}]})
    tools.file("nix.json", {"version": 1, "partitions": [here | {"topic": "nix"}]})
    tools.file("twice.json", {"version": 1, "partitions": [here, here]})
    for line in (
        "--list",
        "--generate --topics-to-move-json-file FILES/topics.json --broker-list 1",
        "--generate --topics-to-move-json-file FILES/topics.json --broker-list 9",
        "--execute --reassignment-json-file FILES/plan.json --throttle 1000 --replica-alter-log-dirs-throttle 500",
        "--verify --reassignment-json-file FILES/plan.json --preserve-throttles",
        "--verify --reassignment-json-file FILES/plan.json",
        "--cancel --reassignment-json-file FILES/plan.json",
        "--execute --reassignment-json-file FILES/dirs.json",
        "--verify --reassignment-json-file FILES/dirs.json",
        "--execute --reassignment-json-file FILES/elsewhere.json",
        "--execute --reassignment-json-file FILES/nix.json",
        "--verify --reassignment-json-file FILES/nix.json",
        "--execute --reassignment-json-file FILES/twice.json",
        "--list --throttle 5",
    ):
        tools.compare("reassign_partitions", line)
