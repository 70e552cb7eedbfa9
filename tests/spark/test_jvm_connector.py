"""Spark's own Kafka connector, unmodified, as a client of our broker: what people who come from Kafka already run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import KafkaAdmin, KafkaConsumer, KafkaProducer, NewTopic, TopicPartition
from headrace.testing.cluster import Cluster
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.spark_jars import connector_jars

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.slow]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_MS = 1_790_000_000_000
PLAIN = "key string, value string"
FULL = "topic string, partition int, key string, value string, headers array<struct<key:string,value:string>>"
AS_BYTES = "transform(headers, h -> struct(h.key AS key, binary(h.value) AS value)) AS headers"


class App:
    """The application of connector_app.py, asked one thing at a time."""

    def __init__(self, jars: list[Path], errors: Path) -> None:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, Path(__file__).with_name("connector_app.py"), ",".join(map(str, jars))]
        self._errors = errors
        with errors.open("w") as stderr:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
            )
        self._answer()

    def ask(self, do, **question):
        """The rows, or an AssertionError with Spark's own words."""
        answer = self._put(do, question)
        assert "error" not in answer, answer["error"]
        return answer["rows"]

    def fail(self, do, **question):
        """The words of a failure there must be."""
        return self._put(do, question)["error"]

    def close(self):
        """End the application and its JVM."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)

    def _put(self, do, question):
        self._process.stdin.write(json.dumps({"do": do, **question}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        assert line, f"Spark ended: {self._errors.read_text()[-3000:]}"
        return json.loads(line)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """A running Spark application with the connector."""
    try:
        jars = connector_jars()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    running = App(jars, tmp_path_factory.mktemp("connector") / "stderr")
    yield running
    running.close()


@pytest.fixture(scope="module")
def broker():
    """The broker all tests here share; every test has topics of its own."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def topic(broker, request):
    """A topic of three partitions, named after the test."""
    name = request.node.name.removeprefix("test_").translate({ord("["): "-", ord("]"): None})
    make(broker, name)
    return name


def make(broker, *names, partitions=3):
    """Topics whose records stay, however old they say they are."""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        forever = {"retention.ms": "-1"}
        admin.create_topics([NewTopic(name, num_partitions=partitions, topic_configs=forever) for name in names])


def send(broker, topic, numbers, *, partitions=3, **options):
    """Numbered records, dealt out in turn, a second apart."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap, value_serializer="str", **options) as producer:
        for number in numbers:
            producer.send(topic, f"v{number}", partition=number % partitions, timestamp_ms=BASE_MS + number * 1000)


def of(broker, topic, **more):
    """The options of a read."""
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **more}


def values(rows):
    """What was read, without regard to order between partitions."""
    return sorted((row["value"] for row in rows), key=lambda value: int(value[1:]))


def numbered(*spans):
    """The values of numbered records."""
    return [f"v{number}" for span in spans for number in span]


# --- batch


def test_written_and_read_back(app, broker, topic):
    """Do partition, key, value and headers written by the connector come back to it, and to another client?"""
    rows = [
        {
            "topic": topic,
            "partition": n % 3,
            "key": None if n % 4 == 0 else f"k{n}",
            "value": None if n == 7 else f"v{n}",
            "headers": None if n % 2 else [{"key": "a", "value": f"{n}"}, {"key": "a", "value": "again"}],
        }
        for n in range(30)
    ]
    columns = ["topic", "partition", "key", "value", AS_BYTES]
    where = {"kafka.bootstrap.servers": broker.bootstrap}
    app.ask("write", schema=FULL, rows=rows, columns=columns, options=where)
    read = app.ask("read", options=of(broker, topic))

    def shown(row):
        return (row["partition"], row.get("key"), row.get("value"), row.get("headers") or [])

    assert sorted(map(shown, rows), key=str) == sorted(map(shown, read), key=str)
    assert [(p, n) for p in range(3) for n in range(10)] == [(row["partition"], row["offset"]) for row in read]
    with KafkaConsumer(topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        theirs = [next(consumer) for _ in rows]
    assert {(r.partition, r.offset, r.value and r.value.decode()) for r in theirs} == {
        (row["partition"], row["offset"], row.get("value")) for row in read
    }


@pytest.mark.long
@pytest.mark.parametrize("codec", CODECS)
def test_codecs(app, broker, topic, codec):
    """Is what either side compressed read by the other?"""
    send(broker, topic, range(50), compression_type=codec)
    rows = [{"key": f"k{n}", "value": f"v{n}"} for n in range(50, 100)]
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "kafka.compression.type": codec}
    app.ask("write", schema=PLAIN, rows=rows, columns=["key", "value"], options=options)

    assert numbered(range(100)) == values(app.ask("read", options=of(broker, topic)))


@pytest.mark.long
def test_topics_by_pattern(app, broker):
    """Does subscribePattern find the topics that match, and no others?"""
    make(broker, "lorry-1", "lorry-2", "ship-1", partitions=1)
    for number, name in enumerate(("lorry-1", "lorry-2", "ship-1")):
        send(broker, name, [number], partitions=1)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribePattern": "lorry-.*"}

    assert [("lorry-1", "v0"), ("lorry-2", "v1")] == [
        (row["topic"], row["value"]) for row in app.ask("read", options=options)
    ]


@pytest.mark.long
def test_offsets(app, broker, topic):
    """Are starting and ending offsets, earliest and latest, and single partitions what they are with Kafka?"""
    send(broker, topic, range(30))
    start = {topic: {"0": 3, "1": -2, "2": 9}}
    end = {topic: {"0": 5, "1": 2, "2": -1}}
    bounds = {"startingOffsets": json.dumps(start), "endingOffsets": json.dumps(end)}
    read = app.ask("read", options=of(broker, topic, **bounds))
    assigned = {"kafka.bootstrap.servers": broker.bootstrap, "assign": json.dumps({topic: [1]})}

    assert [(0, 3), (0, 4), (1, 0), (1, 1), (2, 9)] == [(row["partition"], row["offset"]) for row in read]
    assert numbered(range(1, 30, 3)) == values(app.ask("read", options=assigned))


@pytest.mark.long
def test_timestamps(app, broker, topic):
    """Are times sent, kept, shown and found to the millisecond?"""
    send(broker, topic, range(30))
    read = app.ask("read", options=of(broker, topic))
    span = {"startingTimestamp": str(BASE_MS + 10_001), "endingTimestamp": str(BASE_MS + 20_000)}
    by_partition = {topic: {"0": BASE_MS + 27_000, "1": BASE_MS + 28_000, "2": BASE_MS + 29_000}}
    late = {"startingOffsetsByTimestamp": json.dumps(by_partition)}

    assert {(row["value"], row["timestamp"], row["timestampType"]) for row in read} == {
        (f"v{n}", BASE_MS + n * 1000, 0) for n in range(30)
    }
    assert numbered(range(11, 20)) == values(app.ask("read", options=of(broker, topic, **span)))
    assert numbered(range(27, 30)) == values(app.ask("read", options=of(broker, topic, **late)))


def test_committed_only(app, broker, topic):
    """Does the connector pass over aborted transactions if it is told to read what was committed, and only then?"""
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap, value_serializer="str", transactional_id="lorry"
    ) as producer:
        for number in range(6):
            producer.begin_transaction()
            producer.send(topic, f"v{number}", partition=0)
            producer.flush()  # what is aborted before it was sent would never have been there
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    committed = {"kafka.isolation.level": "read_committed"}

    assert numbered(range(0, 6, 2)) == values(app.ask("read", options=of(broker, topic, **committed)))
    assert numbered(range(6)) == values(app.ask("read", options=of(broker, topic)))


# --- streams


def test_stream_goes_on_from_its_checkpoint(app, broker, topic, tmp_path):
    """Does a stream that is started again find what came since, once, also after the broker restarted?"""
    place = {"out": str(tmp_path / "out"), "checkpoint": str(tmp_path / "checkpoint")}
    options = of(broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger="10")
    send(broker, topic, range(30))
    assert numbered(range(30)) == values(app.ask("stream", options=options, **place))
    broker.restart()
    send(broker, topic, range(30, 45))

    assert numbered(range(45)) == values(app.ask("stream", options=options, **place))


@pytest.mark.long
def test_topic_to_topic(app, broker, topic, tmp_path):
    """Does a stream copy a topic with its headers, in batches no larger than it was told?"""
    make(broker, f"{topic}-copy")
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for n in range(40):
            producer.send(topic, b"v%d" % n, key=b"k%d" % n, headers=[("n", b"%d" % n)], partition=n % 2)
    batches = app.ask(
        "copy",
        options=of(broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger="10"),
        to={"kafka.bootstrap.servers": broker.bootstrap, "topic": f"{topic}-copy"},
        checkpoint=str(tmp_path / "checkpoint"),
    )
    copied = app.ask("read", options=of(broker, f"{topic}-copy"))

    assert [10] * 4 == [batch["rows"] for batch in batches if batch["rows"]]
    assert {(f"k{n}", f"v{n}", (("n", f"{n}"),)) for n in range(40)} == {
        (row["key"], row["value"], tuple((h["key"], h["value"]) for h in row["headers"])) for row in copied
    }
    assert 40 == len(copied)


@pytest.mark.long
def test_lost_data_is_noticed(app, broker, topic, tmp_path):
    """If records went before a stream came back for them, does it fail, and go on if it is told to?"""
    place = {"out": str(tmp_path / "out"), "checkpoint": str(tmp_path / "checkpoint")}
    strict = of(broker, topic, startingOffsets="earliest")
    send(broker, topic, range(9))
    app.ask("stream", options=strict, **place)
    send(broker, topic, range(9, 30))
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 6})

    assert "data may have been lost" in app.fail("stream", options=strict, **place).lower()
    relaxed = app.ask("stream", options={**strict, "failOnDataLoss": "false"}, **place)
    lost = {9, 12, 15}
    assert numbered(n for n in range(30) if n not in lost) == values(relaxed)
