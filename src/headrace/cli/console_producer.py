"""kafka-console-producer: lines of standard input become records of a topic."""

from __future__ import annotations

import io
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from headrace.cli.librdkafka import Complaints, engine, engine_settings, make
from headrace.cli.line_reader import PROPERTIES, LineReader, line_format, split_lines
from headrace.cli.old_names import BROKER_LIST, adopt
from headrace.cli.property_names import tell_unknown
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.cli.topic_lookup import await_topic
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headrace.cli.line_reader import Header, NewRecord
    from headrace.cli.session import Session

LINE_READERS = ("LineMessageReader",)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SETTINGS = {
    "batch-size": "batch.size",
    "message-send-max-retries": "retries",
    "retry-backoff-ms": "retry.backoff.ms",
    "timeout": "linger.ms",
    "request-required-acks": "acks",
    "request-timeout-ms": "request.timeout.ms",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "max-block-ms": "max.block.ms",
    "max-memory-bytes": "buffer.memory",
    "socket-buffer-size": "send.buffer.bytes",
}
"""Which of the producer's settings an option is another name for.

What is not given is left to librdkafka, whose defaults send faster than Kafka's for this tool: batches of up to 1 MB
rather than 16 KB, a queue of 1 GB rather than 32 MB.
"""
ACKS = ("all", "-1", "0", "1")
_NUMBERS = SETTINGS.keys() - {"request-required-acks"}
_TERMINAL_LINGER_MS = "0"
_POLL_EVERY = 500
_MEETING_S = 5.0
_FULL_WAIT_S = 0.1
_SYNC_S = 60.0
_PATIENCE_S = 2.0
"""How long a person waits without asking what is going on."""

READER_PROPERTIES = (
    "Properties of the line reader: parse.key=false, key.separator=TAB, parse.headers=false, headers.delimiter=TAB, "
    "headers.separator=, headers.key.separator=: ignore.error=false, null.marker (a key, value or header equal to it "
    'is null). With headers and a key a line is "h1:v1,h2:v2 TAB key TAB value".'
)

TOOL = Tool(
    name="kafka-console-producer",
    summary="This tool helps to read data from standard input and publish it to Kafka.",
    options=(
        BOOTSTRAP,
        BROKER_LIST,
        COMMAND_CONFIG,
        Option(name="topic", argument="topic", help="REQUIRED: The topic to send to."),
        Option(name="command-property", argument="prop", is_repeatable=True, help="A producer setting, name=value."),
        Option(
            name="producer-property",
            argument="prop",
            is_repeatable=True,
            replaced_by="command-property",
            conflict="Options --command-property and --producer-property cannot be specified together.",
            help="A producer setting.",
        ),
        Option(
            name="producer.config",
            argument="file",
            replaced_by="command-config",
            conflict="Options --command-config and --producer.config cannot be specified together.",
            help="The producer's settings.",
        ),
        Option(name="reader-property", argument="prop", is_repeatable=True, help=READER_PROPERTIES),
        Option(
            name="property",
            argument="prop",
            is_repeatable=True,
            replaced_by="reader-property",
            conflict="Options --reader-property and --property cannot be specified together.",
            help="A property of the line reader.",
        ),
        Option(name="reader-config", argument="file", help="A properties file for the line reader."),
        Option(
            name="line-reader",
            argument="class",
            default="org.apache.kafka.tools.LineMessageReader",
            help="The reader of lines.",
        ),
        Option(
            name="input",
            argument="lines|json",
            default="lines",
            choices=("lines", "json"),
            help="What a line is: as the line reader says, or a document of kafka-console-consumer --output json.",
        ),
        Option(name="key", argument="key", help="The key of every record, where the input has none."),
        Option(
            name="header",
            argument="name=value",
            is_repeatable=True,
            help="A header of every record, after those of the input; null where there is no sign.",
        ),
        Option(name="partition", argument="number", help="The partition of every record, whatever its key is."),
        Option(name="sync", help="Wait for each record to be acknowledged before the next one is sent."),
        Option(
            name="compression-codec",
            argument="|".join(CODECS),
            is_argument_optional=True,
            help="How to compress; gzip where only the option is given.",
        ),
        Option(name="batch-size", argument="bytes", help="How large a batch may grow; 1 MB without it."),
        Option(
            name="max-partition-memory-bytes",
            argument="bytes",
            replaced_by="batch-size",
            warning=(
                "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. "
                "Use --batch-size instead."
            ),
            help="How large a batch may grow.",
        ),
        Option(name="message-send-max-retries", argument="count", help="How often to try again."),
        Option(name="retry-backoff-ms", argument="ms", help="How long to wait before that."),
        Option(
            name="timeout",
            argument="ms",
            default="1000",
            help="How long a record may wait for others to share a batch (linger.ms); not at all on a terminal.",
        ),
        Option(name="request-required-acks", argument="acks", default="-1", help="0, 1, or -1 (all)."),
        Option(name="request-timeout-ms", argument="ms", help="How long a broker may take."),
        Option(name="metadata-expiry-ms", argument="ms", help="When to look again who leads."),
        Option(name="max-block-ms", argument="ms", help="How long sending may block."),
        Option(name="max-memory-bytes", argument="bytes", help="What may wait to be sent."),
        Option(name="socket-buffer-size", argument="bytes", help="The socket's send buffer."),
    ),
    examples=(
        ("Type records, one per line, until Ctrl-D", "--bootstrap-server localhost:9092 --topic trucks_gps"),
        ("Send keys too", "--topic trucks_gps --reader-property parse.key=true --reader-property key.separator=:"),
        ("One key for all of them", "--topic trucks_gps --key truck-7 --header origin=shell"),
        ("Copy a topic", "--topic copy --input json < records.jsonl"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, streams=True)


def _check(values: Values) -> None:
    adopt(values, {"broker-list": "bootstrap-server"})
    values.require("topic")
    for name in _NUMBERS:
        values.number(name)
    if (values.number("partition") or 0) < 0:
        raise UsageError(f"{values.get('partition')} cannot be a partition")
    if any(header.startswith("=") for header in values.all("header")):
        raise UsageError("A header has a name")
    _check_acks(values.require("request-required-acks"))
    codec = values.get("compression-codec")
    if codec and codec not in CODECS:
        raise UsageError(f"Unknown compression name: {codec}")
    reader = values.require("line-reader")
    if reader.replace("$", ".").rsplit(".", 1)[-1] not in LINE_READERS:
        raise Failure(
            f"java.lang.ClassNotFoundException: {reader}",
            remedy=f"There is no Java here; the line reader is {TOOL.find('line-reader').default}.",  # type: ignore[union-attr]
        )


def _check_acks(acks: str) -> None:
    if acks not in ACKS:
        raise Failure(f"Invalid value {acks} for configuration acks: String must be one of: {', '.join(ACKS)}")


async def _run(session: Session) -> int:
    values = session.values
    read = _reader(values)
    topic = values.require("topic")
    is_terminal = _is_terminal()
    complaints = Complaints()
    properties = _properties(session, is_terminal=is_terminal)
    settings = engine_settings(session, properties)
    # Before anything else: librdkafka takes half a second to get its producer id, whatever the broker does.
    producer = make(engine().Producer, {**settings, "error_cb": complaints})
    from headrace.client.producer import meet  # Not before the engine is sure to be installed.

    await await_topic(session, topic, properties)
    meet(producer, topic, set(), _MEETING_S)
    sender = Sender(producer, topic, partition=values.number("partition"), waits=values.has("sync"))
    lines = split_lines(_prompted(sys.stdin) if is_terminal and session.report.is_text else _input(sys.stdin))
    try:
        _send_all(sender, lines, read)
    finally:
        sender.finish()
    session.report.data(sender.document())
    return 1 if sender.failed or complaints.fatal else 0


def _send_all(sender: Sender, lines: Iterator[bytes], read: Callable[[bytes], NewRecord]) -> None:
    """Send until the input ends or Ctrl-C ends it, which is as good an end as any."""
    before: Any = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for line in lines:
            sender.send(read(line))
    except KeyboardInterrupt:
        pass
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


# --- settings


def _reader(values: Values) -> Callable[[bytes], NewRecord]:
    """What makes a record of a line, with the key and the headers of the command line."""
    read, has_key = _reader_of_lines(values)
    typed, headers = values.get("key"), [_header(text) for text in values.all("header")]
    if typed is not None and has_key:
        raise Failure("Every record has a key of its own here.", remedy="Leave --key out.")
    if typed is None and not headers:
        return read
    key = None if typed is None else _as_typed(typed)

    def read_more(line: bytes) -> NewRecord:
        record = read(line)
        return record._replace(
            key=record.key if key is None else key, headers=[*(record.headers or ()), *headers] or None
        )

    return read_more


def _reader_of_lines(values: Values) -> tuple[Callable[[bytes], NewRecord], bool]:
    """What makes a record of a line, and whether the key is in the line too."""
    if values.get("input") == "json":
        from headrace.cli.envelope import EnvelopeReader

        return EnvelopeReader(), True
    file = values.get("reader-config")
    properties = (load_properties(file) if file else {}) | values.pairs("reader-property")
    tell_unknown(properties, PROPERTIES)
    form = line_format(properties)
    return LineReader(form), form.parse_key


def _header(text: str) -> Header:
    name, sign, value = text.partition("=")
    return name, _as_typed(value) if sign else None


def _as_typed(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _properties(session: Session, *, is_terminal: bool) -> dict[str, str]:
    """The producer's settings: what was typed, then the properties, then Kafka's defaults for this tool."""
    values = session.values
    found = session.properties()
    for option, setting in SETTINGS.items():
        if values.has(option):
            found[setting] = values.require(option)
    found.setdefault("linger.ms", _TERMINAL_LINGER_MS if is_terminal else values.require("timeout"))
    found.setdefault("client.id", "console-producer")
    found.setdefault("acks", "all")
    _check_acks(found["acks"])
    found.setdefault("delivery.timeout.ms", "120000")
    if values.has("compression-codec"):
        found["compression.type"] = values.get("compression-codec") or "gzip"
    # As Java's producer: the same key, the same partition; nothing twice and nothing out of order.
    found.setdefault("partitioner", "murmur2_random")
    if found["acks"] in {"all", "-1"} and found.get("retries", "1") != "0":
        found.setdefault("enable.idempotence", "true")
    return found


# --- input


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _input(stream: Any) -> Iterator[bytes]:
    """The input's lines as bytes."""
    return iter(getattr(stream, "buffer", None) or io.BytesIO(stream.read().encode()))


def _prompted(stream: Any) -> Iterator[bytes]:
    """The lines a person types, each asked for by a prompt."""
    while True:
        sys.stdout.write(">")
        sys.stdout.flush()
        line = stream.buffer.readline()
        if not line:
            return
        yield line


# --- sending


class Sender:
    """Hands records to librdkafka and tells of those that do not arrive."""

    def __init__(self, producer: Any, topic: str, *, partition: int | None = None, waits: bool) -> None:
        self._producer = producer
        self._topic = topic
        self._always = {} if partition is None else {"partition": partition}
        self._waits = waits
        self._sent = 0
        self._arrived: dict[int, list[int]] = {}
        self.failed = 0

    def send(self, record: NewRecord) -> None:
        """Send a record; waits where the queue is full, and for each acknowledgement where that is asked for."""
        given: dict[str, Any] = {"on_delivery": self._delivered, **self._always}
        if record.headers:
            given["headers"] = record.headers
        if record.timestamp_ms is not None and record.timestamp_ms >= 0:
            given["timestamp"] = record.timestamp_ms
        while True:
            try:
                self._producer.produce(self._topic, record.value, record.key, **given)
                break
            except BufferError:
                self._producer.poll(_FULL_WAIT_S)
            except engine().KafkaException as error:
                self._tell(record.key, record.value, error.args[0].str())
                break
        self._sent += 1
        if self._waits:
            self._producer.flush(_SYNC_S)
        elif self._sent % _POLL_EVERY == 0:
            self._producer.poll(0)

    def finish(self) -> None:
        """Wait until every record has arrived or failed, which librdkafka decides in bounded time."""
        left = self._producer.flush(_PATIENCE_S)
        if left:
            print(f"Waiting for {left} records to be acknowledged.", file=sys.stderr)
        while left:
            left = self._producer.flush(_PATIENCE_S)

    def document(self) -> dict[str, Any]:
        """What became of the records, for programs: how many arrived where; no offset where none was told."""
        places = [
            {"partition": index, "records": count, "lastOffset": last if last >= 0 else None}
            for index, (count, last) in sorted(self._arrived.items())
        ]
        arrived = sum(place[0] for place in self._arrived.values())
        return {"topic": self._topic, "acknowledged": arrived, "failed": self.failed, "partitions": places}

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._tell(message.key(), message.value(), error.str())
            return
        place = self._arrived.setdefault(message.partition(), [0, -1])
        place[0] += 1
        place[1] = max(place[1], message.offset())

    def _tell(self, key: bytes | None, value: bytes | None, reason: str) -> None:
        self.failed += 1
        shown = ["null" if part is None else f"{len(part)} bytes" for part in (key, value)]
        print(
            f"Error when sending message to topic {self._topic} with key: {shown[0]}, value: {shown[1]} "
            f"with error: {reason}",
            file=sys.stderr,
        )
