"""kafka-console-consumer: the records of topics, printed as they come."""

from __future__ import annotations

import random
import sys
import time
from typing import TYPE_CHECKING, Any

from headrace.cli.addresses import ZOOKEEPER, settle_address
from headrace.cli.interruption import Interruption
from headrace.cli.librdkafka import Complaints, engine, engine_settings, make
from headrace.cli.old_names import BROKER_LIST, FROM_BEGINING, NEW_CONSUMER, WHITELIST, adopt
from headrace.cli.points_in_time import point_in_time
from headrace.cli.property_names import tell_unknown
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.record_format import Format
    from headrace.cli.session import Session

FORMATTER_PROPERTIES = (
    "Properties of the formatter: print.timestamp, print.key, print.offset, print.epoch, print.partition, "
    "print.headers, print.value (each true or false), key.separator, line.separator, headers.separator, null.literal, "
    "key.deserializer, value.deserializer, headers.deserializer."
)
HINT = (
    "The consumer rebalance protocol (KIP-848) is production-ready! Set group.protocol=consumer to try it out. "
    "See https://kafka.apache.org/documentation/#consumer_rebalance_protocol"
)
GROUPS = 100_000
"""How many names there are for groups nobody named."""
END_WAIT_MS = "10"
BY_HAND = ("partition", "last", "since", "until")
"""Options that say which records are wanted, not how a group should share them."""


def deprecated(name: str, new: str, argument: str, *, repeatable: bool = True) -> Option:
    """An old name of the console consumers, with their wording of the warning."""
    return Option(
        name=name,
        argument=argument,
        is_repeatable=repeatable,
        replaced_by=new,
        warning=f"Option --{name} is deprecated and will be removed in a future version. Use --{new} instead.",
        conflict=f"Options --{name} and --{new} cannot be specified together.",
        help="",
    )


PRINTING = (
    Option(
        name="formatter",
        argument="class",
        default="org.apache.kafka.tools.consumer.DefaultMessageFormatter",
        help="The formatter of records.",
    ),
    Option(name="formatter-property", argument="prop", is_repeatable=True, help=FORMATTER_PROPERTIES),
    deprecated("property", "formatter-property", "prop"),
    Option(name="formatter-config", argument="file", help="A properties file for the formatter."),
    Option(
        name="format",
        argument="template",
        help=(
            "How to print a record: %t topic, %p partition, %o offset, %k key, %v (or %s) value, %h headers, "
            "%T timestamp, %K and %S the sizes of key and value, %%, and \\n \\t \\r."
        ),
    ),
    Option(name="key-deserializer", argument="class", help="The deserializer of keys."),
    Option(name="value-deserializer", argument="class", help="The deserializer of values."),
    Option(name="max-messages", argument="count", help="How many records to print; without it there is no end."),
    Option(name="timeout-ms", argument="ms", help="End when no record has come for so long."),
    Option(name="enable-systest-events", help="Print events of the consumer's life besides the records."),
)
"""What both console consumers understand."""

TOOL = Tool(
    name="kafka-console-consumer",
    summary="This tool helps to read data from Kafka topics and outputs it to standard output.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        BROKER_LIST,
        ZOOKEEPER,
        FROM_BEGINING,
        WHITELIST,
        NEW_CONSUMER,
        *PRINTING,
        Option(name="topic", argument="topic", help="The topic to read."),
        Option(name="include", argument="regex", help="The topics to read, as a regular expression."),
        Option(name="partition", argument="number", help="The one partition to read; from its end without --offset."),
        Option(
            name="offset",
            argument="offset",
            default="latest",
            help="Where to begin: a number, earliest, or latest.",
        ),
        Option(name="from-beginning", help="Begin with the earliest record, unless the group has been further."),
        Option(name="group", argument="group", help="The group to read in; one of its own without it."),
        Option(
            name="isolation-level",
            argument="level",
            default="read_uncommitted",
            help="read_committed leaves out what was not committed.",
        ),
        Option(name="skip-message-on-error", help="Leave out a record that cannot be printed, instead of ending."),
        Option(name="command-property", argument="prop", is_repeatable=True, help="A consumer setting, name=value."),
        deprecated("consumer-property", "command-property", "prop"),
        deprecated("consumer.config", "command-config", "file", repeatable=False),
        Option(name="last", argument="count", help="Begin with the last so many records."),
        Option(name="since", argument="time", help="Begin at a date, at milliseconds since 1970, or so long ago: 10m."),
        Option(name="until", argument="time", help="End at that time."),
        Option(name="exit-at-end", help="End when everything that is there has been printed."),
    ),
    examples=(
        ("Everything, and what comes", "--bootstrap-server localhost:9092 --topic trucks_gps --from-beginning"),
        ("The last ten records, with their keys", "--topic trucks_gps --last 10 --exit-at-end --format '%k: %v\\n'"),
        ("An hour of a topic, for a program", "--topic trucks_gps --since 2h --until 1h --output json"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, streams=True)


# --- what was typed


def _check(values: Values) -> None:
    adopt(
        values,
        {
            "broker-list": "bootstrap-server",
            "from-begining": "from-beginning",
            "whitelist": "include",
            "new-consumer": "",
        },
    )
    if values.has("topic") == values.has("include"):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    if values.has("partition"):
        _check_partition(values)
    elif values.has("offset"):
        raise UsageError("The partition is required when offset is specified.")
    for name in ("partition", "max-messages", "timeout-ms", "last"):
        values.number(name)
    _check_start(values)
    start_offset(values)
    for name in ("since", "until"):
        time_of(values, name)
    record_format(values)


def _check_partition(values: Values) -> None:
    if not values.has("topic"):
        raise UsageError("The topic is required when partition is specified.")
    if values.has("from-beginning") and values.has("offset"):
        raise UsageError("Options from-beginning and offset cannot be specified together.")
    if values.has("group"):
        raise UsageError("Options group and partition cannot be specified together.")


def _check_start(values: Values) -> None:
    """There is one place to begin at, and where it is named there is no group to ask."""
    named = [name for name in ("last", "since", "offset", "from-beginning") if values.has(name)]
    if len(named) > 1 and {"last", "since"} & set(named):
        raise UsageError(f"Options {named[0]} and {named[1]} cannot be specified together.")
    for name in BY_HAND:
        if values.has(name) and values.has("group"):
            raise UsageError(f"Options group and {name} cannot be specified together.")


def start_offset(values: Values) -> str:
    """Where to begin: earliest, latest or a number; UsageError in Kafka's words."""
    text = values.require("offset").lower()
    if not values.has("offset") and values.has("from-beginning"):
        return "earliest"
    if text not in {"earliest", "latest"} and not (text.isascii() and text.isdigit() and int(text) < 1 << 63):
        raise UsageError(
            f"The provided offset value '{values.require('offset')}' is incorrect. "
            "Valid values are 'earliest', 'latest', or a non-negative long."
        )
    return text


def time_of(values: Values, name: str) -> int | None:
    """A point in time that was typed."""
    text = values.get(name)
    return None if text is None else point_in_time(text, name, now_ms=round(time.time() * 1000))


def formatter_properties(values: Values) -> dict[str, str]:
    """The formatter's properties, from the file and what was typed."""
    file = values.get("formatter-config")
    found = load_properties(file) if file else {}
    for name in ("key", "value"):
        chosen = values.get(f"{name}-deserializer")
        if chosen:
            found[f"{name}.deserializer"] = chosen
    return found | values.pairs("formatter-property")


def tell_of_properties(values: Values) -> None:
    """Say which of the formatter's properties nothing comes of."""
    from headrace.cli.record_format import DESERIALIZERS, PROPERTIES

    # A deserializer has properties of its own: key.deserializer.encoding.
    tell_unknown(formatter_properties(values), PROPERTIES, prefixes=[f"{name}." for name in DESERIALIZERS])


def record_format(values: Values) -> Format:
    """How to print a record."""
    from headrace.cli import record_format as formats

    properties = formatter_properties(values)
    template = values.get("format")
    output = values.get("output") or "text"
    if template is not None:
        return formats.template_format(template, properties)
    if output != "text":
        return formats.document_format(output)
    return formats.named_format(values.require("formatter"), properties)


# --- settings of the consumer


def _group(values: Values, properties: Mapping[str, str]) -> str | None:
    """The group that was named, in one way or in several that agree."""
    named = {name: None for name in (values.get("group"), properties.get("group.id")) if name}
    if len(named) > 1:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--consumer.config') do not match. Detected group ids: {', '.join(repr(name) for name in named)}"
        )
    if named and any(values.has(name) for name in BY_HAND):
        taken = next(name for name in BY_HAND if values.has(name))
        raise UsageError(f"Options group and {taken} cannot be specified together.")
    return next(iter(named), None)


def consumer_properties(session: Session) -> dict[str, str]:
    """The consumer's settings in Java's names."""
    values = session.values
    found = session.properties()
    reset = found.get("auto.offset.reset")
    if reset and values.has("from-beginning") and reset != "earliest":
        raise Failure(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )
    group = _group(values, found)
    if group is None:
        group = f"console-consumer-{random.randrange(GROUPS)}"  # noqa: S311 - a name, not a secret
        found.setdefault("enable.auto.commit", "false")
    found["group.id"] = group
    found.setdefault("auto.offset.reset", "earliest" if values.has("from-beginning") else "latest")
    found.setdefault("client.id", "console-consumer")
    found.setdefault("allow.auto.create.topics", "true")
    if values.has("isolation-level") or "isolation.level" not in found:
        found["isolation.level"] = values.require("isolation-level")
    return found


# --- reading


async def _run(session: Session) -> int:
    from headrace.cli.record_feed import Feed, open_feed
    from headrace.cli.record_printer import Printer

    values = session.values
    settle_address(session)
    tell_of_properties(values)
    show = record_format(values)
    properties = consumer_properties(session)
    complaints = Complaints()
    settings = {**engine_settings(session, properties), "enable.partition.eof": True, "error_cb": complaints}
    if values.has("exit-at-end") or values.has("until"):
        # A broker says that there is no more only when it has waited for more.
        settings.setdefault("fetch.wait.max.ms", END_WAIT_MS)
    consumer: Any = None
    with Interruption() as interruption, Printer(show, skips=values.has("skip-message-on-error")) as printer:
        feed: Feed | None = None
        try:
            plan = await open_feed(session)
            if not plan.by_hand and properties.get("group.protocol", "classic").lower() == "classic":
                print(HINT, file=sys.stderr)
            consumer = make(engine().Consumer, settings)
            feed = Feed(consumer, plan, complaints, interruption)
            feed.run(printer)
        finally:
            if consumer is not None:
                consumer.close()
            print(f"Processed a total of {printer.count} messages", file=sys.stderr)
        if values.has("enable-systest-events"):
            print("shutdown_complete")
        return interruption.exit_code or (1 if complaints.fatal else 0)
