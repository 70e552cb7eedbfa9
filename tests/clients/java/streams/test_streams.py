"""Kafka Streams counts words exactly once, on top of groups, transactions and compacted topics."""

from collections import Counter, defaultdict

import confluent_kafka
import pytest

from clients.java.live_clients import until

QUICK = ("commit.interval.ms=100", "num.stream.threads=1", "poll.ms=20")
PROTOCOLS = {
    # A classic instance does not leave when it closes: its session has to run out.
    "classic": (*QUICK, "consumer.heartbeat.interval.ms=100", "consumer.session.timeout.ms=2000"),
    "streams": (*QUICK, "group.protocol=streams"),
}
WORDS = ("race", "mill", "water", "wheel", "stream", "sluice", "dam")


def lines_of(numbers: range) -> list[str]:
    """Lines of one to four words, always the same."""
    return [" ".join(WORDS[(n * 3 + k * k) % len(WORDS)] for k in range(n % 4 + 1)) for n in numbers]


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
        consumer.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in range(2)])
        while len(ended) < 2:
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


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_word_count_exactly_once(streams, broker, topic, group, tmp_path, protocol):
    """Is every word counted once, record by record, while the work moves from one instance to another?"""
    source, sink = topic(partitions=2), topic(partitions=2)
    application = group
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 2})

    def write(numbers: range) -> None:
        for number, line in zip(numbers, lines_of(numbers), strict=True):
            producer.produce(source, line, partition=number % 2)
        assert producer.flush(30) == 0

    def start(name: str) -> None:
        where = (broker.bootstrap, application, source, sink, tmp_path / name)
        streams.check("WordCount", "start", name, *where, *PROTOCOLS[protocol])

    def expected(lines: int) -> dict[str, list[int]]:
        totals = Counter(word for line in lines_of(range(lines)) for word in line.split())
        return {word: list(range(1, total + 1)) for word, total in totals.items()}

    def until_counted(lines: int) -> None:
        wanted = sum(map(len, expected(lines).values()))
        seen = until(
            lambda: counted(broker.bootstrap, sink),
            lambda found: sum(map(len, found.values())) >= wanted,
            f"{wanted} counts are committed",
            within_s=90,
        )
        assert expected(lines) == seen

    start("first")
    write(range(100))
    until_counted(100)
    start("second")
    write(range(100, 200))
    until_counted(200)
    assert streams.check("WordCount", "close", "first").out.strip() == "true"
    write(range(200, 300))
    until_counted(300)
    assert streams.check("WordCount", "state", "second").out.strip() == "RUNNING"
    assert streams.check("WordCount", "close", "second").out.strip() == "true"
