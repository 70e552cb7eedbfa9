"""The tools that measure, and the share consumer, against a broker in this process."""

import json
import re

import pytest

from headrace.cli import console_share_consumer, consumer_perf_test, e2e_latency, producer_perf_test

confluent_kafka = pytest.importorskip("confluent_kafka")

TOTAL = re.compile(
    r"(\d+)( steady state)? records sent, \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg latency, "
    r"\d+\.\d\d ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)


@pytest.fixture
def run(shared, capsys, monkeypatch, tmp_path):
    """Runs a tool against the broker; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))

    def tool(module, *arguments):
        code = module.main(["--bootstrap-server", shared.bootstrap, *arguments], module.TOOL.name)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return tool


def produce(run, topic, count, *arguments):
    """Send so many records with the performance tool."""
    size = () if any(word.startswith("--payload") for word in arguments) else ("--record-size", "20")
    where = ("--topic", topic, "--num-records", str(count), "--throughput", "-1")
    return run(producer_perf_test, *where, *size, *arguments)


def values_of(shared, topic):
    """Everything in a topic of one partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": shared.bootstrap, "group.id": topic, "isolation.level": "read_committed", "log_level": 2}
    )
    place = confluent_kafka.TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=30)
    consumer.assign([place])
    found = []
    while consumer.position([place])[0].offset < end:
        found += [message.value() for message in consumer.consume(100, 0.2)]
    consumer.close()
    return found


def test_numbers_of_a_producer(run, shared):
    """Is every record sent and counted, and the last line Kafka's?"""
    code, out, err = produce(run, "perf-plain", 300)

    assert (code, err) == (0, "")
    assert TOTAL.fullmatch(out.strip())[1] == "300"
    assert [len(value) for value in values_of(shared, "perf-plain")] == [20] * 300


def test_warm_up(run):
    """Are the records of a warm-up counted apart?"""
    code, out, _ = produce(run, "perf-warm", 50, "--warmup-records", "20")
    first, *rest = out.splitlines()

    assert code == 0
    assert first == "Warmup first 20 records. Steady state results will print after the complete test summary."
    assert [TOTAL.fullmatch(line).groups() for line in rest] == [("50", None), ("30", " steady state")]


def test_monotonic_payload_in_transactions(run, shared):
    """Are records sent in transactions all committed, in order, each one number higher?"""
    code, _, _ = produce(run, "perf-txn", 40, "--payload-monotonic", "--transaction-duration-ms", "1")

    assert code == 0
    assert values_of(shared, "perf-txn")[:40] == [str(number).encode() for number in range(40)]


def test_payload_file(run, shared, tmp_path):
    """Are payloads taken from a file, with Kafka's words about it, and is a missing file refused?"""
    file = tmp_path / "lines"
    file.write_text("a,b,c,")
    code, out, _ = produce(run, "perf-file", 30, "--payload-file", str(file), "--payload-delimiter", ",")
    missing, _, err = produce(run, "perf-file", 1, "--payload-file", str(tmp_path / "absent"))

    assert code == 0
    assert out.splitlines()[:2] == [f"Reading payloads from: {file}", "Number of records read: 3"]
    assert set(values_of(shared, "perf-file")) == {b"a", b"b", b"c"}
    assert (missing, err.splitlines()[0]) == (1, "File does not exist or empty file provided.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--num-records", "0"], "--num-records should be greater than zero."),
        (
            ["--record-size", "1", "--payload-monotonic"],
            "argument --payload-monotonic: not allowed with argument --record-size",
        ),
        (
            ["--producer-props", "a=b", "--command-property", "c=d"],
            "--command-property and --producer-props cannot be specified together.",
        ),
    ],
)
def test_what_does_not_go_together(run, arguments, expected):
    """Is a mistake answered with Kafka's sentence?"""
    base = {"--topic": "t", "--num-records": "5", "--throughput": "-1", "--record-size": "3"}
    given = [word for name, value in base.items() if name not in arguments for word in (name, value)]
    code, _, err = run(producer_perf_test, *given, *arguments)

    assert (code, err.splitlines()[0]) == (1, expected)


def test_numbers_of_a_consumer(run):
    """Is the row Kafka's, and are there rows of a different kind on the way, where they are asked for?"""
    produce(run, "perf-read", 200)
    where = ("--topic", "perf-read", "--messages", "200")
    code, out, _ = run(consumer_perf_test, *where)
    warning, header, row = out.splitlines()
    _, document, _ = run(consumer_perf_test, *where, "--output", "json", "--hide-header")

    assert code == 0
    assert warning == "Warning: --messages is deprecated. Use --num-records instead."
    assert header == consumer_perf_test.HEADER
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"
    number = r"\d+\.\d{4}"
    assert re.fullmatch(
        rf"{time}, {time}, 0\.0038, {number}, 200, {number}, \d+, -?\d+, (-?{number}|Infinity), (-?{number}|Infinity)",
        row,
    )
    assert json.loads(document)["records"] == 200


def test_a_consumer_that_waits_in_vain(run):
    """Is a test that finds too little ended after the timeout, with Kafka's warning?"""
    produce(run, "perf-little", 5)
    code, out, _ = run(consumer_perf_test, "--topic", "perf-little", "--num-records", "6", "--timeout", "1000")

    assert code == 0
    assert out.splitlines()[1] == (
        "WARNING: Exiting before consuming the expected number of records: timeout (1000 ms) exceeded. "
        "You can use the --timeout option to increase the timeout."
    )


def test_latency(run, shared, capsys):
    """Does a record come back as it was sent, headers and all, and are the lines Kafka's, however it is called?"""
    named = ("--topic", "lat", "--num-records", "3", "--producer-acks", "all", "--record-size", "10")
    headers = (
        "--record-key-size",
        "4",
        "--num-headers",
        "2",
        "--record-header-key-size",
        "3",
        "--record-header-size",
        "-1",
    )
    code, out, _ = run(e2e_latency, *named, *headers)
    old = e2e_latency.main([shared.bootstrap, "lat", "2", "1", "10"], "kafka-e2e-latency")
    shown = capsys.readouterr()

    assert code == old == 0
    created, progress, average, percentiles = out.splitlines()
    assert created == 'Topic "lat" does not exist. Will create topic with 1 partition(s) and replication factor = 1'
    assert re.fullmatch(r"0\t\d+\.\d+", progress)
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", percentiles)
    assert shown.out.startswith("WARNING: Positional argument usage is deprecated")


def test_latency_needs_acknowledgements(run):
    """Are acks=0 refused, as there would be nothing to wait for?"""
    code, _, err = run(e2e_latency, "--topic", "t", "--num-records", "1", "--producer-acks", "0", "--record-size", "1")

    assert code == 1
    assert err.startswith("Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement.")


def share_from_the_beginning(shared, group):
    """Let a share group begin with what is there."""
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": shared.bootstrap, "log_level": 2})
    admin.incremental_alter_configs([resource])[resource].result(30)


@pytest.mark.parametrize(("answer", "again"), [((), []), (("--release",), ["0", "1", "2"]), (("--reject",), [])])
def test_share_groups(run, shared, answer, again):
    """Are shared records printed once where they are accepted or rejected, and handed out again where released?"""
    name = f"share{'-'.join(answer)}"
    produce(run, name, 3, "--payload-monotonic")
    share_from_the_beginning(shared, name)
    where = ("--topic", name, "--group", name)
    code, out, err = run(console_share_consumer, *where, "--max-messages", "3", *answer)
    _, after, _ = run(console_share_consumer, *where, "--timeout-ms", "1500")

    assert (code, out.split(), err) == (0, ["0", "1", "2"], "Processed a total of 3 messages\n")
    assert after.split() == again


def test_share_groups_hand_back_what_was_too_much(run, shared):
    """Are records beyond --max-messages released at once, and is it told how often one was handed out?"""
    produce(run, "share-some", 3, "--payload-monotonic")
    share_from_the_beginning(shared, "share-some")
    where = ("--topic", "share-some", "--group", "share-some", "--formatter-property", "print.delivery=true")
    _, first, _ = run(console_share_consumer, *where, "--max-messages", "1")
    _, rest, _ = run(console_share_consumer, *where, "--max-messages", "2")

    assert first == "Delivery:1\t0\n"
    assert rest == "Delivery:2\t1\nDelivery:2\t2\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--topic is a required argument"),
        (["--topic", "t", "--reject", "--release"], "At most one of --reject and --release may be specified."),
    ],
)
def test_share_consumer_mistakes(run, arguments, expected):
    """Is a mistake answered with Kafka's sentence?"""
    code, _, err = run(console_share_consumer, *arguments)

    assert (code, err.splitlines()[0]) == (1, expected)
