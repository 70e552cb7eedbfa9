"""What the console says to type elsewhere: it is typed, against a real broker."""

import contextlib
import io
import shlex
import uuid

import pytest

from headrace.cli.main import main
from headrace.client.admin import KafkaAdmin
from headrace.client.offset_targets import Plan
from headrace.client.records import TopicPartition
from headrace.console import group_equivalents, topic_equivalents
from headrace.console.data_groups import Reset
from headrace.console.equivalents import Where
from headrace.console.record_lines import NewRecord
from headrace.console.record_query import RecordQuery


class Elsewhere:
    """Types commands and runs scripts."""

    def __init__(self, bootstrap):
        self.where = Where(bootstrap=bootstrap, base="http://localhost:8082", cluster_id="C")
        name = uuid.uuid4().hex[:8]
        self.topic, self.group = f"orders-{name}", f"packers-{name}"

    def typed(self, line):
        """What a command prints; it must succeed."""
        words = shlex.split(line)
        given = io.StringIO()
        if words[0] == "echo":
            given.write(words[1] + "\n")
            given.seek(0)
            words = words[3:]
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
            patch.setattr("sys.argv", words)
            patch.setattr("sys.stdin", given)
            code = main()
        assert code == 0, out.getvalue()
        return out.getvalue()

    def run(self, script):
        """What a script prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(script, "equivalent", "exec"), {})
        return out.getvalue()


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
        assert elsewhere.typed(topic_equivalents.records(where, query).cli).splitlines() == expected


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
