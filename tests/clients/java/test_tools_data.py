"""Our tools for data and Kafka's own, asked the same about the same records and files: what they print is the same.

Both brokers are asked: Headrace, and Apache Kafka, whose answers and files our tools must understand too.
"""

import importlib
import io
import re
import subprocess
import sys

import pytest

from clients.java.live_clients import until
from clients.quick_groups import QUICK_GROUPS
from headrace.testing.broker_process import HeadraceProcess
from headrace.testing.java_runner import SMALL_JVM
from headrace.testing.kafka_jars import classpath, java_command
from headrace.testing.peer import KafkaPeer

confluent_kafka = pytest.importorskip("confluent_kafka")

PACKAGE = "org.apache.kafka.tools"
CONSUMER = ("console_consumer", f"{PACKAGE}.consumer.ConsoleConsumer")
SHARE_CONSUMER = ("console_share_consumer", f"{PACKAGE}.consumer.ConsoleShareConsumer")
PRODUCER = ("console_producer", f"{PACKAGE}.ConsoleProducer")
DUMP = ("dump_log", f"{PACKAGE}.DumpLogSegments")
LATENCY = ("e2e_latency", f"{PACKAGE}.EndToEndLatency")
PRODUCER_PERF = ("producer_perf_test", f"{PACKAGE}.ProducerPerformance")
FEATURES = ("features", f"{PACKAGE}.FeatureCommand")
ELECTION = ("leader_election", f"{PACKAGE}.LeaderElectionCommand")
STORAGE = ("storage", "kafka.tools.StorageTool")
CONSUMER_PERF = ("consumer_perf_test", f"{PACKAGE}.ConsumerPerformance")

# One partition each, so that the records of these topics have one order.
SETTINGS = QUICK_GROUPS | {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
CONFIGS = "kafka.admin.ConfigCommand"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module", params=[HeadraceProcess, KafkaPeer], ids=["headrace", "kafka"])
def broker(java, request, tmp_path_factory):
    """A running broker of each kind, with records of every kind in it."""
    with request.param(tmp_path_factory.mktemp("data") / "broker", settings=SETTINGS) as running:
        _fill(running.bootstrap)
        yield running


def _fill(bootstrap):
    """Records with and without keys, values and headers, in every codec; transactions; committed offsets."""
    for codec in CODECS:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": codec == "lz4"}
        )
        producer.produce("rich", b"v\xc3\xbc" * 20, b"k1", headers=[("h1", b"x"), ("h2", None), ("h1", b"\xff")])
        producer.produce("rich", None, b"k2", timestamp=12345)
        producer.produce("rich", b"", None, headers=[("only", b"")])
        assert producer.flush(30) == 0
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "teller"})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        for place in range(3):
            producer.produce("ledger", f"{number}-{place}")
        producer.flush(30)
        (producer.commit_transaction if number % 2 else producer.abort_transaction)(30)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    places = [confluent_kafka.TopicPartition(topic, 0, 2, "noted") for topic in ("rich", "ledger")]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
    for protocol in ("classic", "consumer"):
        _join(bootstrap, protocol)


def _join(bootstrap, protocol):
    """Be a member of a group until the first record has come."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{protocol} group",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["rich"])
    assert consumer.poll(30) is not None
    consumer.close()


@pytest.fixture
def both(java, capfd):
    """Runs one of our tools and Kafka's with the same arguments; gives exit code, output and errors of each."""

    def run(names, *arguments):
        module, program = names
        theirs = java.run(program, *arguments)
        code = importlib.import_module(f"headrace.cli.{module}").main(list(map(str, arguments)), module)
        shown = capfd.readouterr()
        return (code, shown.out, shown.err), (theirs.code, theirs.out, theirs.err)

    return run


@pytest.fixture
def alike(both):
    """Compares exit code and standard output of both; gives what they printed."""

    def compare(names, *arguments):
        ours, theirs = both(names, *arguments)
        assert ours[:2] == theirs[:2], ours[2] + theirs[2]
        return ours[1]

    return compare


ALL = [
    word
    for name in ("timestamp", "partition", "offset", "delivery", "headers", "key")
    for word in ("--formatter-property", f"print.{name}=true")
]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topic", "rich", "--from-beginning", "--max-messages", 15),
        ("--topic", "rich", "--from-beginning", "--max-messages", 15, *ALL),
        ("--topic", "rich", "--partition", 0, "--offset", 3, "--max-messages", 7, "--property", "print.key=true"),
        ("--include", "ri.h", "--from-beginning", "--max-messages", 15, "--formatter-property", "null.literal=NIL"),
        ("--topic", "rich", "--from-beginning", "--max-messages", 9, "--formatter-property", "print.value=false", *ALL),
        ("--topic", "rich", "--from-beginning", "--max-messages", 5, "--value-deserializer",
         "org.apache.kafka.common.serialization.BytesDeserializer", "--formatter-property", "key.separator=|", *ALL),
        ("--topic", "ledger", "--from-beginning", "--max-messages", 6, "--isolation-level", "read_committed"),
        ("--topic", "ledger", "--from-beginning", "--max-messages", 12),
    ],
)  # fmt: skip
def test_console_consumer(broker, alike, arguments):
    """Does it print the same records in the same words?"""
    assert alike(CONSUMER, "--bootstrap-server", broker.bootstrap, *arguments)


def test_share_consumer(broker, java, capfd):
    """Does a share group see the same records in the same words?"""
    shown = []
    for group in ("ours", "theirs"):
        where = ("--bootstrap-server", broker.bootstrap)
        entity = ("--entity-type", "groups", "--entity-name", group)
        java.check(CONFIGS, *where, "--alter", *entity, "--add-config", "share.auto.offset.reset=earliest")
        given = [*where, "--topic", "rich", "--group", group, "--max-messages", "15", *ALL]
        if group == "ours":
            assert importlib.import_module("headrace.cli.console_share_consumer").main(given, "tool") == 0
            shown.append(capfd.readouterr().out)
        else:
            shown.append(java.check(SHARE_CONSUMER[1], *given).out)

    assert shown[0] == shown[1]
    assert shown[0].count("Delivery:1\t") == 15


def test_keys_go_to_the_same_partitions(broker, java, topic, monkeypatch):
    """Do both console producers send a key to the same partition, null and empty keys aside?"""
    lines = "".join(f"key-{number}\tvalue\n" for number in range(200)) + "ключ\tvalue\n"
    places = []
    for names in (PRODUCER, None):
        name = topic(partitions=7)
        given = ["--bootstrap-server", broker.bootstrap, "--topic", name, "--reader-property", "parse.key=true"]
        if names:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
            assert importlib.import_module(f"headrace.cli.{names[0]}").main(given, names[0]) == 0
        else:
            command = [java_command(), *SMALL_JVM, "-cp", classpath(), PRODUCER[1], *given]
            subprocess.run(command, input=lines.encode(), check=True, timeout=60)
        places.append(_partitions_of_keys(broker.bootstrap, name, 201))

    assert places[0] == places[1]


def _partitions_of_keys(bootstrap, topic, count):
    """Which partition each key is in."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(7)])
    found = {}
    while len(found) < count:
        found |= {message.key(): message.partition() for message in consumer.consume(count, 0.2)}
    consumer.close()
    return found


@pytest.mark.parametrize(
    ("topic", "formatter"),
    [
        ("__consumer_offsets", "OffsetsMessageFormatter"),
        ("__consumer_offsets", "GroupMetadataMessageFormatter"),
        ("__transaction_state", "TransactionLogMessageFormatter"),
    ],
)
def test_formatters_of_internal_topics(broker, both, topic, formatter):
    """Are the records of Kafka's own topics decoded to the same JSON?"""
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--partition", 0, "--offset", "earliest")
    arguments = (*where, "--formatter", f"{PACKAGE}.consumer.{formatter}", "--timeout-ms", 2000)
    # A busy machine may be silent for so long before the first record has come: then once more.
    until(lambda: both(CONSUMER, *arguments), lambda pair: pair[0][:2] == pair[1][:2] and pair[0][1], "the same")


WHERE = ("--bootstrap-server", "127.0.0.1:1")
MISTAKES = [
    (CONSUMER, ()),
    (CONSUMER, WHERE),
    (CONSUMER, (*WHERE, "--topic", "a", "--include", "b")),
    (CONSUMER, (*WHERE, "--topic", "a", "--offset", 3)),
    (CONSUMER, (*WHERE, "--topic", "a", "--partition", 0, "--offset", "x")),
    (CONSUMER, (*WHERE, "--topic", "a", "--partition", 0, "--offset", 3, "--from-beginning")),
    (CONSUMER, (*WHERE, "--topic", "a", "--partition", 0, "--group", "g")),
    (CONSUMER, (*WHERE, "--include", "a", "--partition", 0)),
    (CONSUMER, (*WHERE, "--topic", "a", "--from-beginning", "--command-property", "auto.offset.reset=latest")),
    (CONSUMER, (*WHERE, "--topic", "a", "--group", "x", "--command-property", "group.id=y")),
    (CONSUMER, (*WHERE, "--topic", "a", "--property", "a=b", "--formatter-property", "c=d")),
    (CONSUMER, (*WHERE, "--topic", "a", "--consumer-property", "a=b", "--command-property", "c=d")),
    (PRODUCER, ()),
    (PRODUCER, WHERE),
    (PRODUCER, (*WHERE, "--topic", "a", "--reader-property", "a=b", "--property", "c=d")),
    (PRODUCER, (*WHERE, "--topic", "a", "--batch-size", "large")),
    (FEATURES, ()),
    (FEATURES, ("--bootstrap-server", "127.0.0.1:1")),
    (FEATURES, (*WHERE, "nonsense")),
    (FEATURES, (*WHERE, "describe", "--feature", "a=1")),
    (FEATURES, (*WHERE, "feature-dependencies")),
    (ELECTION, (*WHERE, "--election-type", "unclean", "--admin.config", "a", "--command-config", "b")),
    (STORAGE, ("version-mapping", "-r", "9.9")),
    (STORAGE, ("feature-dependencies", "-f", "nonsense")),
    (SHARE_CONSUMER, WHERE),
    (SHARE_CONSUMER, (*WHERE, "--topic", "a", "--reject", "--release")),
    (CONSUMER_PERF, WHERE),
    (CONSUMER_PERF, (*WHERE, "--topic", "a")),
    (CONSUMER_PERF, (*WHERE, "--topic", "a", "--num-records", 1, "--messages", 1)),
    (LATENCY, ("a", "b", "c")),
    (LATENCY, WHERE),
    (LATENCY, (*WHERE, "--topic", "a", "--num-records", 0, "--producer-acks", 1, "--record-size", 1)),
    (LATENCY, (*WHERE, "--topic", "a", "--num-records", 1, "--producer-acks", 0, "--record-size", 1)),
    (DUMP, ("--deep-iteration",)),
]


@pytest.mark.parametrize(("names", "arguments"), MISTAKES)
def test_mistakes(both, names, arguments):
    """Is a mistake answered with the same first line on the same stream, and the same exit code?"""
    ours, theirs = both(names, *arguments)

    assert ours[0] == theirs[0] == 1
    assert ours[1] == theirs[1]
    assert ours[2].splitlines()[0] == theirs[2].splitlines()[0]


def test_performance_tools_print_the_same_lines(broker, both):
    """Have the last lines of the performance tools the same form, number for number?"""
    where = ("--bootstrap-server", broker.bootstrap, "--topic", "perf")
    size = ("--num-records", 500, "--record-size", 10, "--throughput", -1)
    for names, arguments in (
        (PRODUCER_PERF, (*where, *size)),
        (PRODUCER_PERF, (*where, *size, "--warmup-records", 100)),
        (CONSUMER_PERF, (*where, "--num-records", 500)),
        (CONSUMER_PERF, (*where, "--num-records", 500, "--hide-header", "--date-format", "HH:mm")),
    ):
        forms = [re.sub(r"\d+", "9", re.sub(r"-(?=\d+[,.])", "", run[1])) for run in both(names, *arguments)]
        assert forms[0] == forms[1]


@pytest.fixture(scope="module")
def stopped(java, request, tmp_path_factory):
    """The log directory of a stopped broker of each kind."""
    kind = request.param
    running = kind(tmp_path_factory.mktemp("dumped") / "broker", settings=SETTINGS | {"log.index.interval.bytes": "10"})
    try:
        running.format()
        running.start()
        _fill(running.bootstrap)
        java.run(SHARE_CONSUMER[1], "--bootstrap-server", running.bootstrap, "--topic", "rich", "--timeout-ms", 3000)
        running.stop()
        yield running.log_dir
    finally:
        running.remove()


of_both = pytest.mark.parametrize("stopped", [HeadraceProcess, KafkaPeer], ids=["headrace", "kafka"], indirect=True)


@of_both
@pytest.mark.parametrize(
    ("directory", "options"),
    [
        ("rich-0", ()),
        ("rich-0", ("--deep-iteration",)),
        ("rich-0", ("--print-data-log",)),
        ("ledger-0", ("--print-data-log",)),
        ("ledger-0", ("--print-data-log", "--skip-record-metadata")),
        ("ledger-0", ("--max-bytes", 200)),
        ("ledger-0", ("--verify-index-only",)),
        ("rich-0", ("--index-sanity-check",)),
        ("rich-0", ("--key-decoder-class", "org.apache.kafka.tools.api.StringDecoder")),
        ("__share_group_state-0", ("--share-group-state-decoder",)),
        ("__transaction_state-0", ("--transaction-log-decoder",)),
        ("__cluster_metadata-0", ("--cluster-metadata-decoder",)),
    ],
)
def test_dump(stopped, both, directory, options):
    """Is every file of a partition printed in the same words: segments, indexes, snapshots, and what does not fit?"""
    ours, theirs = both(DUMP, "--files", ",".join(_files(stopped / directory)), *options)

    assert ours == theirs
    assert ours[0] == 0


def _files(directory):
    """What there is to print of a partition."""
    kinds = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    return sorted(str(file) for file in directory.iterdir() if file.suffix in kinds)


@of_both
def test_dump_of_groups(stopped, both):
    """Are the records of groups of every kind printed in the same words?"""
    ours, theirs = both(DUMP, "--files", ",".join(_files(stopped / "__consumer_offsets-0")), "--offsets-decoder")

    assert ours == theirs
    assert "consumer group" in ours[1]


@of_both
def test_damage_is_told_alike(stopped, both, tmp_path):
    """Are index entries that do not fit the log, and gaps in it, told in the same words?"""
    for suffix in (".log", ".index", ".timeindex"):
        (file,) = (stopped / "rich-0").glob(f"*{suffix}")
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (index,) = tmp_path.glob("*.index")
    data = bytearray(index.read_bytes())
    data[3] += 1
    index.write_bytes(data)
    (times,) = tmp_path.glob("*.timeindex")
    data = bytearray(times.read_bytes())
    data[7] ^= 1
    times.write_bytes(data)
    ours, theirs = both(DUMP, "--files", f"{index},{times},nothing.else")

    assert ours == theirs
    assert "Mismatches in :" in ours[2]
