"""kafka-console-producer and kafka-console-consumer against a broker in this process."""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from headrace.cli import console_consumer, console_producer, topic_lookup
from headrace.testing.cluster import Cluster

confluent_kafka = pytest.importorskip("confluent_kafka")

DEADLINE_S = 60
HINT = console_consumer.HINT + "\n"


@pytest.fixture
def tools(shared, request, capfdbinary, monkeypatch, tmp_path):
    """Both tools on a topic of the test's own."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    return Tools(
        shared.bootstrap, f"console-{request.node.name}".translate(str.maketrans("[]", "__")), capfdbinary, monkeypatch
    )


class Tools:
    """Runs the tools; gives exit code, standard output and standard error."""

    def __init__(self, bootstrap, topic, capture, monkeypatch):
        self.bootstrap, self.topic = bootstrap, topic
        self._capture, self._monkeypatch = capture, monkeypatch

    def produce(self, text, *arguments, topic=None):
        """Send lines."""
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        where = ("--bootstrap-server", self.bootstrap, "--topic", topic or self.topic)
        return self._run(console_producer, *where, *arguments)

    def consume(self, *arguments, topic=None):
        """Read records."""
        where = ("--bootstrap-server", self.bootstrap, "--topic", topic or self.topic)
        return self._run(console_consumer, *where, *arguments)

    def consume_plainly(self, *arguments):
        """Read records, with nothing but the address given."""
        return self._run(console_consumer, "--bootstrap-server", self.bootstrap, *arguments)

    def consume_by_profile(self, *arguments):
        """Read records, with no address given."""
        return self._run(console_consumer, *arguments)

    def _run(self, module, *arguments):
        code = module.main(arguments, module.TOOL.name)
        shown = self._capture.readouterr()
        return code, shown.out, shown.err.decode()

    def create(self, partitions):
        """Make the topic."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        admin.create_topics([NewTopic(self.topic, partitions, 1)])[self.topic].result(30)

    def send(self, *values, timestamps=None, partitions=None, **settings):
        """Send values with a client of our own; an explicit timestamp or partition each."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, "log_level": 2, **settings})
        for place, value in enumerate(values):
            given = {}
            if timestamps:
                given["timestamp"] = timestamps[place]
            if partitions:
                given["partition"] = partitions[place]
            producer.produce(self.topic, value, **given)
        assert producer.flush(30) == 0


def test_there_and_back(tools):
    """Do lines that are piped in come out as they were, without a prompt, and is the count on the error stream?"""
    assert tools.produce(b"This is my first event\nThis is my second event\r\nlast") == (0, b"", "")
    code, out, err = tools.consume("--from-beginning", "--max-messages", "3")

    assert (code, out) == (0, b"This is my first event\nThis is my second event\nlast\n")
    assert err == HINT + "Processed a total of 3 messages\n"


def test_the_consumer_of_the_oldest_tutorials(tools, monkeypatch):
    """Does `--zookeeper localhost:2181 --topic t --from-beginning` read the topic, and say whom it asks instead?"""
    tools.produce(b"one\n")
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", tools.bootstrap)
    words = ("--zookeeper", "localhost:2181", "--topic", tools.topic, "--from-beginning", "--max-messages", "1")

    code, out, err = tools.consume_by_profile(*words)

    assert (0, b"one\n") == (code, out)
    assert f"Kafka 4 has no ZooKeeper, so --zookeeper is not used: asking {tools.bootstrap}.\n" in err


def test_what_became_of_records_for_programs(tools):
    """Does `--output json` say after the last record how many arrived, and where the last of them is?"""
    code, out, err = tools.produce(b"one\ntwo\n", "--output", "json")

    assert (0, "") == (code, err)
    assert {
        "topic": tools.topic,
        "acknowledged": 2,
        "failed": 0,
        "partitions": [{"partition": 0, "records": 2, "lastOffset": 1}],
    } == json.loads(out)


def test_acknowledgements_that_there_are_none_of(tools):
    """Is a wrong number of acknowledgements refused in Kafka's words, also where nothing is sent?"""
    code, out, err = tools.produce(b"", "--request-required-acks", "7")

    assert (1, b"") == (code, out)
    assert "Invalid value 7 for configuration acks: String must be one of: all, -1, 0, 1\n" == err


def test_keys_headers_and_nulls(tools):
    """Do keys, headers and nulls get there, and are they printed as Kafka prints them?"""
    reading = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    assert (
        tools.produce(b"h1:v1,h2:NIL\tk\tv\nNIL\tNIL\tNIL\n", *reading, "--reader-property", "null.marker=NIL")[0] == 0
    )
    properties = [f"print.{name}=true" for name in ("key", "headers", "partition", "offset")]
    printing = [word for text in properties for word in ("--formatter-property", text)]
    _, out, _ = tools.consume("--from-beginning", "--max-messages", "2", *printing)

    assert out == b"Partition:0\tOffset:0\th1:v1,h2:null\tk\tv\nPartition:0\tOffset:1\tNO_HEADERS\tnull\tnull\n"


def test_a_key_and_headers_for_every_record(tools):
    """Do --key, --header and --partition count for every line, after the headers that a line has itself?"""
    tools.create(partitions=3)
    typed = ("--key", "k=\udcff", "--header", "a=1=2", "--header", "b", "--header", "a=", "--partition", "2")
    assert (0, b"", "") == tools.produce(b"h:x\tone\nh:y\ttwo\n", *typed, "--reader-property", "parse.headers=true")
    _, out, _ = tools.consume("--exit-at-end", "--output", "json")

    mine = [{"key": "a", "value": "1=2"}, {"key": "b", "value": None}, {"key": "a", "value": ""}]
    expected = [
        (2, {"base64": "az3/"}, [{"key": "h", "value": "x"}, *mine], "one"),
        (2, {"base64": "az3/"}, [{"key": "h", "value": "y"}, *mine], "two"),
    ]
    records = [json.loads(line) for line in out.splitlines()]
    assert expected == [tuple(record[name] for name in ("partition", "key", "headers", "value")) for record in records]


def test_a_header_for_every_document(tools):
    """Does --header add to what --input json brings, and is --key refused where the input has keys?"""
    document = b'{"key": "k", "value": "v"}\n'
    assert (0, b"", "") == tools.produce(document, "--input", "json", "--header", "copied=yes")
    _, out, _ = tools.consume("--exit-at-end", "--format", "%k %h %v\\n")
    refused = "Every record has a key of its own here.\nLeave --key out.\n"

    assert b"k copied:yes v\n" == out
    assert (1, b"", refused) == tools.produce(document, "--input", "json", "--key", "other")
    assert (1, b"", refused) == tools.produce(b"k\tv\n", "--reader-property", "parse.key=true", "--key", "other")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--partition", "-1"], "-1 cannot be a partition"),
        (["--partition", "x"], "Cannot parse argument 'x' of option partition"),
        (["--header", "=v"], "A header has a name"),
        (["--key", "a", "--key", "b"], "Found multiple arguments for option key, but you asked for only one"),
    ],
)
def test_a_key_a_header_or_a_partition_that_cannot_be(tools, arguments, expected):
    """Is it refused before anything is sent?"""
    code, out, err = tools.produce(b"v\n", *arguments)

    assert (1, b"") == (code, out)
    assert expected == err.splitlines()[0]


def test_a_partition_that_there_is_none_of(tools):
    """Is every record for it told, with exit code 1?"""
    code, out, err = tools.produce(b"v\n", "--partition", "7")

    assert (1, b"") == (code, out)
    assert err.startswith(
        f"Error when sending message to topic {tools.topic} with key: null, value: 1 bytes with error"
    )


def test_a_bad_line_ends_it_but_loses_nothing(tools):
    """Is what came before a line without a key sent, and the line refused with Kafka's sentence and exit code 1?"""
    code, out, err = tools.produce(
        b"a:1\nb:2\nabc\nd:4\n", "--property", "parse.key=true", "--property", "key.separator=:"
    )

    assert code == 1
    assert out == (
        b"Warning: --property is deprecated and will be removed in a future version. Use --reader-property instead.\n"
    )
    assert err.splitlines()[0] == "No key separator found on line number 3: 'abc'"
    assert tools.consume("--exit-at-end")[1] == b"1\n2\n"


def test_json_round_trip(tools):
    """Does a topic copied through --output json and --input json hold the same records?"""
    reading = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    marker = ("--reader-property", "null.marker=NIL")
    tools.produce(b"h:\xff\xfe,i:NIL\tk\xff\t\xf0\x9f\x90\x9f\nNIL\tNIL\t\nNIL\tNIL\tNIL\n", *reading, *marker)
    _, lines, _ = tools.consume("--exit-at-end", "--output", "json")
    copy = f"{tools.topic}-copy"
    assert tools.produce(lines, "--input", "json", topic=copy)[0] == 0
    _, copied, _ = tools.consume("--exit-at-end", "--output", "json", topic=copy)

    first, second = ([json.loads(line) for line in text.splitlines()] for text in (lines, copied))
    assert len(first) == 3
    assert [{**document, "topic": copy} for document in first] == second
    assert (first[0]["key"], first[0]["value"]) == ({"base64": "a/8="}, "🐟")
    assert [document["value"] for document in first[1:]] == ["", None]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", None])
def test_compression_and_sync(tools, codec):
    """Do all codecs work, gzip where none is named, and waiting for each record?"""
    code, _, err = tools.produce(b"x\ny\n", "--sync", "--compression-codec", *([codec] if codec else []))

    assert (code, err) == (0, "")
    assert tools.consume("--exit-at-end")[1] == b"x\ny\n"


def test_partition_and_offset(tools):
    """Does --partition with --offset begin there, and without it at the end; and is a missing partition named?"""
    tools.produce(b"0\n1\n2\n3\n")

    assert tools.consume("--partition", "0", "--offset", "2", "--max-messages", "2")[1] == b"2\n3\n"
    assert tools.consume("--partition", "0", "--offset", "earliest", "--max-messages", "1")[1] == b"0\n"
    code, out, err = tools.consume("--partition", "0", "--timeout-ms", "100")
    assert (code, out) == (0, b"")
    assert err == "No message for 100 ms; ending as --timeout-ms asks.\nProcessed a total of 0 messages\n"
    assert tools.consume("--partition", "0", "--exit-at-end")[1] == b"0\n1\n2\n3\n"
    code, _, err = tools.consume("--partition", "7")
    assert code == 1
    assert f"The topic '{tools.topic}' has no partition 7\nIt has 1, counted from 0.\n" in err


def test_last_over_all_partitions(tools):
    """Are the last records of all partitions together printed in the order of time?"""
    tools.create(3)
    tools.send(
        *(f"r{n}" for n in range(9)), timestamps=[1000 + n for n in range(9)], partitions=[n % 3 for n in range(9)]
    )

    assert tools.consume("--last", "4", "--exit-at-end")[1] == b"r5\nr6\nr7\nr8\n"
    assert tools.consume("--last", "100", "--exit-at-end", "--format", r"%p:%v ")[1] == (
        b"0:r0 1:r1 2:r2 0:r3 1:r4 2:r5 0:r6 1:r7 2:r8 "
    )
    assert tools.consume("--last", "0", "--exit-at-end")[1] == b""


def test_a_window_of_time(tools):
    """Do --since and --until cut out the records between, in every partition, and end by themselves?"""
    tools.create(2)
    times = [1_700_000_000_000 + 1000 * n for n in range(10)]
    tools.send(*(f"r{n}" for n in range(10)), timestamps=times, partitions=[n % 2 for n in range(10)])
    _, out, _ = tools.consume("--since", str(times[3]), "--until", "2023-11-14T22:13:27Z")
    _, recent, _ = tools.consume("--since", "10m", "--exit-at-end")
    _, early, _ = tools.consume("--until", str(times[2]))

    assert sorted(out.split()) == [b"r3", b"r4", b"r5", b"r6"]
    assert recent == b""
    assert sorted(early.split()) == [b"r0", b"r1"]


def test_include_reads_every_topic_that_matches(tools):
    """Is --include matched against whole names, and are all topics read that match?"""
    for suffix in ("a", "b", "ab"):
        tools.produce(suffix.encode(), topic=f"{tools.topic}-{suffix}")
    pattern = f"{tools.topic}-[ab]"
    _, out, _ = tools.consume_plainly("--include", pattern, "--from-beginning", "--max-messages", "2")

    assert sorted(out.split()) == [b"a", b"b"]


def test_a_named_group_goes_on_where_it_was(tools):
    """Does a group commit exactly what was printed, and a run without a name commit nothing?"""
    tools.produce(b"0\n1\n2\n3\n")
    group = ("--group", tools.topic, "--from-beginning", "--max-messages")
    assert [tools.consume(*group, "3")[1], tools.consume(*group, "1")[1]] == [b"0\n1\n2\n", b"3\n"]
    offsets = confluent_kafka.Consumer({"bootstrap.servers": tools.bootstrap, "group.id": tools.topic, "log_level": 2})
    (found,) = offsets.committed([confluent_kafka.TopicPartition(tools.topic, 0)], timeout=30)
    offsets.close()

    assert found.offset == 4


def test_the_group_of_a_run_without_a_name(tools, monkeypatch):
    """Is it called console-consumer and a number below 100000, and is it listed?"""
    monkeypatch.setattr(console_consumer.random, "randrange", lambda end: end - 1)
    tools.produce(b"x\n")
    tools.consume("--from-beginning", "--max-messages", "1")
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": tools.bootstrap, "log_level": 2})
    listed = admin.list_consumer_groups().result(30).valid

    assert "console-consumer-99999" in {group.group_id for group in listed}


def test_the_new_protocol_needs_no_hint(tools):
    """Is KIP-848 served on demand, and the hint then left out?"""
    tools.produce(b"x\n")
    _, out, err = tools.consume(
        "--from-beginning", "--max-messages", "1", "--command-property", "group.protocol=consumer"
    )

    assert (out, err) == (b"x\n", "Processed a total of 1 messages\n")


def test_uncommitted_records_are_left_out_on_demand(tools, shared):
    """Does read_committed leave out an aborted transaction, and the default show it?"""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": tools.bootstrap, "transactional.id": tools.topic, "log_level": 2}
    )
    producer.init_transactions(30)
    for value, commits in (("kept", True), ("dropped", False), ("also kept", True)):
        producer.begin_transaction()
        producer.produce(tools.topic, value)
        producer.flush(30)
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    # A commit is answered when it is decided; its marker follows.
    partition = shared.ask(lambda broker: broker.partitions.require(tools.topic, 0))
    end = time.monotonic() + DEADLINE_S
    while partition.last_stable_offset < partition.log.log_end_offset:
        assert time.monotonic() < end, "the last transaction is not completed"

    assert tools.consume("--exit-at-end", "--isolation-level", "read_committed")[1] == b"kept\nalso kept\n"
    assert tools.consume("--exit-at-end")[1] == b"kept\ndropped\nalso kept\n"


def test_a_record_that_cannot_be_printed(tools):
    """Does it end the run with exit code 1, or is it left out where that is asked for?"""
    tools.send((1).to_bytes(8), b"short", (2).to_bytes(8))
    as_long = ("--exit-at-end", "--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer")
    code, out, err = tools.consume(*as_long)
    assert (code, out) == (1, b"1\n")
    assert "Size of data received by LongDeserializer is not 8" in err
    code, out, err = tools.consume(*as_long, "--skip-message-on-error")
    assert (code, out) == (0, b"1\n2\n")
    assert "Processed a total of 3 messages" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--include", "b"], "Exactly one of the following arguments is required: [topic], [include]"),
        (["--offset", "3"], "The partition is required when offset is specified."),
        (
            ["--partition", "0", "--offset", "x"],
            (
                "The provided offset value 'x' is incorrect. "
                "Valid values are 'earliest', 'latest', or a non-negative long."
            ),
        ),
        (["--partition", "0", "--group", "g"], "Options group and partition cannot be specified together."),
        (["--last", "3", "--group", "g"], "Options group and last cannot be specified together."),
        (["--last", "3", "--from-beginning"], "Options last and from-beginning cannot be specified together."),
        (
            ["--property", "a=b", "--formatter-property", "c=d"],
            "Options --property and --formatter-property cannot be specified together.",
        ),
        (["--format", "%q"], "--format: %q means nothing; known are: %t %p %o %k %v %s %h %T %K %S %%"),
    ],
)
def test_what_does_not_go_together(tools, arguments, expected):
    """Is a mistake answered with Kafka's sentence and the usage on the error stream, and exit code 1?"""
    code, out, err = tools.consume(*arguments)

    assert (code, out) == (1, b"")
    assert err.splitlines()[0] == expected
    assert "--from-beginning" in err


def test_names_that_people_still_type(tools):
    """Do --broker-list and --from-begining work, with one line that says what they are called now?"""
    tools._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    sent = tools._run(console_producer, "--broker-list", tools.bootstrap, "--topic", tools.topic)
    code, out, err = tools.consume("--from-begining", "--max-messages", "1")

    assert sent == (0, b"", "--broker-list is called --bootstrap-server now.\n")
    assert (code, out) == (0, b"x\n")
    assert err.splitlines()[0] == "--from-begining is called --from-beginning now."


def test_nobody_there(tools):
    """Do both say so at once, with advice and exit code 1?"""
    tools.bootstrap = "127.0.0.1:1"
    for code, out, err in (tools.produce(b"x\n"), tools.consume("--from-beginning")):
        assert (code, out) == (1, b"")
        assert "Is the broker running? Start one with: bin/headrace start" in err


def test_a_record_that_cannot_be_sent(tools):
    """Is it told with its sizes, the rest sent, and the exit code 1, where Kafka's tool says 0?"""
    code, _, err = tools.produce(b"x" * 2_000_000 + b"\nsmall\n")

    assert code == 1
    assert err.startswith(
        f"Error when sending message to topic {tools.topic} with key: null, value: 2000000 bytes with error: "
    )
    assert tools.consume("--exit-at-end")[1] == b"small\n"


def test_a_name_that_can_be_no_topic(tools):
    """Do both refuse it at once, instead of waiting for ever?"""
    for code, out, err in (tools.produce(b"x\n", topic="no/topic"), tools.consume(topic="no/topic")):
        assert (code, out) == (1, b"")
        assert "The topic 'no/topic' cannot be used: INVALID_TOPIC_EXCEPTION" in err


def test_a_consumer_may_be_there_before_its_topic(tools):
    """Are records of a topic printed that was made after the consumer came, found by name or by --include?"""
    for where in (("--topic", f"{tools.topic}-1"), ("--include", f"{tools.topic}-2.*")):
        with start(
            "kafka-console-consumer", "--bootstrap-server", tools.bootstrap, *where, "--from-beginning",
            "--max-messages", "1", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            while b"KIP-848" not in process.stderr.readline():
                pass
            tools.produce(b"late\n", topic=where[1].removesuffix(".*"))
            assert process.stdout.read() == b"late\n"


# --- as processes: terminals, signals and pipes


def start(*arguments, **given):
    """A tool in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "headrace.cli", *arguments], **given)


def read_until(descriptor, wanted):
    """What a terminal shows, until it shows this."""
    shown, deadline = b"", time.monotonic() + DEADLINE_S
    while wanted not in shown:
        assert select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))[0], shown
        shown += os.read(descriptor, 4096)
    return shown


def test_the_prompt_is_for_terminals(tools):
    """Does a person see a prompt for each line, and does Ctrl-C end it with everything sent and exit code 0?"""
    ours, theirs = pty.openpty()
    process = start(
        "kafka-console-producer", "--bootstrap-server", tools.bootstrap, "--topic", tools.topic,
        stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(theirs)
    assert read_until(ours, b">") == b">"
    os.write(ours, b"typed\n")
    assert read_until(ours, b"\n>") == b"typed\r\n>"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_S)
    os.close(ours)

    assert (process.returncode, err) == (0, b"")
    assert tools.consume("--exit-at-end")[1] == b"typed\n"


def test_ctrl_c_ends_the_consumer_cleanly(tools):
    """Does Ctrl-C leave the group and print the count, with the exit code of an interrupted program?"""
    tools.produce(b"x\n")
    process = start(
        "kafka-console-consumer", "--bootstrap-server", tools.bootstrap, "--topic", tools.topic, "--from-beginning",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == b"x\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 130
    assert err.decode().splitlines()[-1] == "Processed a total of 1 messages"


def test_a_reader_that_goes_away(tools):
    """Does a consumer end by itself when nobody reads what it prints, with Kafka's sentence and exit code 0?"""
    tools.produce(b"x" * 1000 + b"\n")
    with start(
        "kafka-console-consumer", "--bootstrap-server", tools.bootstrap, "--topic", tools.topic, "--from-beginning",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout.read(1) == b"x"
        process.stdout.close()
        tools.produce(b"y\n")
        err = process.stderr.read().decode()

    assert process.returncode == 0
    assert re.search(r"Unable to write to standard out, closing consumer\.\nProcessed a total of \d messages\n$", err)


class Clock:
    """What `topic_lookup` takes for asyncio: no time passes but that it sleeps."""

    def __init__(self):
        self.now_s = 0.0

    def get_running_loop(self):
        return self

    def time(self):
        return self.now_s

    async def sleep(self, seconds):
        self.now_s += seconds


@pytest.mark.parametrize(
    ("setting", "code", "remedy"),
    [
        (
            {"auto.create.topics.enable": "false"},
            "UNKNOWN_TOPIC_OR_PARTITION",
            "The cluster does not make it by itself.",
        ),
        ({"default.replication.factor": "3"}, "INVALID_REPLICATION_FACTOR", "The cluster has fewer brokers than"),
    ],
)
def test_a_topic_that_cannot_be_made(tools, monkeypatch, setting, code, remedy):
    """Does the producer say what is wrong with a topic that nobody makes, and end when its time to block is over?"""
    monkeypatch.setattr(topic_lookup, "_GRACE_S", 0.0)
    monkeypatch.setattr(topic_lookup, "asyncio", Clock())
    with Cluster(setting) as cluster:
        tools.bootstrap = cluster.bootstrap
        exit_code, out, err = tools.produce(b"one\n", "--max-block-ms", "50", topic="missing")
    told, *_, problem, advice = err.splitlines()

    assert (1, b"") == (exit_code, out)
    assert told.startswith(f"Warning: The topic 'missing' cannot be written to: {code}. {remedy}")
    assert f"Topic missing not present in metadata after 50 ms: {code}" == problem
    assert advice.startswith(remedy)


def test_a_topic_that_is_made_meanwhile(tools, monkeypatch):
    """Does the producer go on as soon as somebody makes the topic it waits for?"""
    with Cluster({"auto.create.topics.enable": "false"}) as cluster:
        tools.bootstrap = cluster.bootstrap
        ask = topic_lookup._ask

        async def made_after_the_first_look(session, topic):
            found = await ask(session, topic)
            if not found[1]:
                tools.create(1)
            return found

        monkeypatch.setattr(topic_lookup, "_ask", made_after_the_first_look)

        assert (0, b"", "") == tools.produce(b"one\n")


def test_properties_nobody_knows(tools):
    """Is a misspelt property of the reader, or of the formatter, said once with the right one, and the rest done?"""
    said = "Warning: {} is not a known property; did you mean {}?\n".format
    code, _, err = tools.produce(b"one\n", "--reader-property", "parse.kye=true")
    assert (0, said("parse.kye", "parse.key")) == (code, err)

    properties = ("--formatter-property", "print.kye=true", "--formatter-property", "key.deserializer.encoding=UTF-8")
    code, out, err = tools.consume("--exit-at-end", *properties)
    assert (0, b"one\n") == (code, out)
    assert said("print.kye", "print.key") + "Processed a total of 1 messages\n" == err


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("acks=7", "Invalid value 7 for configuration acks: String must be one of: all, -1, 0, 1"),
        ("linger.ms=soon", "linger.ms='soon' is not a value it can have."),
        ("max.request.size=7", "max.request.size='7' is outside of its range, 1000..1000000000."),
    ],
)
def test_a_setting_that_cannot_be(tools, setting, sentence):
    """Is a value that a setting cannot have refused by the name that was typed, not by librdkafka's?"""
    code, out, err = tools.produce(b"one\n", "--command-property", setting)

    assert (1, b"", sentence) == (code, out, err.splitlines()[0])
