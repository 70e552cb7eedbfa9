"""What the console says to type elsewhere: it is typed, against a real broker."""

import contextlib
import io
import itertools
import json
import re
import shlex
import shutil
import subprocess
import uuid

import pytest

from headrace.cli.main import main
from headrace.client.admin import KafkaAdmin
from headrace.client.consumer import KafkaConsumer
from headrace.client.offset_targets import Plan
from headrace.client.producer import KafkaProducer
from headrace.client.records import TopicPartition
from headrace.console import group_equivalents, record_equivalents, topic_equivalents, transaction_equivalents
from headrace.console.data_groups import Reset
from headrace.console.equivalents import Where
from headrace.console.record_lines import NewRecord
from headrace.console.record_query import RecordQuery


class Elsewhere:
    """Types commands and runs scripts."""

    def __init__(self, bootstrap, base="http://localhost:8082", cluster_id="C"):
        self.where = Where(bootstrap=bootstrap, base=base, cluster_id=cluster_id)
        name = uuid.uuid4().hex[:8]
        self.topic, self.group = f"orders-{name}", f"packers-{name}"

    def typed(self, line):
        """What a command prints; it must succeed."""
        words = shlex.split(_without_notes(line))
        given = io.StringIO()
        if "|" in words:
            end = words.index("|")
            given.write("".join(f"{line}\n" for line in words[1 if words[0] == "echo" else 2 : end]))
            given.seek(0)
            words = words[end + 1 :]
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
            patch.setattr("sys.argv", words)
            patch.setattr("sys.stdin", given)
            code = main()
        assert code == 0, out.getvalue()
        return out.getvalue()

    def asked(self, line):
        """What curl prints; the gateway must agree."""
        asked = _without_notes(line).replace("curl ", "curl --fail-with-body --silent --max-time 20 ", 1)
        done = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stdout}"
        return done.stdout

    def run(self, script):
        """What a script prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(script, "equivalent", "exec"), {})
        return out.getvalue()


def _without_notes(line):
    return "\n".join(itertools.dropwhile(lambda one: one.startswith("#"), line.split("\n")))


@pytest.fixture
def elsewhere(broker):
    """Before the shared broker."""
    return Elsewhere(broker.bootstrap)


def test_topics(elsewhere, broker):
    """Do the command and the script that make, show, set and delete a topic do so?"""
    where, topic = elsewhere.where, elsewhere.topic
    by_command = topic_equivalents.creation(where, topic, partitions=2, replication=1, configs={"retention.ms": "1000"})
    by_script = topic_equivalents.creation(where, f"{topic}-2", partitions=1, replication=None, configs={})
    elsewhere.typed(by_command.cli)
    elsewhere.run(by_script.python)
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        assert {topic, f"{topic}-2"} <= set(admin.list_topics())

    for view in (topic_equivalents.listing(where), topic_equivalents.description(where, topic)):
        assert topic in elsewhere.typed(view.cli)
        assert topic in elsewhere.run(view.python)
    change = topic_equivalents.config_change(where, topic, "cleanup.policy", "compact,delete")
    elsewhere.typed(change.cli)
    elsewhere.run(topic_equivalents.config_change(where, topic, "retention.ms", None).python)
    shown = topic_equivalents.configs(where, topic)
    assert "compact,delete" in elsewhere.typed(shown.cli)
    assert "compact,delete" in elsewhere.run(shown.python)

    elsewhere.typed(topic_equivalents.deletion(where, topic).cli)
    elsewhere.run(topic_equivalents.deletion(where, f"{topic}-2").python)
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        assert not {topic, f"{topic}-2"} & set(admin.list_topics())


def test_records(elsewhere):
    """Is a record that a command or a script sends the one that commands read, from wherever?"""
    where, topic = elsewhere.where, elsewhere.topic
    elsewhere.typed(topic_equivalents.creation(where, topic, partitions=1, replication=1, configs={}).cli)
    record = NewRecord(key=b"k", value=b"it's 1", headers=[], partition=None, timestamp=None)
    elsewhere.typed(topic_equivalents.production(where, topic, record).cli)
    second = NewRecord(key=b"k", value=b"and 2", headers=[("h", b"x")], partition=0, timestamp=None)
    elsewhere.run(topic_equivalents.production(where, topic, second).python)

    for query, expected in (
        (RecordQuery(topic=topic, limit=1), ["and 2"]),
        (RecordQuery(topic=topic, start="beginning"), ["it's 1", "and 2"]),
        (RecordQuery(topic=topic, start="offset", partition=0, offset=1), ["and 2"]),
        (RecordQuery(topic=topic, start="time", time_ms=0, limit=1), ["it's 1"]),
    ):
        assert elsewhere.typed(record_equivalents.records(where, query).cli).splitlines() == expected


SPREAD = [(number % 2, 1_769_860_800_000 + number * 1000, {"n": number}) for number in range(12)]
"""Partition, time and value of records that take turns between two partitions."""
FAST = "value.n >= 4 and value.n != 7"


@pytest.fixture
def spread(online, broker):
    """A topic of two partitions whose records lie between one another in time."""
    where, topic = online.where, online.topic
    online.typed(topic_equivalents.creation(where, topic, partitions=2, replication=1, configs={}).cli)
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for partition, at_ms, value in SPREAD:
            producer.send(topic, json.dumps(value).encode(), partition=partition, timestamp_ms=at_ms)
    return online


def _numbers(text):
    return [int(number) for number in re.findall(r"""["']n["']: ?(\d+)""", text)]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"limit": 5}, {"all": [7, 8, 9, 10, 11]}),
        ({"limit": 3, "partition": 1}, {"all": [7, 9, 11]}),
        ({"limit": 5, "filter": FAST}, {"curl": [6, 8, 9, 10, 11], "python": [6, 8, 9, 10, 11]}),
        ({"start": "beginning", "limit": 50}, {"all": list(range(12))}),
        ({"start": "beginning", "limit": 3}, {"python": [0, 1, 2]}),
        ({"start": "beginning", "filter": FAST}, {"curl": [4, 5, 6, 8, 9, 10, 11], "python": [4, 5, 6, 8, 9, 10, 11]}),
        ({"start": "offset", "partition": 1, "offset": 4}, {"all": [9, 11]}),
        ({"start": "offset", "offset": 4}, {"curl": [8, 9, 10, 11], "python": [8, 9, 10, 11]}),
        ({"start": "offset", "offset": 4, "filter": FAST}, {"curl": [8, 9, 10, 11], "python": [8, 9, 10, 11]}),
        ({"start": "offset", "partition": 1, "offset": 99}, {"curl": [], "python": []}),
        ({"start": "time", "time_ms": SPREAD[9][1]}, {"all": [9, 10, 11]}),
    ],
)
def test_same_records_as_the_view(spread, query, expected):
    """Do command, curl and program print the records that the view shows, and come to an end?"""
    made = record_equivalents.records(spread.where, RecordQuery(topic=spread.topic, **query))
    ways = {"cli": spread.typed, "curl": spread.asked, "python": spread.run}

    for way, do in ways.items():
        wanted = expected.get(way, expected.get("all"))
        if wanted is not None:
            found = _numbers(do(getattr(made, way)))
            # Where partitions come one after the other, a note says that they do.
            assert wanted == (found if query.get("start", "last") == "last" else sorted(found)), way


def test_groups(elsewhere, broker):
    """Do the commands and scripts about groups show, move and delete one?"""
    where, topic, group = elsewhere.where, elsewhere.topic, elsewhere.group
    elsewhere.typed(topic_equivalents.creation(where, topic, partitions=1, replication=1, configs={}).cli)
    record = NewRecord(key=None, value=b"1", headers=[], partition=None, timestamp=None)
    elsewhere.run(topic_equivalents.production(where, topic, record).python)
    plan: Plan = {(topic, 0): 1}
    elsewhere.run(group_equivalents.reset(where, group, Reset(to="latest"), plan, execute=True).python)

    for view in (group_equivalents.listing(where), group_equivalents.description(where, group)):
        assert group in elsewhere.typed(view.cli)
        assert group in elsewhere.run(view.python)
    dry = group_equivalents.reset(where, group, Reset(to="earliest"), {}, execute=False)
    assert elsewhere.typed(dry.cli).split()[-4:] == [group, topic, "0", "0"]
    elsewhere.typed(group_equivalents.reset(where, group, Reset(to="shift", shift=-1), {}, execute=True).cli)
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        assert admin.list_group_offsets(group)[TopicPartition(topic, 0)].offset == 0
    elsewhere.typed(
        group_equivalents.reset(where, group, Reset(to="time", time_ms=0, topic=topic), {}, execute=True).cli
    )
    elsewhere.typed(group_equivalents.deletion(where, group).cli)


@pytest.fixture
def online(broker, gateway, here):
    """Before the shared broker and a gateway."""
    return Elsewhere(broker.bootstrap, gateway.url, here.rpartition("/")[2])


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(online, broker):
    """Do the curl commands make, fill, read, set and delete a topic, and show, move and delete a group?"""
    where, topic, group = online.where, online.topic, online.group
    online.asked(topic_equivalents.creation(where, topic, partitions=1, replication=1, configs={}).curl)
    online.asked(topic_equivalents.config_change(where, topic, "retention.ms", "1000000").curl)
    online.asked(topic_equivalents.production(where, topic, *RECORDS).curl)

    for view in (topic_equivalents.listing(where), topic_equivalents.description(where, topic)):
        assert topic in online.asked(view.curl)
    assert '"1000000"' in online.asked(topic_equivalents.configs(where, topic).curl)
    online.asked(topic_equivalents.config_change(where, topic, "retention.ms", None).curl)
    for query in (
        RecordQuery(topic=topic, limit=2),
        RecordQuery(topic=topic, start="beginning", limit=3),
        RecordQuery(topic=topic, start="offset", partition=0, offset=1),
        RecordQuery(topic=topic, start="time", time_ms=0, limit=3),
    ):
        assert "it's 1" in online.asked(record_equivalents.records(where, query).curl)

    plan: Plan = {(topic, 0): 1}
    reset = group_equivalents.reset(where, group, Reset(to="latest", topic=topic), plan, execute=True)
    assert '"executed":true' in online.asked(reset.curl)
    for view in (group_equivalents.listing(where), group_equivalents.description(where, group)):
        assert group in online.asked(view.curl)
    online.asked(group_equivalents.deletion(where, group).curl)
    online.asked(topic_equivalents.deletion(where, topic).curl)


RECORDS = [
    NewRecord(key=b"a:b", value=b'{"n": 1}', headers=[], partition=None, timestamp=None),
    NewRecord(key=None, value=b"it's 1", headers=[("h", b"x"), ("i", b"y")], partition=None, timestamp=None),
    NewRecord(key=b"gone", value=None, headers=[], partition=None, timestamp=None),
]
"""A key with the usual separator in it, headers, no key, no value."""


@pytest.mark.parametrize("way", ["cli", "curl", "python"])
def test_same_records(online, broker, way):
    """Do keys, headers and tombstones arrive whole, whichever way they go?"""
    where, topic = online.where, online.topic
    online.typed(topic_equivalents.creation(where, topic, partitions=1, replication=1, configs={}).cli)
    made = topic_equivalents.production(where, topic, *RECORDS)
    {"cli": online.typed, "curl": online.asked, "python": online.run}[way](getattr(made, way))

    with KafkaConsumer(topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        stored = [next(consumer) for _ in RECORDS]
    assert [(one.key, one.value, one.headers) for one in RECORDS] == [
        (one.key, one.value, list(one.headers)) for one in stored
    ]


@pytest.mark.parametrize("way", ["cli", "curl", "python"])
def test_transactions(online, broker, way):
    """Do the commands about transactions list one, show it and end it?"""
    where, topic, name = online.where, online.topic, f"mover-{online.group}"
    online.typed(topic_equivalents.creation(where, topic, partitions=1, replication=1, configs={}).cli)
    do = {"cli": online.typed, "curl": online.asked, "python": online.run}[way]
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name) as producer:
        producer.begin_transaction()
        producer.send(topic, b"perhaps")
        producer.flush()
        listed = do(getattr(transaction_equivalents.listing(where), way))
        shown = do(getattr(transaction_equivalents.description(where, name), way))
        do(getattr(transaction_equivalents.search(where, 15), way))
        do(getattr(transaction_equivalents.abortion(where, name), way))

    assert name in listed
    assert topic in shown
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        assert () == admin.describe_transaction(name).partitions
