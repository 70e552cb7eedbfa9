"""Apache Kafka's own tools for groups and transactions, and its formatters reading the coordinators' topics."""

import json
import re

import pytest

from clients.java.live_clients import until
from clients.quick_groups import QUICK_GROUPS

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ALL_GROUPS = "org.apache.kafka.tools.GroupsCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTERS = "org.apache.kafka.tools.consumer"

# How the first line of each tool's table begins.
HEADINGS = {"GROUP", "TransactionalId", "CoordinatorId", "ProducerId"}

CLASSIC = ("group.protocol=classic", "heartbeat.interval.ms=100", "session.timeout.ms=6000")
CONSUMER = ("group.protocol=consumer",)
by_protocol = pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER], ids=["classic", "consumer"])


@pytest.fixture
def tool(java, broker):
    """Runs a tool against the broker and returns its output; a failure fails the test."""

    def run(program: str, *arguments: object) -> str:
        return java.check(program, "--bootstrap-server", broker.bootstrap, *arguments).out

    return run


@pytest.fixture
def table(tool):
    """Runs a tool that prints a table, and returns its rows as dictionaries by column."""

    def rows(program: str, *arguments: object) -> list[dict[str, str]]:
        lines = [line.split() for line in tool(program, *arguments).splitlines() if line.strip()]
        heading = next((at for at, line in enumerate(lines) if line[0] in HEADINGS), None)
        return (
            [] if heading is None else [dict(zip(lines[heading], line, strict=False)) for line in lines[heading + 1 :]]
        )

    return rows


@pytest.fixture
def internal(java, broker):
    """Reads a key's partition of a coordinator's topic with Kafka's console consumer; gives the parsed records."""

    def read(topic: str, key: str, formatter: str) -> list[dict]:
        run = java.run(
            CONSOLE, "--bootstrap-server", broker.bootstrap, "--topic", topic, "--partition", partition_of(key),
            "--offset", "earliest", "--timeout-ms", 1000, "--formatter", f"{FORMATTERS}.{formatter}",
        )  # fmt: skip
        return _documents(run.out)

    return read


def partition_of(key: str) -> int:
    """The partition that Kafka chooses for a group or a transactional id: Java's hash without its sign."""
    number = 0
    for character in key:
        number = (31 * number + ord(character)) & 0xFFFFFFFF
    return min(number, 2**32 - number) % int(QUICK_GROUPS["offsets.topic.num.partitions"])


def _documents(text: str) -> list[dict]:
    """The JSON documents of a text, which have nothing between them."""
    found, at = [], text.find("{")
    while at >= 0:
        document, end = json.JSONDecoder().raw_decode(text, at)
        found.append(document)
        at = text.find("{", end)
    return found


@by_protocol
def test_consumer_groups_describe(members, topic, group, send, tool, table, protocol):
    """Does kafka-consumer-groups show offsets, lag, members and state of a live group?"""
    name = topic(partitions=2)
    send(name, range(20), partitions=2)
    member = members.start(group, name, *protocol)
    members.until_received([member], 20)
    members.ask(member, "commit", f"{name}-0@4", f"{name}-1@10")

    offsets = table(GROUPS, "--describe", "--group", group)
    (one,) = table(GROUPS, "--describe", "--group", group, "--members")
    (state,) = table(GROUPS, "--describe", "--group", group, "--state")

    shown = {(row["PARTITION"], row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in offsets}
    assert {("0", "4", "10", "6"), ("1", "10", "10", "0")} == shown
    assert {member} == {row["CLIENT-ID"] for row in offsets}
    assert ("/127.0.0.1", member, "2") == (one["HOST"], one["CLIENT-ID"], one["#PARTITIONS"])
    assert ("Stable", "1") == (state["STATE"], state["#MEMBERS"])
    assert group in tool(GROUPS, "--list").split()


@by_protocol
def test_consumer_groups_reset_and_delete(members, topic, group, send, tool, table, group_admin, protocol):
    """Can kafka-consumer-groups move a group's offsets, forget some, and delete it, when it is empty and only then?"""
    name = topic()
    send(name, range(10))
    member = members.start(group, name, *protocol)
    members.until_received([member], 10)
    members.ask(member, "commit")
    move = (GROUPS, "--reset-offsets", "--group", group, "--topic", name)

    def offset() -> list[object] | None:
        return group_admin("offsets", group).get(f"{name}-0")

    assert "Error" in tool(*move, "--to-earliest", "--execute")
    assert "GroupNotEmptyException" in tool(GROUPS, "--delete", "--group", group)
    assert offset() == [10, ""]
    members.close(member)
    assert "7" in tool(*move, "--shift-by", -3, "--dry-run").split()
    assert offset() == [10, ""]
    for how, expected in ((("--shift-by", -3), 7), (("--to-earliest",), 0), (("--to-offset", 5), 5)):
        tool(*move, *how, "--execute")
        assert offset() == [expected, ""]
    again = members.start(group, name, *protocol)
    assert [5, 6, 7, 8, 9] == [place[2] for place in members.until_received([again], 5)]
    members.close(again)
    tool(GROUPS, "--delete-offsets", "--group", group, "--topic", name)
    assert offset() is None
    tool(GROUPS, "--delete", "--group", group)
    assert group not in tool(GROUPS, "--list").split()


def test_groups_list(members, topic, group, table):
    """Does kafka-groups show which kind and protocol each group has?"""
    name = topic()
    classic, consumer = f"{group}-old", f"{group}-new"
    pair = [members.start(classic, name, *CLASSIC), members.start(consumer, name, *CONSUMER)]
    for member in pair:
        members.until_share([member], [f"{name}-0"])

    rows = {row["GROUP"]: (row["TYPE"], row.get("PROTOCOL")) for row in table(ALL_GROUPS, "--list")}

    assert (("Classic", "consumer"), ("Consumer", "consumer")) == (rows[classic], rows[consumer])


def test_transactions_tool(topic, group, transactor, table, tool, group_admin):
    """Does kafka-transactions list, describe and abort?"""
    name = topic()
    producer = transactor(group)
    assert (producer.init(), producer.begin()) == ("ok", "ok")
    producer.send(f"{name}-0", "x")

    listed = {row["TransactionalId"]: row["TransactionState"] for row in table(TRANSACTIONS, "list")}
    (described,) = table(TRANSACTIONS, "describe", "--transactional-id", group)
    (on_partition,) = table(TRANSACTIONS, "describe-producers", "--topic", name, "--partition", 0)
    hanging = tool(TRANSACTIONS, "find-hanging", "--topic", name, "--max-transaction-timeout", 0)
    aborted = tool(TRANSACTIONS, "abort", "--topic", name, "--partition", 0, "--start-offset", 0)
    (after,) = table(TRANSACTIONS, "describe-producers", "--topic", name, "--partition", 0)

    assert listed[group] == "Ongoing"
    assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", f"{name}-0")
    assert ("-1", "0") == (on_partition["LatestCoordinatorEpoch"], on_partition["CurrentTransactionStartOffset"])
    assert name not in hanging  # its coordinator knows it
    assert "error" not in aborted.lower()
    assert after["CurrentTransactionStartOffset"] == "None"


@by_protocol
def test_offsets_topic_is_readable(members, topic, group, internal, protocol):
    """Do Kafka's formatters read committed offsets and the group's metadata from our __consumer_offsets (R23)?"""
    name = topic()
    member = members.start(group, name, *protocol)
    members.until_share([member], [f"{name}-0"])
    members.ask(member, "commit", f"{name}-0@42@noted")

    def committed() -> list[dict]:
        lines = internal("__consumer_offsets", group, "OffsetsMessageFormatter")
        return [line for line in lines if line["key"]["data"]["group"] == group]

    (line,) = until(committed, lambda lines: len(lines) == 1, "the offset is in the topic")
    assert {"group": group, "topic": name, "partition": 0} == line["key"]["data"]
    assert (42, "noted") == (line["value"]["data"]["offset"], line["value"]["data"]["metadata"])
    if protocol is CLASSIC:

        def metadata() -> list[dict]:
            lines = internal("__consumer_offsets", group, "GroupMetadataMessageFormatter")
            return [line["value"]["data"] for line in lines if line["key"]["data"]["group"] == group]

        *_, last = until(metadata, bool, "the group is in the topic")
        assert ("consumer", "range", 1) == (last["protocolType"], last["protocol"], last["generation"])
        (described,) = last["members"]
        assert described["clientId"] == member
        assert described["clientHost"] == "/127.0.0.1"


def test_transaction_topic_is_readable(topic, group, transactor, internal):
    """Does Kafka's formatter read a transaction's states from our __transaction_state?"""
    name = topic()
    producer = transactor(group, "transaction.timeout.ms=12345")
    assert (producer.init(), producer.begin()) == ("ok", "ok")
    producer.send(f"{name}-0", "x")
    assert producer.commit() == "ok"

    def states() -> list[dict]:
        lines = internal("__transaction_state", group, "TransactionLogMessageFormatter")
        return [line["value"]["data"] for line in lines if line["key"]["data"]["transactionalId"] == group]

    # Empty, Ongoing, PrepareCommit, CompleteCommit
    logged = until(states, lambda seen: [one["transactionStatus"] for one in seen] == [0, 1, 2, 4], "four states")

    assert {12345} == {one["transactionTimeoutMs"] for one in logged}
    assert [{"topic": name, "partitionIds": [0]}] == logged[1]["transactionPartitions"]
    assert re.fullmatch(r"\d+", str(logged[0]["producerId"]))
    assert 1 == len({one["producerId"] for one in logged})
