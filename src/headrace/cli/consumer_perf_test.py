"""kafka-consumer-perf-test: how fast records come out."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from headrace.cli.addresses import ZOOKEEPER, settle_address
from headrace.cli.interruption import Interruption
from headrace.cli.java_numbers import fixed, java_date, ratio
from headrace.cli.librdkafka import Complaints, engine, engine_settings, make
from headrace.cli.old_names import BROKER_LIST, adopt
from headrace.cli.perf_metrics import STATISTICS_MS, Metrics
from headrace.cli.session import run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

_MIB = 1024 * 1024
_POLL_S = 0.1
_BATCH = 10_000
_FETCHING = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
_READ = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
HEADER = f"start.time, end.time, {_READ}{_FETCHING}"
DETAILED_HEADER = f"time, threadId, {_READ}{_FETCHING}"

TOOL = Tool(
    name="kafka-consumer-perf-test",
    summary="This tool is used to verify the consumer performance.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        BROKER_LIST,
        ZOOKEEPER,
        Option(name="topic", argument="topic", help="The topic to read."),
        Option(name="include", argument="regex", help="The topics to read, as a regular expression."),
        Option(name="num-records", argument="count", help="REQUIRED: How many records to read."),
        Option(
            name="messages",
            argument="count",
            replaced_by="num-records",
            warning="Warning: --messages is deprecated. Use --num-records instead.",
            conflict="Exactly one of the following arguments is required: [messages], [num-records]",
            help="How many records to read.",
        ),
        Option(name="group", argument="group", help="The group to read in (default: perf-consumer-<number>)."),
        Option(name="fetch-size", argument="bytes", default="1048576", help="The most to fetch of a partition."),
        Option(name="from-latest", help="Begin at the end, unless the group has been somewhere."),
        Option(name="socket-buffer-size", argument="bytes", default="2097152", help="The socket's receive buffer."),
        Option(name="command-property", argument="prop", is_repeatable=True, help="A consumer setting, name=value."),
        Option(
            name="consumer.config",
            argument="file",
            replaced_by="command-config",
            warning="Warning: --consumer.config is deprecated. Use --command-config instead.",
            help="Consumer settings.",
        ),
        Option(name="print-metrics", help="Print the client's own numbers at the end."),
        Option(name="show-detailed-stats", help="Print a row per reporting interval."),
        Option(
            name="timeout",
            argument="ms",
            is_argument_optional=True,
            default="10000",
            help="End when no record has come for so long.",
        ),
        Option(name="reporting-interval", argument="ms", default="5000", help="How often to tell how it goes."),
        Option(name="date-format", argument="pattern", default="yyyy-MM-dd HH:mm:ss:SSS", help="How to print times."),
        Option(name="hide-header", help="Do not print the names of the columns."),
        Option(name="threads", argument="count", help="", is_hidden=True),
        Option(name="num-fetch-threads", argument="count", help="", is_hidden=True),
    ),
    examples=(
        ("Read a million records", "--bootstrap-server localhost:9092 --topic trucks_gps --num-records 1000000"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, streams=True)


def _check(values: Values) -> None:
    adopt(values, {"broker-list": "bootstrap-server", "threads": "", "num-fetch-threads": ""})
    if values.has("topic") == values.has("include"):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    if not values.has("num-records"):
        raise UsageError("Exactly one of the following arguments is required: [messages], [num-records]")
    for name in ("num-records", "fetch-size", "socket-buffer-size", "timeout"):
        values.number(name)
    if (values.number("reporting-interval") or 0) <= 0:
        raise UsageError("Reporting interval must be greater than 0.")


def _properties(session: Session) -> dict[str, str]:
    values = session.values
    found = session.properties()
    found.setdefault("client.id", "perf-consumer-client")
    if values.has("group") or "group.id" not in found:
        chance = random.randrange(100_000)  # noqa: S311 - a name, not a secret
        found["group.id"] = values.get("group") or f"perf-consumer-{chance}"
    found["auto.offset.reset"] = "latest" if values.has("from-latest") else "earliest"
    found["max.partition.fetch.bytes"] = values.require("fetch-size")
    found["receive.buffer.bytes"] = values.require("socket-buffer-size")
    # Enough records in memory that the test measures the broker and not the queue.
    found.setdefault("queued.min.messages", "1000000")
    return found


async def _run(session: Session) -> int:
    from headrace.cli.record_feed import include_pattern, matching

    values, report = session.values, session.report
    metrics = Metrics()
    settle_address(session)
    if values.has("topic"):
        topics = [values.require("topic")]
        with session.waiting():
            await session.cluster.metadata(topics)
    else:
        with session.waiting():
            found = await session.cluster.metadata()
        topics = matching(include_pattern(values.require("include")), [topic.name for topic in found.topics])
    settings = {**engine_settings(session, _properties(session)), "error_cb": Complaints()}
    if values.has("print-metrics"):
        settings |= {"statistics.interval.ms": STATISTICS_MS, "stats_cb": metrics}
    is_detailed = values.has("show-detailed-stats")
    if not values.has("hide-header"):
        report.line(DETAILED_HEADER if is_detailed else HEADER)
    consumer = make(engine().Consumer, settings)
    with Interruption() as interruption:
        reading = Reading(session, consumer, interruption)
        try:
            reading.run(topics)
        finally:
            consumer.close()
        if not is_detailed:
            report.line(reading.row())
        report.data(reading.summary())
        if values.has("print-metrics"):
            for line in metrics.lines():
                report.line(line)
        return interruption.exit_code


class Reading:
    """One test: what was read, and when."""

    def __init__(self, session: Session, consumer: Any, interruption: Interruption) -> None:
        values = session.values
        self._report = session.report
        self._consumer = consumer
        self._interruption = interruption
        self._wanted = values.number("num-records") or 0
        self._timeout_ms = values.number("timeout") or 0
        self._interval_ms = values.number("reporting-interval") or 0
        self._pattern = values.require("date-format")
        self._is_detailed = values.has("show-detailed-stats")
        self._started = self._ended = self._joining_since = _now_ms()
        self._join_ms = self._round_join_ms = 0
        self._bytes = self._count = 0

    def run(self, topics: list[str]) -> None:
        """Read until there is enough, or nothing comes any more."""
        self._started = self._joining_since = reported = last = now = _now_ms()
        self._consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked)
        before = (0, 0)
        while self._count < self._wanted and now - last <= self._timeout_ms and not self._interruption:
            records = self._take()
            now = _now_ms()
            if records:
                last = now
            for key, value in records:
                self._bytes += (len(key) if key else 0) + (len(value) if value else 0)
            self._count += len(records)
            if records and now - reported >= self._interval_ms:
                if self._is_detailed:
                    self._print_progress(before, reported, now)
                self._round_join_ms = 0
                reported, before = now, (self._bytes, self._count)
        self._ended = _now_ms()
        if self._count < self._wanted and not self._interruption:
            self._report.note(
                f"WARNING: Exiting before consuming the expected number of records: timeout ({self._timeout_ms} ms) "
                "exceeded. You can use the --timeout option to increase the timeout."
            )

    def _take(self) -> list[tuple[bytes | None, bytes | None]]:
        first = self._consumer.poll(_POLL_S)
        if first is None:
            return []
        left = min(self._wanted - self._count, _BATCH) - 1
        found = [first, *(self._consumer.consume(left, 0) if left > 0 else ())]
        return [(message.key(), message.value()) for message in found if message.error() is None]

    def _assigned(self, *_: object) -> None:
        elapsed = _now_ms() - self._joining_since
        self._join_ms += elapsed
        self._round_join_ms += elapsed

    def _revoked(self, *_: object) -> None:
        self._joining_since = _now_ms()

    def _print_progress(self, before: tuple[int, int], start: int, now: int) -> None:
        elapsed_ms = now - start
        fetch_ms = elapsed_ms - self._round_join_ms
        read_mb, read = (self._bytes - before[0]) / _MIB, self._count - before[1]
        self._report.line(
            f"{java_date(now, self._pattern)}, 0, {fixed(self._bytes / _MIB, 4)}, "
            f"{fixed(ratio(1000 * read_mb, elapsed_ms), 4)}, {self._count}, "
            f"{fixed(ratio(1000 * read, elapsed_ms), 4)}, "
            f"{self._round_join_ms}, {fetch_ms}, {fixed(1000 * read_mb / fetch_ms if fetch_ms > 0 else 0, 4)}, "
            f"{fixed(1000 * read / fetch_ms if fetch_ms > 0 else 0, 4)}"
        )

    def summary(self) -> dict[str, Any]:
        """The run's numbers, in the order of Kafka's columns."""
        elapsed, fetch_ms = (self._ended - self._started) / 1000, self._ended - self._started - self._join_ms
        megabytes = self._bytes / _MIB
        return {
            "startTime": java_date(self._started, self._pattern),
            "endTime": java_date(self._ended, self._pattern),
            "megabytes": megabytes,
            "megabytesPerSecond": ratio(megabytes, elapsed),
            "records": self._count,
            "recordsPerSecond": ratio(self._count, elapsed),
            "rebalanceTimeMs": self._join_ms,
            "fetchTimeMs": fetch_ms,
            "fetchMegabytesPerSecond": ratio(megabytes, fetch_ms / 1000),
            "fetchRecordsPerSecond": ratio(self._count, fetch_ms / 1000),
        }

    def row(self) -> str:
        """The last line."""
        return ", ".join(
            fixed(value, 4) if isinstance(value, float) else str(value) for value in self.summary().values()
        )


def _now_ms() -> int:
    return round(time.time() * 1000)
