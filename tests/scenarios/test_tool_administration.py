"""The smaller administration tools against a broker in this process, and what is said where it lacks an API."""

import importlib
import json
import re

import pytest
from tests.wire_client import WireClient


@pytest.fixture
def tool(headrace_cluster, capsys, monkeypatch, tmp_path):
    """Runs a tool by its module's name; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    with WireClient(headrace_cluster.port) as wire:
        wire.create_topic("orders", partitions=2)

    def run(name, *arguments):
        module = importlib.import_module(f"headrace.cli.{name}")
        typed = [*map(str, arguments), "--bootstrap-server", headrace_cluster.bootstrap]
        code = module.main(typed, module.TOOL.name)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def offsets(tmp_path, *rows, **more):
    """A file for kafka-delete-records."""
    path = tmp_path / "offsets.json"
    partitions = [{"topic": topic, "partition": index, "offset": offset} for topic, index, offset in rows]
    path.write_text(json.dumps({"partitions": partitions} | more))
    return path


def test_delete_records(tool, tmp_path):
    """Is every partition told, and is one that failed an exit code other than 0?"""
    done = tool("delete_records", "--offset-json-file", offsets(tmp_path, ("orders", 1, 0), ("orders", 0, 0)))
    failed = tool("delete_records", "--offset-json-file", offsets(tmp_path, ("orders", 0, 7), ("nix", 0, 0)))

    head = "Executing records delete operation\nRecords delete operation completed:\n"
    assert done == (
        0,
        head + "partition: orders-0\tlow_watermark: 0\npartition: orders-1\tlow_watermark: 0\n",
        "",
    )
    assert failed[:2] == (
        1,
        head + "partition: nix-0\terror: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server "
        "does not host this topic-partition.\n"
        "partition: orders-0\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: The requested offset is "
        "not within the range of offsets maintained by the server.\n",
    )


@pytest.mark.parametrize(
    ("rows", "more", "sentence"),
    [
        ([("a", 0, 1), ("a", 0, 2)], {}, "Offset json file contains duplicate topic partitions: a-0"),
        ([], {"version": 7}, "Not supported version field value 7"),
    ],
)
def test_files_that_say_nothing_sensible(tool, tmp_path, rows, more, sentence):
    """Is a file refused in Kafka's words?"""
    assert tool("delete_records", "--offset-json-file", offsets(tmp_path, *rows, **more)) == (1, "", f"{sentence}\n")


def test_log_dirs(tool):
    """Is it two sentences and one line of JSON, filtered by topics?"""
    code, out, _ = tool("log_dirs", "--describe", "--topic-list", "orders")

    first, second, third = out.splitlines()
    (broker,) = json.loads(third)["brokers"]
    assert code == 0
    assert (first, second) == (
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    )
    assert {row["partition"] for row in broker["logDirs"][0]["partitions"]} == {"orders-0", "orders-1"}
    assert tool("log_dirs", "--describe", "--broker-list", "1,7")[2] == (
        "ERROR: The given brokers do not exist from --broker-list: 7. Current existent brokers: 1\n"
    )


def test_cluster(tool, headrace_cluster):
    """Are the id and the endpoints printed as Kafka prints them?"""
    host, port = headrace_cluster.bootstrap.split(":")

    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", tool("cluster", "cluster-id")[1])
    assert tool("cluster", "list-endpoints")[1].splitlines() == [
        f"{'ID':<10} {'HOST':<{len(host)}} {'PORT':<10} {'RACK':<10} {'STATE':<10} {'ENDPOINT_TYPE':<15}",
        f"{'1':<10} {host} {port:<10} {'null':<10} {'unfenced':<10} {'broker':<15}",
    ]


def test_features(tool):
    """Is a line printed per feature, and do the look-ups work without the broker?"""
    lines = tool("features", "describe")[1].splitlines()

    assert all(re.match(r"Feature: \S+ +SupportedMinVersion: \S+ +SupportedMaxVersion: \S+ ", line) for line in lines)
    assert lines
    assert tool("features", "version-mapping", "--release-version", "3.9")[1].splitlines()[:3] == [
        "metadata.version=21 (3.9)",
        "kraft.version=1",
        "transaction.version=0",
    ]
    assert tool("features", "feature-dependencies", "--feature", "eligible.leader.replicas.version=1")[1] == (
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
    )
    assert tool("features", "upgrade") == (1, "", "You must specify at least one feature to upgrade\n")


def test_broker_api_versions(tool, headrace_cluster):
    """Are served APIs shown with what is usable, and others as unsupported?"""
    out = tool("broker_api_versions")[1]

    assert out.startswith(f"{headrace_cluster.bootstrap} (id: 1 rack: null isFenced: false) -> (\n\tProduce(0): 0 to ")
    assert re.search(r"\n\tFetch\(1\): \d+ to (\d+) \[usable: \1\],\n", out)
    assert out.endswith("\n)\n")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("acls", ("--list",)),
        ("leader_election", ("--election-type", "preferred", "--all-topic-partitions")),
        ("metadata_quorum", ("describe", "--status")),
        ("reassign_partitions", ("--list",)),
        ("configs", ("--describe", "--user", "alice")),
    ],
)
def test_every_tool_answers_in_sentences(tool, name, arguments):
    """Where the broker serves what the tool needs, does it succeed, and otherwise say in a sentence what is missing?"""
    code, out, err = tool(name, *arguments)

    assert code == 0 or "does not serve" in out + err
    assert "Traceback" not in out + err


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("cluster", ("foo",), "kafka-cluster: error: invalid choice: 'foo' (choose from 'cluster-id', "),
        ("cluster", (), "kafka-cluster: error: too few arguments"),
        ("cluster", ("unregister",), "kafka-cluster: error: argument --id is required"),
        ("features", (), "Command line error: too few arguments. Type --help for help.\n"),
        ("features", ("describe", "--feature", "x"), "Command line error: unrecognized arguments: '--feature'. Type"),
        (
            "leader_election",
            ("--election-type", "unclean", "--admin.config", "a", "--command-config", "b"),
            'Option "[admin.config]" can\'t be used with option "[command-config]"',
        ),
        ("metadata_quorum", ("describe",), "One of --status or --replication must be specified with describe"),
        ("leader_election", (), "Missing required option(s): election-type"),
        ("leader_election", ("--election-type", "preferred"), "One and only one of the following options is required"),
        ("acls", (), "Command must include exactly one action: --list, --add, --remove. "),
        ("acls", ("--add", "--topic", "a"), "You must specify one of: --allow-principal, --deny-principal when"),
        ("reassign_partitions", ("--list", "--throttle", 5), 'Option "[throttle]" can\'t be used with action "[list]"'),
        ("reassign_partitions", ("--generate",), 'Missing required argument "[topics-to-move-json-file]"'),
        ("log_dirs", (), 'Missing required argument "[describe]"'),
    ],
)
def test_mistakes_are_refused_in_kafkas_words(tool, name, arguments, sentence):
    """Is what does not go together refused on the error stream with exit code 1?"""
    code, out, err = tool(name, *arguments)

    assert (code, out) == (1, "")
    assert err.startswith(sentence)


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("log_dirs", ("--describe",)),
        ("cluster", ("cluster-id",)),
        ("cluster", ("list-endpoints",)),
        ("features", ("describe",)),
        ("features", ("version-mapping",)),
        ("broker_api_versions", ()),
        ("configs", ("--describe", "--entity-type", "brokers")),
        ("topics", ("--describe",)),
    ],
)
def test_results_for_programs(tool, name, arguments, form):
    """Is the result one document, with nothing else on standard output?"""
    code, out, _ = tool(name, *arguments, "--output", form)

    assert code == 0
    if form == "json":
        assert json.loads(out)
    else:
        assert all(re.match(r' *(- ?|"[^"]+":)', line) for line in out.splitlines())
