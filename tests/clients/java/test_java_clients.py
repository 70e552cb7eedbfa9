"""Apache Kafka's own Java clients write and read, and every record is compared with what it should be."""

import json
import time

import pytest

from clients.java.record_book import BASE_TIMESTAMP_MS, RecordBook, SentRecord, place, sample_records

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def produce(java, broker, tmp_path):
    """Sends a book's records with the Java producer and returns what it printed for each."""

    def send(book: RecordBook, *settings: str, first: int = 0) -> list[str]:
        file = book.write(tmp_path / "records.jsonl", first=first)
        return java.check("Produce", broker.bootstrap, file, *settings).lines()

    return send


@pytest.fixture
def read(java, broker):
    """Reads a topic with the Java consumer, by partition and offset."""

    def lines(topic: str, *settings: str, start: str = "beginning", end: object = "end") -> list[dict[str, object]]:
        printed = java.check("Read", broker.bootstrap, start, end, topic, *settings).lines()
        return sorted(map(json.loads, printed), key=place)

    return lines


@pytest.mark.parametrize("codec", CODECS)
def test_codec_round_trip(topic, produce, read, codec):
    """Does what an idempotent producer wrote with this codec come back record by record?"""
    book = RecordBook(topic(partitions=3), sample_records(900, 3))

    acknowledged = produce(book, f"compression.type={codec}", "enable.idempotence=true", "linger.ms=20")

    expected = book.expected()
    assert sorted(acknowledged) == sorted(f"{book.topic} {line['partition']} {line['offset']}" for line in expected)
    assert expected == read(book.topic)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_topic_codec(topic, produce, read, codec):
    """Does a topic with a codec of its own give back what was sent to it with another?"""
    book = RecordBook(topic(compression_type=codec), sample_records(200, 1))

    produce(book, "compression.type=none", "linger.ms=20")

    assert book.expected() == read(book.topic)


@pytest.mark.parametrize("acks", ["1", "0"])
def test_weaker_acks(topic, produce, read, acks):
    """Does a producer that does not wait for everyone, and is not idempotent, get its records in, in order?"""
    book = RecordBook(topic(), sample_records(300, 1))

    produce(book, f"acks={acks}", "enable.idempotence=false", "max.in.flight.requests.per.connection=1")

    # Such an acknowledgement does not say that a reader can see the records yet, only that it soon will.
    assert book.expected() == read(book.topic, end=300)


def test_hundred_partitions(topic, produce, read):
    """Do records over a hundred partitions come back, each from its own, also in small fetches?"""
    book = RecordBook(topic(partitions=100), sample_records(2000, 100))

    produce(book)

    assert book.expected() == read(book.topic)
    assert book.expected() == read(book.topic, "fetch.max.bytes=1000", "max.partition.fetch.bytes=100")


def test_any_offset(topic, produce, read):
    """Does a fetch from any offset, also inside a batch, begin exactly there?"""
    book = RecordBook(topic(), sample_records(500, 1))
    produce(book, "linger.ms=50", "batch.size=4000")

    for offset in (0, 1, 2, 63, 250, 498, 499, 500):
        assert book.expected()[offset:] == read(book.topic, start=f"offset:{offset}")


def test_offset_out_of_range(java, broker, topic, produce):
    """Is a reader without a reset policy told that its offset does not exist?"""
    book = RecordBook(topic(), sample_records(5, 1))
    produce(book)

    done = java.run("Read", broker.bootstrap, "offset:6", "end", book.topic)

    assert done.code != 0
    assert "OffsetOutOfRangeException" in done.err


@pytest.mark.parametrize("after_ms", [-1000, 0, 5, 10, 25, 1990, 2000, 4980, 4990, 4991, 100_000])
def test_any_timestamp(topic, produce, read, after_ms):
    """Does a lookup by time find the first record that is not older, also where times run backwards?"""
    book = RecordBook(topic(partitions=2), sample_records(500, 2))
    produce(book, "linger.ms=50", "batch.size=2000")
    wanted = BASE_TIMESTAMP_MS + after_ms

    expected = []
    for partition in range(2):
        lines = [line for line in book.expected() if line["partition"] == partition]
        first = next((at for at, line in enumerate(lines) if int(str(line["timestamp"])) >= wanted), len(lines))
        expected += lines[first:]

    assert expected == read(book.topic, start=f"timestamp:{wanted}")


def test_large_record(topic, produce, read):
    """Does a record close to the size limit pass, and one beyond it get the right error, and nothing else?"""
    name = topic()
    small = RecordBook(name, [_sized(900_000)])
    both = RecordBook(name, [_sized(900_000), _sized(1_200_000)])

    first = produce(small)
    second = produce(both, "max.request.size=2000000", first=1)

    assert [f"{name} 0 0"] == first
    assert ["error RecordTooLargeException"] == second
    assert small.expected() == read(name)


def test_log_append_time(topic, produce, read):
    """Does a topic that stamps by itself replace every record's time and say so?"""
    book = RecordBook(topic(message_timestamp_type="LogAppendTime"), sample_records(50, 1))
    before_ms = time.time_ns() // 1_000_000

    produce(book, "linger.ms=20")

    after_ms = time.time_ns() // 1_000_000
    lines = read(book.topic)
    expected = book.expected(timestamp_type="LogAppendTime")
    assert all(before_ms <= int(str(line["timestamp"])) <= after_ms for line in lines)
    assert [line | {"timestamp": 0} for line in expected] == [line | {"timestamp": 0} for line in lines]


def test_future_timestamp(topic, produce, read):
    """Is a record from too far in the future refused, and not kept?"""
    future = time.time_ns() // 1_000_000 + 48 * 3_600_000
    book = RecordBook(topic(), [SentRecord(partition=0, timestamp=future, key=None, value=b"too early")])

    answers = produce(book)

    assert ["error InvalidTimestampException"] == answers
    assert read(book.topic) == []


def test_compacted_topic_wants_keys(topic, produce, read):
    """Is a record without a key refused by a compacted topic?"""
    book = RecordBook(
        topic(cleanup_policy="compact"),
        [SentRecord(partition=0, timestamp=BASE_TIMESTAMP_MS, key=None, value=b"keyless")],
    )

    answers = produce(book)

    assert ["error InvalidRecordException"] == answers
    assert read(book.topic) == []


def test_many_producers(topic, produce, read):
    """Do the records of several idempotent producers, one after the other, stand behind each other?"""
    name = topic()
    everything = sample_records(400, 1)
    for first in range(0, 400, 100):
        produce(RecordBook(name, everything[: first + 100]), "batch.size=500", first=first)

    assert RecordBook(name, everything).expected() == read(name)


def test_read_committed(topic, produce, read):
    """Does a reader that waits for transactions see ordinary records at once?"""
    book = RecordBook(topic(), sample_records(100, 1))
    produce(book)

    assert book.expected() == read(book.topic, "isolation.level=read_committed")


def _sized(size: int) -> SentRecord:
    return SentRecord(partition=0, timestamp=BASE_TIMESTAMP_MS, key=None, value=b"x" * size)
