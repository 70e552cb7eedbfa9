"""Kafka Streams with the streams rebalance protocol (KIP-1071): the coordinator hands out the tasks."""

from collections import Counter, defaultdict

import confluent_kafka
import pytest

from clients.java.live_clients import until

STREAMS_PROTOCOL = ("group.protocol=streams", "commit.interval.ms=100", "num.stream.threads=1", "poll.ms=20")
GROUPS_TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
WORDS = ("race", "mill", "water", "wheel", "stream", "sluice", "dam")
PARTITIONS = 2


@pytest.fixture
def instance(streams, broker, group, tmp_path):
    """Starts an instance of the application that counts words."""

    def start(name: str, source: str, sink: str, *settings: str) -> None:
        where = (broker.bootstrap, group, source, sink, tmp_path / name)
        streams.check("WordCount", "start", name, *where, *STREAMS_PROTOCOL, *settings)

    return start


@pytest.fixture
def write(broker):
    """Writes lines of one to four words, always the same."""
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 2})

    def send(topic: str, numbers: range) -> None:
        for number in numbers:
            producer.produce(topic, line_of(number), partition=number % PARTITIONS)
        assert producer.flush(30) == 0

    return send


def line_of(number: int) -> str:
    """One line."""
    return " ".join(WORDS[(number * 3 + k * k) % len(WORDS)] for k in range(number % 4 + 1))


def expected_counts(lines: int) -> dict[str, list[int]]:
    """What comes out for that many lines: each word with 1, 2, 3 and so on."""
    totals = Counter(word for number in range(lines) for word in line_of(number).split())
    return {word: list(range(1, total + 1)) for word, total in totals.items()}


def counted(bootstrap: str, topic: str) -> dict[str, list[int]]:
    """Every committed count in the topic, by word, in order."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 2,
        }
    )
    found: dict[str, list[int]] = defaultdict(list)
    ended: set[int] = set()
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
        while len(ended) < PARTITIONS:
            message = consumer.poll(30)
            assert message is not None, "the end of the output did not come"
            if message.error():
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                ended.add(message.partition())
            else:
                found[message.key().decode()].append(int(message.value()))
    finally:
        consumer.close()
    return found


@pytest.fixture
def until_counted(broker):
    """Waits until so many lines are counted, and each word exactly once."""

    def wait(topic: str, lines: int) -> None:
        expected = expected_counts(lines)
        wanted = sum(map(len, expected.values()))
        seen = until(
            lambda: counted(broker.bootstrap, topic),
            lambda found: sum(map(len, found.values())) >= wanted,
            f"{wanted} counts are committed",
            within_s=90,
        )
        assert expected == seen

    return wait


@pytest.fixture
def copies(java, broker, group):
    """The application keeps one copy of each task's state, by its group's own setting."""
    where = ("--bootstrap-server", broker.bootstrap, "--entity-type", "groups", "--entity-name", group)
    java.check("kafka.admin.ConfigCommand", *where, "--alter", "--add-config", "streams.num.standby.replicas=1")


@pytest.fixture
def described(java, broker, group):
    """What Kafka's own tool tells of the application's group."""

    def describe(*what: str) -> list[list[str]]:
        where = ("--bootstrap-server", broker.bootstrap, "--group", group)
        out = java.check(GROUPS_TOOL, *where, "--describe", *what).out
        return [line.split() for line in out.splitlines() if line.startswith(group)]

    return describe


@pytest.mark.usefixtures("copies")
def test_the_coordinator_moves_the_tasks(streams, instance, topic, write, until_counted, described):
    """Is every word counted once while a second instance joins and the first one leaves (R27, R28)?"""
    source, sink = topic(partitions=PARTITIONS), topic(partitions=PARTITIONS)
    instance("first", source, sink)
    write(source, range(100))
    until_counted(sink, 100)
    instance("second", source, sink)
    until(
        lambda: described("--members"),
        lambda rows: len(rows) == 2 and all("ACTIVE:" in row and "STANDBY:" in row for row in rows),
        "both instances have tasks, and copies of the other's",
    )
    until(lambda: described("--state"), lambda rows: "Stable" in rows[0], "the group is stable")
    write(source, range(100, 200))
    until_counted(sink, 200)
    assert streams.check("WordCount", "close", "first").out.strip() == "true"
    write(source, range(200, 300))
    until_counted(sink, 300)
    assert streams.check("WordCount", "state", "second").out.strip() == "RUNNING"
    assert streams.check("WordCount", "close", "second").out.strip() == "true"
    until(lambda: described("--state"), lambda rows: not rows or "Empty" in rows[0], "the group is empty")
