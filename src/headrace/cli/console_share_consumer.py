"""kafka-console-share-consumer: records of a topic, shared with the other members of a share group (KIP-932)."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from headrace.cli.console_consumer import PRINTING, deprecated, record_format, tell_of_properties
from headrace.cli.interruption import Interruption
from headrace.cli.librdkafka import Complaints, engine, engine_settings, make
from headrace.cli.record_printer import Printer
from headrace.cli.session import run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.cli.topic_lookup import look_up
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.session import Session

GROUP = "console-share-consumer"
POLL_S = 0.2

TOOL = Tool(
    name="kafka-console-share-consumer",
    summary="This tool helps to read data from Kafka topics using share groups and outputs it to standard output.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        *PRINTING,
        Option(name="topic", argument="topic", help="REQUIRED: The topic to read."),
        Option(name="group", argument="group", default=GROUP, help="The share group to read in."),
        Option(name="reject", help="Reject records as they are read."),
        Option(name="release", help="Release records as they are read, for others to read."),
        Option(name="reject-message-on-error", help="Reject a record that cannot be printed, instead of ending."),
        Option(name="command-property", argument="prop", is_repeatable=True, help="A consumer setting, name=value."),
        deprecated("consumer-property", "command-property", "prop"),
        deprecated("consumer-config", "command-config", "file", repeatable=False),
    ),
    examples=(("Work on a topic together with others", "--bootstrap-server localhost:9092 --topic jobs --group team"),),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, streams=True)


def _check(values: Values) -> None:
    if not values.has("topic"):
        raise UsageError("--topic is a required argument")
    if values.has("reject") and values.has("release"):
        raise UsageError("At most one of --reject and --release may be specified.")
    for name in ("max-messages", "timeout-ms"):
        values.number(name)
    record_format(values)


def _group(values: Values, properties: Mapping[str, str]) -> str:
    given = (values.get("group") if values.has("group") else None, properties.get("group.id"))
    named = list(dict.fromkeys(name for name in given if name))
    if len(named) > 1:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--consumer-config') do not match. Detected group ids: {', '.join(repr(name) for name in named)}"
        )
    return named[0] if named else GROUP


async def _run(session: Session) -> int:
    values = session.values
    tell_of_properties(values)
    properties = session.properties()
    properties["group.id"] = _group(values, properties)
    properties.setdefault("client.id", GROUP)
    properties["share.acknowledgement.mode"] = "explicit"
    topic = values.require("topic")
    await look_up(session, topic)
    complaints = Complaints()
    settings = {**engine_settings(session, properties), "error_cb": complaints}
    consumer = make(engine().ShareConsumer, settings)
    with Interruption() as interruption, Printer(record_format(values), skips=False) as printer:
        try:
            consumer.subscribe([topic])
            Sharing(consumer, values, interruption).run(printer)
        finally:
            consumer.close()
            print(f"Processed a total of {printer.count} messages", file=sys.stderr)
        if values.has("enable-systest-events"):
            print("shutdown_complete")
        return interruption.exit_code or (1 if complaints.fatal else 0)


class Sharing:
    """A member of a share group at work: every record it is handed is printed and answered for."""

    def __init__(self, consumer: Any, values: Values, interruption: Interruption) -> None:
        self._consumer = consumer
        self._interruption = interruption
        self._rejects_unprintable = values.has("reject-message-on-error")
        limit, timeout_ms = values.number("max-messages"), values.number("timeout-ms")
        self._limit = limit if limit is not None and limit >= 0 else None
        self._timeout_ms = timeout_ms if timeout_ms is not None and timeout_ms >= 0 else None
        kinds = engine().AcknowledgeType
        self._reject, self._release = kinds.REJECT, kinds.RELEASE
        self._answer = kinds.ACCEPT
        if values.has("reject"):
            self._answer = kinds.REJECT
        elif values.has("release"):
            self._answer = kinds.RELEASE

    def run(self, printer: Printer) -> None:
        """Print records until it is enough."""
        quiet_since = time.monotonic()
        while not self._is_enough(printer):
            messages = self._consumer.poll(POLL_S)
            for message in messages:
                self._serve(message, printer)
            if len(messages):
                self._consumer.commit_sync(30.0)
                quiet_since = time.monotonic()
            elif self._timeout_ms is not None and (time.monotonic() - quiet_since) * 1000 > self._timeout_ms:
                print(f"No message for {self._timeout_ms} ms; ending as --timeout-ms asks.", file=sys.stderr)
                return

    def _is_enough(self, printer: Printer) -> bool:
        full = self._limit is not None and printer.count >= self._limit
        return full or bool(self._interruption) or not printer.is_heard

    def _serve(self, message: Any, printer: Printer) -> None:
        if message.error() is not None:
            print(message.error().str(), file=sys.stderr)
            return
        if self._is_enough(printer):
            # Handed to us, but more than was asked for: somebody else may have it.
            self._consumer.acknowledge(message, self._release)
            return
        try:
            printer.print([message])
        except HeadraceError as error:
            if not self._rejects_unprintable:
                raise
            print(f"Error processing message, rejecting this message: {error}", file=sys.stderr)
            self._consumer.acknowledge(message, self._reject)
            return
        self._consumer.acknowledge(message, self._answer)
