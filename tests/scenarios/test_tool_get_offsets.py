"""kafka-get-offsets against a broker in this process; also what every tool does with help, versions and mistakes."""

import json

import pytest
from tests.wire_client import WireClient

from headrace.cli.get_offsets import main


@pytest.fixture
def ask(headrace_cluster, capsys, monkeypatch, tmp_path):
    """Runs the tool; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    with WireClient(headrace_cluster.port) as wire:
        for name, partitions in (("orders", 3), ("other", 1)):
            wire.create_topic(name, partitions=partitions)

    def run(*arguments, bootstrap=headrace_cluster.bootstrap):
        where = ("--bootstrap-server", bootstrap) if bootstrap else ()
        code = main([*where, *arguments], "kafka-get-offsets")
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_offsets_are_printed_as_kafka_prints_them(ask):
    """Is it one line of topic, partition and offset each, sorted?"""
    assert ask("--topic", "orders") == (0, "orders:0:0\norders:1:0\norders:2:0\n", "")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("orders:1", [1]), ("orders:0-2", [0, 1]), ("ord.*:1-", [1, 2]), ("orders:-1", [0]), (":2", [2])],
)
def test_ranges_leave_out_their_end(ask, rule, expected):
    """Are all of Kafka's ways to name partitions understood?"""
    code, out, _ = ask("--topic-partitions", rule, "--output", "json")
    assert (code, [row["partition"] for row in json.loads(out)]) == (0, expected)


def test_nothing_found_is_a_failure(ask):
    """Does a filter that matches nothing end in Kafka's sentence and a non-zero code?"""
    code, out, err = ask("--topic", "absent")
    assert (code, out) == (1, "")
    assert err == "Error occurred: Could not match any topic-partitions with the specified filters\n"


def test_help_and_mistakes_exit_with_one(ask):
    """Do help, no arguments and mistakes print the usage on the error stream and exit 1, as Kafka's do?"""
    for arguments in (["--help"], ["--topc", "x"], ["--time"]):
        code, out, err = ask(*arguments)
        assert (code, out) == (1, "")
        assert "--topic-partitions" in err


def test_the_version_is_told(ask):
    """Does --version print one line and succeed?"""
    code, out, _ = ask("--version")
    assert code == 0
    assert out.startswith("4.3.1 ")


def test_nobody_there_is_said_with_advice(ask):
    """Does a wrong address end in one sentence of what is wrong and one of what to do?"""
    code, out, err = ask(bootstrap="127.0.0.1:1")
    assert (code, out) == (1, "")
    assert err.splitlines()[1] == "Is the broker running? Start one with: bin/headrace start"


def test_the_profile_may_name_the_brokers(ask, headrace_cluster, monkeypatch):
    """Can --bootstrap-server be left out where the environment says it, and is it asked for where nothing does?"""
    code, _, err = ask("--topic", "orders", bootstrap=None)
    assert code == 1
    assert 'Missing required argument "[bootstrap-server]"' in err
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", headrace_cluster.bootstrap)
    assert ask("--topic", "orders", bootstrap=None)[0] == 0
