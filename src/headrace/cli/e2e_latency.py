"""kafka-e2e-latency: how long a record takes from a producer to a consumer."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.cli.librdkafka import Complaints, engine, engine_settings, make
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.model.errors import ErrorCode
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

POLL_S = 60.0
POSITIONAL = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size", "command-config")
_CREATE_TOPICS = 19
_REPORT_EVERY = 1000
_SETTLE_S = 30.0

TOOL = Tool(
    name="kafka-e2e-latency",
    summary="This tool measures end-to-end latency in Kafka by sending messages and timing their reception.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="topic", argument="topic", help="REQUIRED: The topic to use for the test."),
        Option(name="num-records", argument="count", help="REQUIRED: How many records to send."),
        Option(name="producer-acks", argument="1|all", help="REQUIRED: 1, or all."),
        Option(name="record-size", argument="bytes", help="REQUIRED: How large a record is."),
        Option(name="record-key-size", argument="bytes", help="How large its key is; without it there is none."),
        Option(name="num-headers", argument="count", help="How many headers it has."),
        Option(name="record-header-key-size", argument="bytes", help="How large a header's name is."),
        Option(name="record-header-size", argument="bytes", help="How large a header's value is; -1: null."),
    ),
    examples=(
        (
            "A thousand records, one after the other",
            "--topic latency --num-records 1000 --producer-acks all --record-size 100",
        ),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool; the old way to call it, with words in a fixed order, still works."""
    if arguments and not arguments[0].startswith("-"):
        if len(arguments) not in {len(POSITIONAL) - 1, len(POSITIONAL)}:
            print(
                f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(arguments)}. "
                "Usage: bootstrap-server topic num-records producer-acks record-size [optional] command-config",
                file=sys.stderr,
            )
            return 1
        print(
            "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use "
            "named arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, --record-size, "
            "--command-config"
        )
        named = zip(POSITIONAL, arguments, strict=False)
        arguments = [word for name, value in named if value.strip() for word in (f"--{name}", value)]
    return run_tool(TOOL, arguments, program, _run, check=_check, streams=True)


_BOUNDS = {
    "num-records": (1, "must be a positive integer."),
    "record-size": (0, "must be a non-negative integer."),
    "record-key-size": (0, "must be a non-negative integer."),
    "num-headers": (0, "must be a non-negative integer."),
    "record-header-key-size": (0, "must be a non-negative integer."),
    "record-header-size": (-1, "must be a non-negative integer or -1 for null header value."),
}


def _check(values: Values) -> None:
    for name in ("topic", "num-records", "producer-acks", "record-size"):
        values.require(name)
    for name, (least, words) in _BOUNDS.items():
        number = values.number(name)
        if number is not None and number < least:
            raise UsageError(f"Value for --{name} {words}")
    if values.get("producer-acks") not in {"1", "all"}:
        raise UsageError(
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. "
            "Please use '1' or 'all'."
        )


@dataclass(frozen=True, slots=True)
class Sent:
    """A record on its way."""

    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]


def _record(values: Values, chance: random.Random) -> Sent:
    """A record of the sizes asked for."""

    def content(size: int) -> bytes:
        return bytes([chance.randrange(65, 91)]) * size

    key_size = values.number("record-key-size") or 0
    header_size = values.number("record-header-size") or 0
    headers: list[tuple[str, bytes | None]] = [
        (
            content(values.number("record-header-key-size") or 0).decode(),
            None if header_size < 0 else content(header_size),
        )
        for _ in range(values.number("num-headers") or 0)
    ]
    return Sent(content(key_size) if key_size else None, content(values.number("record-size") or 0), headers)


async def _run(session: Session) -> int:
    values = session.values
    topic = values.require("topic")
    with session.waiting():
        partitions = await _partitions(session, topic)
    properties = session.properties()
    settings = engine_settings(session, properties)
    complaints = Complaints()
    kafka = engine()
    consumer = make(
        kafka.Consumer,
        {
            **settings,
            "group.id": f"test-group-{round(time.time() * 1000)}",
            "enable.auto.commit": "false",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": "1",
            "fetch.error.backoff.ms": "0",
            "error_cb": complaints,
        },
    )
    producer = make(
        kafka.Producer,
        {**settings, "linger.ms": "0", "acks": values.require("producer-acks"), "error_cb": complaints},
    )
    try:
        _go_to_end(consumer, topic, partitions)
        latencies = _measure(session, producer, consumer, topic)
    finally:
        consumer.close()
    _print_results(session, latencies)
    return 0


async def _partitions(session: Session, topic: str) -> int:
    """How many partitions the topic has; it is made where it is not there."""
    metadata = await session.cluster.metadata()
    for found in metadata.topics:
        if found.name == topic:
            return len(found.partitions)
    session.report.note(
        f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1'
    )
    request = CreateTopicsRequest(
        topics=(CreatableTopic(name=topic, num_partitions=1, replication_factor=1),), timeout_ms=30_000
    )
    answer = await session.cluster.ask(_CREATE_TOPICS, request)
    error = answer.topics[0].error_code
    if error:
        session.report.note(f"Creation of topic {topic} failed")
        raise Failure(answer.topics[0].error_message or ErrorCode(error).name)
    return 1


def _go_to_end(consumer: Any, topic: str, partitions: int) -> None:
    """Begin behind what is there already; each partition says when it is there."""
    kafka = engine()
    consumer.assign([kafka.TopicPartition(topic, index, kafka.OFFSET_END) for index in range(partitions)])
    deadline = time.monotonic() + _SETTLE_S
    waiting = set(range(partitions))
    while waiting:
        message = consumer.poll(0.1)
        if message is not None and message.error() is not None:
            waiting.discard(message.partition())
        if time.monotonic() > deadline:
            raise Failure(f"The end of {topic} was not reached within {_SETTLE_S:.0f} s", remedy="Is it being written?")


def _measure(session: Session, producer: Any, consumer: Any, topic: str) -> list[int]:
    values = session.values
    chance = random.Random(0)  # noqa: S311 - the same records in every run
    latencies: list[int] = []
    for number in range(values.number("num-records") or 0):
        sent = _record(values, chance)
        began = time.perf_counter_ns()
        _send(producer, topic, sent)
        received = _receive(consumer)
        elapsed = time.perf_counter_ns() - began
        _validate(sent, received)
        if number % _REPORT_EVERY == 0:
            session.report.line(f"{number}\t{elapsed / 1_000_000}")
        latencies.append(elapsed)
    return latencies


def _send(producer: Any, topic: str, sent: Sent) -> None:
    """Send a record and wait for its acknowledgement."""
    answers: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        answers.append(error)

    producer.produce(topic, sent.value, sent.key, headers=sent.headers, on_delivery=delivered)
    producer.flush(POLL_S)
    if not answers or answers[0] is not None:
        raise Failure(answers[0].str() if answers else "The record was not acknowledged in time")


def _receive(consumer: Any) -> Any:
    """The next record; word of a partition's end is not one."""
    deadline = time.monotonic() + POLL_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            return message
    raise Failure(f"poll() timed out before finding a result (timeout:[{round(POLL_S * 1000)}ms])")


def _validate(sent: Sent, received: Any) -> None:
    """Make sure that it is the record that was sent."""
    pairs = {
        "value": (sent.value, received.value()),
        "key": (sent.key, received.key()),
        "header": (sent.headers or None, received.headers() or None),
    }
    for name, (expected, found) in pairs.items():
        if expected != found:
            raise Failure(
                f"The message {name} read [{_text(found)}] did not match the message {name} sent [{_text(expected)}]",
                remedy="Use a topic nobody else writes to.",
            )


def _text(part: Any) -> str:
    return part.decode(errors="replace") if isinstance(part, bytes) else str(part)


def _print_results(session: Session, latencies: list[int]) -> None:
    average = sum(latencies) / len(latencies) / 1_000_000
    ordered = sorted(latency // 1_000_000 for latency in latencies)
    percentiles = {
        name: ordered[int(len(ordered) * part)] for name, part in (("50th", 0.5), ("99th", 0.99), ("99.9th", 0.999))
    }
    session.report.line(f"Avg latency: {average:.4f} ms")
    session.report.line("Percentiles: " + ", ".join(f"{name} = {value}" for name, value in percentiles.items()))
    session.report.data({"records": len(latencies), "latencyAvgMs": average, "latencyMs": percentiles})
