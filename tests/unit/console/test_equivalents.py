"""The same thing elsewhere, to the word: what people copy has to run."""

import ast
import json
import shlex

import pytest

from headrace.console import group_equivalents, record_equivalents, topic_equivalents, transaction_equivalents
from headrace.console.data_groups import Reset
from headrace.console.equivalents import Where, command, curl, segment
from headrace.console.record_lines import NewRecord
from headrace.console.record_query import STARTS, RecordQuery

WHERE = Where(bootstrap="b:9092", base="http://g:8082", cluster_id="C1")


def test_command_is_quoted():
    """Can a shell take a name with blanks and quotes for what it is?"""
    text = command(
        "headrace produce", "it's", options={"topic": "a b", "all": True, "none": None, "config": ["x=1", "y"]}
    )

    assert shlex.split(text) == [
        *("headrace", "produce", "it's", "--topic", "a b", "--all", "--config", "x=1", "--config", "y"),
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ["curl", "http://g/p"]),
        ({"query": {"a": "x y", "b": None, "c": 0}}, ["curl", "http://g/p?a=x%20y&c=0"]),
        ({"method": "DELETE"}, ["curl", "-X", "DELETE", "http://g/p"]),
        ({"body": {"ü": 1}}, ["curl", "-H", "Content-Type: application/json", "-d", '{"ü": 1}', "http://g/p"]),
        ({"method": "STREAM"}, ["curl", "-N", "http://g/p"]),
        ({"method": "STREAM", "is_quiet": True}, ["curl", "-sS", "-N", "http://g/p"]),
    ],
)
def test_curl(given, words):
    """Does curl get the method, the query and the body it needs, and no more?"""
    assert shlex.split(curl("http://g", "/p", **given)) == words


def test_segment():
    """Is a name in a path one segment of it?"""
    assert segment("a/b c") == "a%2Fb%20c"


def test_topic_creation():
    """Are numbers and settings in all three, and left out where the cluster shall choose?"""
    made = topic_equivalents.creation(
        WHERE, "orders", partitions=3, replication=None, configs={"retention.ms": "1000", "cleanup.policy": "a,b"}
    )

    assert made.cli == (
        "kafka-topics --bootstrap-server b:9092 --create --topic orders --partitions 3 "
        "--config retention.ms=1000 --config cleanup.policy=a,b"
    )
    words = shlex.split(made.curl)
    assert words[-1] == "http://g:8082/v3/clusters/C1/topics"
    assert json.loads(words[words.index("-d") + 1])["partitions_count"] == 3
    assert "NewTopic('orders', num_partitions=3, topic_configs=" in made.python


def test_settings():
    """Is a setting set and taken back, and a list in brackets, as kafka-configs wants it?"""
    change = topic_equivalents.config_change(WHERE, "t", "cleanup.policy", "compact,delete")
    back = topic_equivalents.config_change(WHERE, "t", "cleanup.policy", None)

    assert change.cli.endswith("--alter --topic t --add-config 'cleanup.policy=[compact,delete]'")
    assert back.cli.endswith("--alter --topic t --delete-config cleanup.policy")
    assert shlex.split(back.curl)[:3] == ["curl", "-X", "DELETE"]


BY_TIME = " | sort -t : -k 5,5n -k 3,3n -k 4,4n | tail -n 100"


@pytest.mark.parametrize(
    ("query", "options", "url"),
    [
        ({"start": "live"}, "", "/stream/t?since=latest"),
        (
            {"start": "last"},
            "--last 100 --max-messages 100 --exit-at-end",
            f"'http://g:8082/stream/t?since=earliest&until=latest'{BY_TIME}",
        ),
        (
            {"start": "beginning", "partition": 1},
            "--partition 1 --from-beginning --max-messages 100 --exit-at-end",
            "/stream/t?since=earliest&until=latest&partition=1&max=100",
        ),
        (
            {"start": "offset", "partition": 2, "offset": 7},
            "--partition 2 --offset 7 --max-messages 100 --exit-at-end",
            "/stream/t?last_event_id=t%3A2%3D7&until=latest&partition=2&max=100",
        ),
        (
            {"start": "time", "time_ms": 1769860800000, "limit": 20, "partition": 0},
            "--partition 0 --since 2026-01-31T12:00:00.000Z --max-messages 20 --exit-at-end",
            "/stream/t?since=2026-01-31T12%3A00%3A00.000Z&until=latest&partition=0&max=20",
        ),
    ],
)
def test_records(query, options, url):
    """Do the command and the request read from where the view does, and end where it ends?"""
    made = record_equivalents.records(WHERE, RecordQuery(topic="t", **query))

    tool = "kafka-console-consumer --bootstrap-server b:9092 --topic t --isolation-level read_committed"
    assert made.cli.splitlines()[-1] == f"{tool} {options}".strip()
    assert made.curl.replace("'http://g:8082", "").removesuffix("'").endswith(url.replace("'http://g:8082", ""))


def test_newest_begin_with_the_oldest_of_them():
    """Where the view knows how far back the newest go, is no more than that asked for?"""
    made = record_equivalents.records(WHERE, RecordQuery(topic="t", filter="value.x > 1"), oldest_ms=1769860800000)

    for text in (made.curl, made.python):
        assert "since=2026-01-31T12%3A00%3A00.000Z&until=latest&filter=value.x%20%3E%201'" in text


@pytest.mark.parametrize(
    ("query", "noted"),
    [
        ({}, {}),
        ({"start": "live"}, dict.fromkeys(("cli", "curl", "python"), "begins with up to 10 earlier records")),
        ({"start": "beginning", "partition": 0}, {}),
        ({"start": "beginning"}, {"cli": "sorts them by time", "curl": "sorts them by time"}),
        ({"start": "offset"}, {"cli": "this reads partition 0", "curl": "sorts them by time"}),
        ({"filter": "value.x > 1"}, {"cli": "has no filter", "python": "has no filter"}),
    ],
)
def test_what_a_tool_cannot_do_is_said(query, noted):
    """Does a command that does less than the view say so, and only such a command?"""
    made = record_equivalents.records(WHERE, RecordQuery(topic="t", **query))

    for way in ("cli", "curl", "python"):
        notes = "\n".join(line for line in getattr(made, way).splitlines() if line.startswith("#"))
        assert noted[way] in notes if way in noted else not notes


def test_production():
    """Does a record with a key and a header go the same way in all three?"""
    record = NewRecord(key=b"k", value=b"it's", headers=[("h", b"1")], partition=2, timestamp=None)
    made = topic_equivalents.production(WHERE, "t", record)

    assert shlex.split(made.cli)[:2] == ["echo", "h:1;k:it's"]
    body = json.loads(shlex.split(made.curl)[-2])
    assert body == {
        "partition_id": 2,
        "headers": [{"name": "h", "value": "MQ=="}],
        "key": {"type": "STRING", "data": "k"},
        "value": {"type": "STRING", "data": "it's"},
    }


@pytest.mark.parametrize(
    ("reset", "option", "scenario"),
    [
        (Reset(to="earliest"), "--all-topics --to-earliest", {"type": "to-earliest"}),
        (Reset(to="latest", topic="t"), "--topic t --to-latest", {"type": "to-latest"}),
        (Reset(to="offset", offset=5), "--all-topics --to-offset 5", {"type": "to-offset", "offset": 5}),
        (Reset(to="shift", shift=-5), "--all-topics --shift-by -5", {"type": "shift-by", "records": -5}),
    ],
)
def test_reset(reset, option, scenario):
    """Is a reset the same scenario for the tool and for the gateway, tried first?"""
    made = group_equivalents.reset(WHERE, "g", reset, {("t", 0): 5}, execute=False)

    assert made.cli == f"kafka-consumer-groups --bootstrap-server b:9092 --reset-offsets --group g {option} --dry-run"
    assert json.loads(shlex.split(made.curl)[-2])["scenario"] == scenario
    assert "{TopicPartition('t', 0): 5}" in made.python


def test_python_is_python():
    """Can Python read every Python equivalent, whatever the names are?"""
    name = 'it\'s "a" topic'
    record = NewRecord(key=b"k", value=None, headers=[], partition=None, timestamp=None)
    all_of_them = [
        topic_equivalents.listing(WHERE),
        topic_equivalents.creation(WHERE, name, partitions=1, replication=1, configs={"a": "'"}),
        topic_equivalents.deletion(WHERE, name),
        topic_equivalents.description(WHERE, name),
        topic_equivalents.configs(WHERE, name),
        topic_equivalents.config_change(WHERE, name, "a", "'"),
        topic_equivalents.groups(WHERE, name),
        topic_equivalents.production(WHERE, name, record),
        topic_equivalents.production(WHERE, name, record, record, left=3),
        transaction_equivalents.listing(WHERE),
        transaction_equivalents.description(WHERE, name),
        transaction_equivalents.abortion(WHERE, name),
        transaction_equivalents.search(WHERE, 15),
        transaction_equivalents.abortion_of_hanging(WHERE, name, 0, 5),
        group_equivalents.listing(WHERE),
        group_equivalents.description(WHERE, name),
        group_equivalents.deletion(WHERE, name),
        group_equivalents.reset(WHERE, name, Reset(to="time", time_ms=0), {(name, 0): 1}, execute=True),
    ]
    queries = [
        RecordQuery(topic=name, start=start, partition=one, filter=test)
        for start in STARTS
        for one in (None, 1)
        for test in ("", 'key == "it\'s"')
    ]
    all_of_them += [record_equivalents.records(WHERE, query) for query in queries]

    for one in all_of_them:
        ast.parse(one.python)
        assert shlex.split(one.cli)
        assert shlex.split(one.curl)
