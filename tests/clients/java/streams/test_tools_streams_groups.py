"""Our kafka-streams-groups and Kafka's own, asked the same about a live application and after its end."""

import pytest

from clients.java.live_clients import until
from clients.java.tool_pairs import ToolPair

STREAMS_PROTOCOL = ("group.protocol=streams", "commit.interval.ms=100", "num.stream.threads=1", "poll.ms=20")


@pytest.fixture
def pair(java, broker, capsys):
    """Both tools."""
    program = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    return ToolPair(java, broker.bootstrap, capsys, "streams_groups", program)


def test_streams_groups_are_shown_alike(streams, pair, broker, topic, send, group, tmp_path):
    """Are views, lists, plans, refusals and what is forgotten the same, at work and at rest?"""
    source, sink = topic(partitions=2), topic(partitions=2)
    send(source, range(20), partitions=2)
    streams.check("WordCount", "start", "one", broker.bootstrap, group, source, sink, tmp_path, *STREAMS_PROTOCOL)
    describe, reset = ("--describe", "--group", group), ("--reset-offsets", "--group", group)
    until(
        lambda: [line.split() for line in pair.ours(*describe)[1].splitlines()[1:]],
        lambda rows: len(rows) == 4 and all(row[-1] == "0" for row in rows),
        "the application has read everything",
        within_s=60,
    )

    for view in ((), ("--members",), ("--state",)):
        for more in ((), ("--verbose",)):
            # Partitions whose hashes fall together come in an order that Kafka's tool draws anew in every run.
            assert pair.alike(*describe, *view, *more, in_order=bool(view)) == 0
            assert pair.alike("--describe", "--group", "nobody", *view, *more) == 1
    assert pair.alike("--list") == pair.alike("--list", "--state", "stable") == 0
    assert pair.alike(*reset, "--all-input-topics", "--to-earliest", "--dry-run") == 1
    assert pair.alike("--delete", "--group", group) == 1
    assert streams.check("WordCount", "close", "one").out.strip() == "true"
    until(lambda: pair.ours(*describe, "--state")[1], lambda out: "Empty" in out, "the group is empty")
    assert pair.alike(*describe) == pair.alike(*describe, "--state", "--verbose") == 0
    for how in (
        ("--to-earliest",),
        ("--to-current",),
        ("--shift-by", -3),
        ("--to-offset", 5),
        ("--by-duration", "P1D"),
    ):
        assert pair.alike(*reset, "--all-input-topics", *how, "--dry-run") == 0
        assert pair.alike(*reset, "--input-topic", f"{source}:1", *how, "--dry-run", "--export") == 0
    assert pair.alike(*reset, "--input-topic", sink, "--to-latest", "--dry-run") == 1
    assert pair.alike(*reset, "--all-input-topics", "--to-offset", 7, "--execute") == 0
    assert pair.alike("--delete-offsets", "--group", group, "--input-topic", f"{source}:0") == 0
    deleted = pair.ours("--delete", "--group", group, "--delete-all-internal-topics")
    expected = (
        f"Deletion of requested streams groups ('{group}') was successful.\n"
        f"Deletion of associated internal topics of the streams groups ('{group}') was successful.\n"
    )
    assert (0, expected, "") == deleted
    topics = streams.check("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.bootstrap, "--list").out
    assert f"{group}-" not in topics
