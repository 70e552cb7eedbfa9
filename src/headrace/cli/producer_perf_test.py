"""kafka-producer-perf-test: how fast records go in, and how long each waits for its acknowledgement."""

from __future__ import annotations

import random
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any

from headrace.cli.java_numbers import fixed, ratio
from headrace.cli.librdkafka import Complaints, engine, engine_settings, make
from headrace.cli.perf_metrics import STATISTICS_MS, Metrics
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.cli.topic_lookup import await_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.cli.session import Session

_GONE = "has been deprecated and will be removed in a future version."
PAYLOADS = ("record-size", "payload-file", "payload-monotonic")
SAMPLES_MAX = 500_000
TRANSACTION_MS = 3000
DISTINCT_PAYLOADS = 256
"""How many random payloads are made beforehand; making one per record would measure the making."""
_MIB = 1024 * 1024
_POLL_EVERY = 100
_TRANSACTION_S = 60.0

TOOL = Tool(
    name="kafka-producer-perf-test",
    summary="This tool is used to verify the producer performance.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="topic", argument="topic", help="REQUIRED: The topic to send to."),
        Option(name="num-records", argument="count", help="REQUIRED: How many records to send."),
        Option(name="throughput", argument="records/s", help="REQUIRED: The most to send in a second; -1: no limit."),
        Option(name="record-size", argument="bytes", help="How large a record is."),
        Option(name="payload-file", argument="file", help="Records to choose from, as text."),
        Option(
            name="payload-delimiter", argument="text", default="\\n", help="What stands between the file's records."
        ),
        Option(name="payload-monotonic", help="Records that are numbers, each one more than the one before."),
        Option(name="command-property", argument="prop", takes_many=True, help="Producer settings, name=value ..."),
        Option(
            name="producer-props",
            argument="prop",
            takes_many=True,
            replaced_by="command-property",
            warning=f"Option --producer-props {_GONE} Use --command-property instead.",
            conflict="--command-property and --producer-props cannot be specified together.",
            help="Producer settings.",
        ),
        Option(
            name="producer.config",
            argument="file",
            replaced_by="command-config",
            warning=f"Option --producer.config {_GONE} Use --command-config instead.",
            conflict="--command-config and --producer.config cannot be specified together.",
            help="Producer settings.",
        ),
        Option(name="print-metrics", help="Print the client's own numbers at the end."),
        Option(name="transactional-id", argument="id", help="Send in transactions of this id."),
        Option(name="transaction-duration-ms", argument="ms", help="Send in transactions that last so long."),
        Option(name="warmup-records", argument="count", default="0", help="Records that count apart, as a warm-up."),
        Option(name="reporting-interval", argument="ms", default="5000", help="How often to tell how it goes."),
    ),
    examples=(
        (
            "A million small records, as fast as they go",
            "--topic trucks_gps --num-records 1000000 --record-size 100 --throughput -1",
        ),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, streams=True)


def _check(values: Values) -> None:
    for name in ("topic", "num-records", "throughput"):
        if not values.has(name):
            raise UsageError(f"argument --{name} is required")
    typed = [name for name in PAYLOADS if values.has(name)]
    if len(typed) > 1:
        raise UsageError(f"argument --{typed[1]}: not allowed with argument --{typed[0]}")
    if not typed:
        raise UsageError("one of the arguments --record-size --payload-file --payload-monotonic is required")
    for name in ("num-records", "record-size", "transaction-duration-ms", "reporting-interval"):
        number = values.number(name)
        if number is not None and number <= 0:
            raise UsageError(f"--{name} should be greater than zero.")
    if (values.number("warmup-records") or 0) >= (values.number("num-records") or 0):
        raise UsageError(
            "The value for --warmup-records must be strictly fewer than the number of records in the test, "
            "--num-records."
        )
    _throughput(values)


def _throughput(values: Values) -> float:
    text = values.require("throughput")
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"argument --throughput: could not convert '{text}' to Double") from None


async def _run(session: Session) -> int:
    values = session.values
    properties = session.properties()
    bootstrap = values.get("bootstrap-server") or properties.get("bootstrap.servers")
    if not bootstrap:
        raise UsageError(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified."
        )
    payload = _payloads(values)
    topic = values.require("topic")
    await await_topic(session, topic, properties)
    run = Run(session, _with_defaults(values, properties), payload)
    return run.to_the_end()


def _with_defaults(values: Values, properties: dict[str, str]) -> dict[str, str]:
    """The producer's settings, with those of Java's producer where nobody says otherwise."""
    found = dict(properties)
    found.setdefault("client.id", "perf-producer-client")
    found.setdefault("acks", "all")
    found.setdefault("linger.ms", "5")
    found.setdefault("partitioner", "murmur2_random")
    given = values.get("transactional-id")
    if given or values.has("transaction-duration-ms") or "transactional.id" in found:
        found["transactional.id"] = given or found.get("transactional.id") or f"performance-producer-{uuid.uuid4()}"
    elif found["acks"] in {"all", "-1"}:
        found.setdefault("enable.idempotence", "true")
    return found


# --- what is sent


def _payloads(values: Values) -> Callable[[int], bytes]:
    """The payload of each record, by its number."""
    if values.has("payload-monotonic"):
        return lambda number: str(number).encode()
    chance = random.Random(0)  # noqa: S311 - the same records in every run
    size = values.number("record-size")
    if size is not None:
        made = [bytes(chance.choices(range(65, 91), k=size)) for _ in range(DISTINCT_PAYLOADS)]
        return lambda number: made[number % DISTINCT_PAYLOADS]
    lines = _payload_file(values)
    return lambda _: chance.choice(lines)


def _payload_file(values: Values) -> list[bytes]:
    import os.path
    import re

    path = values.require("payload-file")
    print(f"Reading payloads from: {os.path.abspath(path)}")  # noqa: PTH100
    try:
        with open(path, encoding="utf-8", newline="") as file:  # noqa: PTH123 - pathlib doubles the import time
            text = file.read()
    except OSError:
        text = ""
    if not text:
        raise Failure("File does not exist or empty file provided.", remedy="Check --payload-file.")
    delimiter = values.require("payload-delimiter")
    found = re.split("\n" if delimiter == "\\n" else delimiter, text)
    while len(found) > 1 and not found[-1]:
        found.pop()  # as Java's split does
    print(f"Number of records read: {len(found)}")
    return [line.encode() for line in found]


# --- numbers


class Stats:
    """Counts and latencies, of a window and of the whole run, printed as Kafka prints them."""

    def __init__(self, expected: int, *, interval_ms: int, steady: bool = False) -> None:
        self._sampling = max(expected // min(expected, SAMPLES_MAX), 1)
        self._interval_ms = interval_ms
        self._steady = steady
        self._latencies: list[int] = []
        self._started = self._window_started = time.time()
        self.count = self._bytes = self._total_ms = self._max_ms = 0
        self._window = [0, 0, 0, 0]

    def record(self, latency_ms: int, size: int, now: float) -> None:
        """Count an acknowledged record."""
        if self.count % self._sampling == 0:
            self._latencies.append(latency_ms)
        self.count += 1
        self._bytes += size
        self._total_ms += latency_ms
        self._max_ms = max(self._max_ms, latency_ms)
        window = self._window
        window[0] += 1
        window[1] += size
        window[2] += latency_ms
        window[3] = max(window[3], latency_ms)
        if (now - self._window_started) * 1000 >= self._interval_ms:
            self._print_window(now)

    def _print_window(self, now: float) -> None:
        count, size, total_ms, max_ms = self._window
        elapsed = now - self._window_started
        if self._steady:
            print("In steady state.")
        print(
            f"{count} records sent, {fixed(ratio(count, elapsed), 1)} records/sec "
            f"({fixed(ratio(size / _MIB, elapsed), 2)} MB/sec), {fixed(ratio(total_ms, count), 1)} ms avg latency, "
            f"{float(max_ms):.1f} ms max latency.",
            flush=True,
        )
        self._window_started = now
        self._window = [0, 0, 0, 0]

    def summary(self) -> dict[str, Any]:
        """The run's numbers."""
        elapsed = time.time() - self._started
        ordered = sorted(self._latencies) or [0]
        percentiles = {
            name: ordered[min(int(part * len(ordered)), len(ordered) - 1)]
            for name, part in (("50th", 0.5), ("95th", 0.95), ("99th", 0.99), ("99.9th", 0.999))
        }
        return {
            "records": self.count,
            "recordsPerSecond": ratio(self.count, elapsed),
            "megabytesPerSecond": ratio(self._bytes / _MIB, elapsed),
            "latencyAvgMs": ratio(self._total_ms, self.count),
            "latencyMaxMs": self._max_ms,
            "latencyMs": percentiles,
        }

    def total_line(self) -> str:
        """The last line."""
        found = self.summary()
        percentiles = ", ".join(f"{value} ms {name}" for name, value in found["latencyMs"].items())
        return (
            f"{found['records']}{' steady state' if self._steady else ''} records sent, "
            f"{fixed(found['recordsPerSecond'], 6)} records/sec ({fixed(found['megabytesPerSecond'], 2)} MB/sec), "
            f"{fixed(found['latencyAvgMs'], 2)} ms avg latency, {float(found['latencyMaxMs']):.2f} ms max latency, "
            f"{percentiles}."
        )


# --- the run


class Run:
    """One test."""

    def __init__(self, session: Session, properties: dict[str, str], payload: Callable[[int], bytes]) -> None:
        values = session.values
        self._session = session
        self._payload = payload
        self._topic = values.require("topic")
        self._count = values.number("num-records") or 0
        self._warmup = values.number("warmup-records") or 0
        self._throughput = _throughput(values)
        self._metrics = Metrics()
        self._in_transactions = "transactional.id" in properties
        self._transaction_s = (values.number("transaction-duration-ms") or TRANSACTION_MS) / 1000
        interval_ms = values.number("reporting-interval") or 0
        self._stats = Stats(self._count, interval_ms=interval_ms)
        self._steady: Stats | None = None
        self._interval_ms = interval_ms
        self._failed = 0
        settings = {**engine_settings(session, properties), "error_cb": Complaints()}
        if values.has("print-metrics"):
            settings |= {"statistics.interval.ms": STATISTICS_MS, "stats_cb": self._metrics}
        self._producer = make(engine().Producer, settings)

    def to_the_end(self) -> int:
        """Send everything, wait for the acknowledgements, print the numbers."""
        values, report = self._session.values, self._session.report
        if self._in_transactions:
            self._producer.init_transactions(_TRANSACTION_S)
        if self._warmup:
            print(
                f"Warmup first {self._warmup} records. Steady state results will print after the complete test summary."
            )
        self._stats = Stats(self._count, interval_ms=self._interval_ms)
        self._send_all()
        while self._producer.flush(1.0):
            pass
        report.line(self._stats.total_line())
        if self._steady is not None:
            report.line(self._steady.total_line())
        report.data({"all": self._stats.summary(), "steady": self._steady.summary() if self._steady else None})
        if values.has("print-metrics"):
            for line in self._metrics.lines():
                report.line(line)
        return 1 if self._failed else 0

    def _send_all(self) -> None:
        started = time.time()
        opened = 0.0
        for number in range(self._count):
            if self._in_transactions and not opened:
                self._producer.begin_transaction()
                opened = time.time()
            if self._warmup and number == self._warmup:
                self._steady = Stats(self._count - self._warmup, interval_ms=self._interval_ms, steady=True)
            now = self._send(self._payload(number), is_steady=number >= self._warmup > 0)
            if opened and now - opened >= self._transaction_s:
                self._producer.commit_transaction(_TRANSACTION_S)
                opened = 0.0
            if number % _POLL_EVERY == 0:
                self._producer.poll(0)
            if self._throughput > 0:
                self._throttle(number + 1, started)
        if opened:
            self._producer.commit_transaction(_TRANSACTION_S)

    def _send(self, payload: bytes, *, is_steady: bool) -> float:
        sent, size = time.time(), len(payload)

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                self._failed += 1
                print(error.str(), file=sys.stderr)
                return
            now = time.time()
            latency_ms = int((now - sent) * 1000)
            self._stats.record(latency_ms, size, now)
            if is_steady and self._steady is not None:
                self._steady.record(latency_ms, size, now)

        while True:
            try:
                self._producer.produce(self._topic, payload, on_delivery=delivered)
                return sent
            except BufferError:
                self._producer.poll(0.01)

    def _throttle(self, sent: int, started: float) -> None:
        """Wait until so many records are due; acknowledgements are served meanwhile."""
        while (ahead := started + sent / self._throughput - time.time()) > 0:
            self._producer.poll(min(ahead, 0.1))
