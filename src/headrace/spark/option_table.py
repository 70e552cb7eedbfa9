"""Every option of the data source: the names of Spark's Kafka connector, and a few of our own.

Names are case-insensitive, because Spark may hand them on in lower case. One that nobody knows is an error that names
the nearest known one; so is a `kafka.` property that no Kafka client has. `source_options` and `sink_options` check
everything that can be checked without asking a broker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from headrace.client.fault import BadOption, UnknownOption
from headrace.client.option_table import BY_DOTTED_NAME, ENGINE_NAMES
from headrace.client.options import ConnectionOptions, connection_options
from headrace.spark.positions import (
    EARLIEST,
    LATEST,
    Kind,
    Position,
    Subscription,
    everywhere,
    parse_assignment,
    parse_names,
    parse_offsets,
    parse_pattern,
    parse_timestamp,
    parse_timestamps,
)

SOURCE, SINK = "source", "sink"
_R, _W, _RW = frozenset({SOURCE}), frozenset({SINK}), frozenset({SOURCE, SINK})
KAFKA = "kafka."
PREFIX = "headrace-spark"
"""How transactional ids begin, unless one says otherwise."""
REPEATS_WITHIN_MAX = 100_000
"""How far back repeats may be looked for: what a task remembers of each partition takes 13 MB then."""
VALUE_FORMATS = ("binary", "string", "json", "avro")
_ISOLATION = {"read_committed": True, "read_uncommitted": False}
_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option: who takes it, how its text is read, and what it is if it is not given."""

    name: str
    sides: frozenset[str]
    convert: Callable[[str, str], Any]
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a reader goes by."""

    connection: ConnectionOptions
    subscription: Subscription
    starting: Position
    ending: Position
    by_timestamp_or_latest: bool
    """Whether a partition with no record after the starting time is read from its end; otherwise it is an error."""
    fail_on_data_loss: bool
    offsets_max: int | None
    offsets_min: int | None
    trigger_delay_max_ms: int
    partitions_min: int | None
    partition_records_max: int | None
    tasks_max: int | None
    repeats_within: int | None
    """How many offsets a record may be away from an equal one before it to be left out; None: all are read."""
    drop_where: str
    """A condition (conditions.py) on rows that are left out; empty: none is."""
    include_headers: bool
    commit_group: str
    value_format: str
    value_options: Mapping[str, str]
    """What the value reader goes by: avroSchema, avroFraming, columnNameOfCorruptRecord."""
    is_committed_only: bool
    fetch_bytes_max: int
    partition_bytes_max: int
    fetch_wait_max_ms: int
    patience_s: float
    """How long a cluster that does not answer is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What a writer goes by."""

    connection: ConnectionOptions
    properties: Mapping[str, str] = field(default_factory=dict)
    """What stood after `kafka.`: acks, compression.type, linger.ms and the like."""
    topic: str = ""
    include_headers: bool = False
    exactly_once: bool = False
    transactional_id_prefix: str = PREFIX
    checkpoint_location: str = ""


# --- how texts are read


def _text(_: str, text: str) -> str:
    return text


def _flag(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in {"true", "false"}:
        raise BadOption(f"{name}={text} is neither true nor false")
    return word == "true"


def _positive(name: str, text: str) -> int:
    stripped = text.strip()
    if not stripped.isdecimal() or not 0 < int(stripped) < 2**63:
        raise BadOption(f"{name}={text} is not a number above 0")
    return int(stripped)


def _within(name: str, text: str) -> int:
    number = _positive(name, text)
    if number > REPEATS_WITHIN_MAX:
        raise BadOption(f"{name}={text} is more than {REPEATS_WITHIN_MAX}", "Repeats come soon, or use a state.")
    return number


def _duration_ms(name: str, text: str) -> int:
    match = re.fullmatch(r"\s*(\d{1,12})\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS_MS:
        raise BadOption(f"{name}={text} is not a duration", "Write, for instance, 500ms, 30s, 15m or 1h.")
    return int(match[1]) * _UNITS_MS[match[2]]


def _one_of(*words: str) -> Callable[[str, str], str]:
    def convert(name: str, text: str) -> str:
        word = text.strip().lower()
        if word not in words:
            raise BadOption(f"{name}={text} is unknown", f"Use one of {', '.join(words)}.")
        return word

    return convert


# --- the table


def _option(
    name: str, sides: frozenset[str], convert: Callable[[str, str], Any] = _text, default: Any = None
) -> Option:
    return Option(name=name, sides=sides, convert=convert, default=default)


_ROWS = (
    # what is read
    _option("subscribe", _R, parse_names),
    _option("subscribePattern", _R, parse_pattern),
    _option("assign", _R, parse_assignment),
    # from where, to where
    _option("startingOffsets", _R, parse_offsets),
    _option("startingTimestamp", _R, parse_timestamp),
    _option("startingOffsetsByTimestamp", _R, parse_timestamps),
    _option("startingOffsetsByTimestampStrategy", _R, _one_of("error", "latest"), "error"),
    _option("endingOffsets", _R, parse_offsets),
    _option("endingTimestamp", _R, parse_timestamp),
    _option("endingOffsetsByTimestamp", _R, parse_timestamps),
    _option("failOnDataLoss", _R, _flag, default=True),
    # how much at once
    _option("maxOffsetsPerTrigger", _R, _positive),
    _option("minOffsetsPerTrigger", _R, _positive),
    _option("maxTriggerDelay", _R, _duration_ms, 15 * 60_000),
    _option("minPartitions", _R, _positive),
    _option("maxRecordsPerPartition", _R, _positive),
    _option("maxTasks", _R, _positive),
    # what comes of it
    _option("dropRepeatsWithin", _R, _within),
    # For pipelines: a condition of conditions.py.
    _option("dropWhere", _R, default=""),
    _option("includeHeaders", _RW, _flag, default=False),
    _option("valueFormat", _R, _one_of(*VALUE_FORMATS), "binary"),
    _option("avroSchema", _R),
    _option("avroFraming", _R, _one_of("none", "confluent")),
    _option("columnNameOfCorruptRecord", _R),
    _option("commitGroup", _R, default=""),
    # patience
    _option("kafkaConsumer.pollTimeoutMs", _R, _positive, 120_000),
    # writing
    _option("topic", _W, default=""),
    _option("exactlyOnce", _W, _flag, default=False),
    _option("transactionalIdPrefix", _W, default=PREFIX),
    _option("checkpointLocation", _W, default=""),
    # What Spark itself or its connector goes by, and we need not.
    _option("queryName", _W),
    _option("path", _RW),
    _option("groupIdPrefix", _R),
    _option("fetchOffset.numRetries", _R, _positive),
    _option("fetchOffset.retryIntervalMs", _R, _positive),
    _option("partition.metadata.cache.ttl.ms", _R, _positive),
)

OPTIONS: Mapping[str, Option] = {row.name.lower(): row for row in _ROWS}

FORBIDDEN = {
    "auto.offset.reset": "Say startingOffsets instead.",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint; commitGroup shows them as a group's too.",
    "group.instance.id": "Nothing joins a group here; commitGroup shows the progress as a group's.",
    "interceptor.classes": "There is no Java client to intercept.",
    "key.deserializer": "Keys are columns: cast them.",
    "key.serializer": "Keys are columns: cast them.",
    "value.deserializer": "Say valueFormat instead.",
    "value.serializer": "Values are columns: cast them, or use to_json.",
}
"""Properties of Kafka's clients that make no sense here, and what to do instead."""

_TYPED_PROPERTIES: Mapping[str, tuple[Callable[[str, str], Any], Any]] = {
    "isolation.level": (_one_of(*_ISOLATION), "read_committed"),
    "fetch.max.bytes": (_positive, 32 * 1024 * 1024),
    "max.partition.fetch.bytes": (_positive, 4 * 1024 * 1024),
    "fetch.max.wait.ms": (_positive, 500),
}
_JAVA_ONLY = frozenset(
    {
        "auto.include.jmx.reporter",
        "enable.metrics.push",
        "exclude.internal.topics",
        "metadata.max.idle.ms",
        "metric.reporters",
        "partitioner.class",
        "retry.backoff.max.ms",
        "security.providers",
        "sasl.mechanism",
        "ssl.keystore.type",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
    }
)
_PROPERTIES = frozenset({*BY_DOTTED_NAME, *ENGINE_NAMES, *_JAVA_ONLY, *_TYPED_PROPERTIES})


# --- what is handed out


def check_names(given: Mapping[str, str]) -> None:
    """Refuse names that neither the source nor the sink knows, with the nearest one that is known."""
    for name in given:
        _check_name(name)


def source_options(given: Mapping[str, str], *, is_stream: bool | None = None) -> SourceOptions:
    """The options of a batch or streaming read, or of one of which Spark has not said yet what it will be."""
    own, properties = _sorted_out(given, SOURCE)
    starting = _position(own, ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"))
    ending = _position(own, ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"))
    _check_positions(starting, ending, is_stream=is_stream)
    _check_group(starting, own["commitGroup"])
    typed = {name: convert(KAFKA + name, properties.get(name, str(default)))
             for name, (convert, default) in _TYPED_PROPERTIES.items()}  # fmt: skip
    _check_order(own, "minOffsetsPerTrigger", "maxOffsetsPerTrigger")
    _check_order(own, "minPartitions", "maxTasks")
    return SourceOptions(
        connection=_connection(properties),
        subscription=_subscription(own),
        starting=starting or everywhere("startingOffsets", LATEST if is_stream else EARLIEST),
        ending=ending or everywhere("endingOffsets", LATEST),
        by_timestamp_or_latest=own["startingOffsetsByTimestampStrategy"] == "latest",
        fail_on_data_loss=own["failOnDataLoss"],
        offsets_max=own["maxOffsetsPerTrigger"],
        offsets_min=own["minOffsetsPerTrigger"],
        trigger_delay_max_ms=own["maxTriggerDelay"],
        partitions_min=own["minPartitions"],
        partition_records_max=own["maxRecordsPerPartition"],
        tasks_max=own["maxTasks"],
        repeats_within=own["dropRepeatsWithin"],
        drop_where=own["dropWhere"],
        include_headers=own["includeHeaders"],
        commit_group=own["commitGroup"],
        value_format=own["valueFormat"],
        value_options={
            name: own[name] for name in ("avroSchema", "avroFraming", "columnNameOfCorruptRecord") if own[name]
        },
        is_committed_only=_ISOLATION[typed["isolation.level"]],
        fetch_bytes_max=typed["fetch.max.bytes"],
        partition_bytes_max=typed["max.partition.fetch.bytes"],
        fetch_wait_max_ms=typed["fetch.max.wait.ms"],
        patience_s=own["kafkaConsumer.pollTimeoutMs"] / 1000,
    )


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """The options of a batch or streaming write."""
    own, properties = _sorted_out(given, SINK)
    return SinkOptions(
        connection=_connection(properties),
        properties=properties,
        topic=own["topic"],
        include_headers=own["includeHeaders"],
        exactly_once=own["exactlyOnce"],
        transactional_id_prefix=own["transactionalIdPrefix"],
        checkpoint_location=own["checkpointLocation"],
    )


def _sorted_out(given: Mapping[str, str], side: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Options by their own names, with defaults, and what stood after `kafka.`."""
    own = {row.name: row.default for row in _ROWS if side in row.sides}
    properties: dict[str, str] = {}
    for name, text in given.items():
        _check_name(name)
        lowered = name.lower()
        if lowered.startswith(KAFKA):
            properties[lowered.removeprefix(KAFKA)] = str(text)
            continue
        row = OPTIONS[lowered]
        if side in row.sides:
            own[row.name] = row.convert(row.name, str(text))
        else:
            raise UnknownOption(f"{row.name} is no option for {_DOING[side]}", f"It is one for {_DOING[_OTHER[side]]}.")
    return own, properties


_DOING = {SOURCE: "reading", SINK: "writing"}
_OTHER = {SOURCE: SINK, SINK: SOURCE}


def _check_name(name: str) -> None:
    lowered = name.lower()
    if lowered in OPTIONS:
        return
    if not lowered.startswith(KAFKA):
        # A Kafka property without its prefix is the likeliest slip.
        if lowered in _PROPERTIES:
            raise UnknownOption(f"{name} is no option of the data source", f"Did you mean {KAFKA}{lowered}?")
        raise UnknownOption(f"{name} is no option of the data source", f"Did you mean {_nearest(lowered)}?")
    bare = lowered.removeprefix(KAFKA)
    if bare in FORBIDDEN:
        raise BadOption(f"{name} cannot be set here", FORBIDDEN[bare])
    if bare not in _PROPERTIES:
        raise UnknownOption(f"{name} is no property of Kafka's clients", f"Did you mean {KAFKA}{_near(bare)}?")


def _nearest(lowered: str) -> str:
    (found,) = get_close_matches(lowered, (*OPTIONS, KAFKA + "bootstrap.servers"), n=1, cutoff=0.0)
    return OPTIONS[found].name if found in OPTIONS else found


def _near(bare: str) -> str:
    return get_close_matches(bare, sorted(_PROPERTIES), n=1, cutoff=0.0)[0]


def _connection(properties: Mapping[str, str]) -> ConnectionOptions:
    if not properties.get("bootstrap.servers"):
        raise BadOption("kafka.bootstrap.servers is missing", "Say where a broker is, for instance localhost:9092.")
    return connection_options("", {"client.id": "headrace-spark", **properties})


def _subscription(own: Mapping[str, Any]) -> Subscription:
    names = ("subscribe", "subscribePattern", "assign")
    found = [own[name] for name in names if own[name] is not None]
    if len(found) != 1:
        problem = "No topic is given" if not found else "More than one of subscribe, subscribePattern and assign is set"
        raise BadOption(problem, f"Set one of {', '.join(names)}.")
    chosen: Subscription = found[0]
    return chosen


def _position(own: Mapping[str, Any], names: tuple[str, ...]) -> Position | None:
    """The first that is set, in the connector's order of precedence."""
    return next((own[name] for name in names if own[name] is not None), None)


def _check_positions(starting: Position | None, ending: Position | None, *, is_stream: bool | None) -> None:
    if is_stream and ending is not None:
        raise BadOption(
            f"{ending.option} cannot be set for a stream", "A stream has no end; use trigger(availableNow)."
        )
    if is_stream is False and starting is not None and (starting.kind, starting.mark) == (Kind.EVERYWHERE, LATEST):
        raise BadOption("startingOffsets=latest reads nothing in a batch", "Use earliest, offsets, or a stream.")
    if ending is None:
        return
    if ending.kind is Kind.GROUP:
        raise BadOption(f"{ending.option} cannot be group", "Use latest or offsets.")
    marks = (ending.mark,) if ending.kind is Kind.EVERYWHERE else ending.marks.values()
    if EARLIEST in marks:
        raise BadOption(f"{ending.option} cannot be the earliest", "Use latest (-1) or offsets.")


def _check_order(own: Mapping[str, Any], least: str, most: str) -> None:
    if own[least] and own[most] and own[least] > own[most]:
        raise BadOption(f"{least}={own[least]} is above {most}={own[most]}", "Nothing could satisfy both.")


def _check_group(starting: Position | None, group: str) -> None:
    if starting is not None and starting.kind is Kind.GROUP and not group:
        raise BadOption("startingOffsets=group needs to know which group", "Set commitGroup to its name.")
