"""Every key a pipeline file may have: what it holds, what stands there when it is left out, and what it is for.

One table for the check of a file, for `headrace pipeline keys` and for the reference in docs/howto/pipelines.md.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.pipeline.schedule import parse_duration, parse_trigger
from headrace.spark.option_table import REPEATS_WITHIN_MAX

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
_PYTHON = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")
_STARTS = ("earliest", "latest", "group")

Check = Callable[[Any], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a value may be: in words, and as a test."""

    words: str
    holds: Check


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list) and bool(value) and all(map(_is_text, value)))


def _is_topic(value: Any) -> bool:
    return isinstance(value, str) and bool(_TOPIC.match(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _parses(parse: Callable[[str], object]) -> Check:
    def holds(value: Any) -> bool:
        try:
            parse(value)
        except (ValueError, AttributeError):
            return False
        return True

    return holds


def _is_settings(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str | int | float | bool) for one in value.values())


def _is_watermark(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"column", "delay"}:
        return False
    return _is_text(value["column"]) and DURATION.holds(value["delay"])


def _is_start(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(
            isinstance(offsets, dict) and all(part.isdigit() and isinstance(at, int) for part, at in offsets.items())
            for offsets in value.values()
        )
    return value in _STARTS or isinstance(value, dt.datetime) or _parses(dt.datetime.fromisoformat)(value)


TEXT = Kind(words="a text", holds=_is_text)
TEXTS = Kind(words="a text or a list of texts", holds=_is_texts)
TOPIC = Kind(words="a topic's name (letters, digits, dots, dashes, underscores)", holds=_is_topic)
TOPICS = Kind(
    words="a list of topic names",
    holds=lambda value: isinstance(value, list) and bool(value) and all(map(_is_topic, value)),
)
TOPIC_OR_FALSE = Kind(words="a topic's name, or false", holds=lambda value: value is False or _is_topic(value))
NUMBER = Kind(words="a whole number above 0", holds=_is_number)
FLAG = Kind(words="true or false", holds=lambda value: isinstance(value, bool))
DURATION = Kind(words="a duration such as '2 minutes'", holds=_parses(parse_duration))
TRIGGER = Kind(
    words="a trigger such as '5 seconds', 'once per minute', 'as fast as possible' or 'available now'",
    holds=_parses(parse_trigger),
)
WATERMARK = Kind(words="{ column = 'a column', delay = '2 minutes' }", holds=_is_watermark)
START = Kind(
    words="'earliest', 'latest', 'group', a time such as 2026-11-15T20:00:00Z, or offsets { topic = { 0 = 23 } }",
    holds=_is_start,
)
SETTINGS = Kind(words="a table of settings with plain values", holds=_is_settings)
TABLE = Kind(words="a table", holds=lambda value: isinstance(value, dict))
FUNCTION = Kind(words="'module:function'", holds=lambda value: isinstance(value, str) and bool(_PYTHON.match(value)))


def one_of(*choices: str) -> Kind:
    """A value out of a few."""
    return Kind(words="one of " + ", ".join(choices), holds=lambda value: value in choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a table."""

    kind: Kind
    help: str
    default: str = ""
    """What stands there when it is left out, in words."""
    is_required: bool = False


def _key(kind: Kind, text: str, default: str = "", *, required: bool = False) -> Key:
    return Key(kind=kind, help=text, default=default, is_required=required)


PIPELINE: Mapping[str, Key] = {
    "name": _key(
        Kind(
            words="a name of small letters, digits, dashes and underscores",
            holds=lambda value: isinstance(value, str) and bool(re.match(r"[a-z0-9][a-z0-9_-]{0,99}\Z", value)),
        ),
        "What `status` and `stop` call it; part of the names of groups, transactions and checkpoints.",
        required=True,
    ),
    "brokers": _key(TEXT, "Where the cluster is: host:port, ...", "as every tool finds it: the profile"),
    "checkpoint": _key(
        TEXT, "Directory or address where the queries keep what they have done.", "in Headrace's state directory"
    ),
    "trigger": _key(TRIGGER, "How often every sink looks for new records.", "1 second"),
    "dead_letter": _key(
        TOPIC_OR_FALSE, "Topic for records that cannot be read or are refused; false drops them.", "NAME_dlq"
    ),
    "progress_topic": _key(TOPIC_OR_FALSE, "Topic for progress records; false writes none.", "__pipeline_progress"),
    "properties": _key(SETTINGS, "Settings of Kafka clients, credentials included, by their Java names.", "none"),
    "spark": _key(SETTINGS, "More Spark settings.", "none"),
}

SOURCE: Mapping[str, Key] = {
    "topic": _key(TOPIC, "The topic to read; or `topics`, or `pattern`."),
    "topics": _key(TOPICS, "Several topics."),
    "pattern": _key(TEXT, "A regular expression that whole topic names match."),
    "format": _key(one_of("json", "avro", "string", "binary"), "How values are written.", "json"),
    "schema": _key(
        TEXT,
        "Columns in Spark's DDL. The fields of the value, and any of key, value, topic, partition, offset, timestamp, "
        "timestampType, headers for those of the record.",
        "key, value, topic, partition, offset, timestamp where the format is string or binary; else required",
    ),
    "avro_schema": _key(TEXT, "The writer's Avro schema: JSON, or the name of a file with it."),
    "avro_framing": _key(one_of("none", "confluent"), "What stands before each Avro value.", "none"),
    "starting": _key(START, "Where a first run begins; later ones go on where the last one stopped.", "earliest"),
    "watermark": _key(WATERMARK, "How late a record may be by its own clock; later ones are dropped and counted."),
    "deduplicate": _key(
        TEXTS, "Columns that make a record unique; needs a watermark, within which repeats are dropped."
    ),
    "drop_repeats_within": _key(
        Kind(
            words=f"a whole number from 1 to {REPEATS_WITHIN_MAX}",
            holds=lambda value: _is_number(value) and value <= REPEATS_WITHIN_MAX,
        ),
        "Leave out a record if one of the last so many of its partition has the same key and the same value. Needs "
        "no watermark and no state.",
        "none is left out",
    ),
    "require": _key(
        TEXTS, "SQL conditions a record must fulfil (null counts as no); others go to the dead-letter topic."
    ),
    "dead_letter": _key(TOPIC_OR_FALSE, "As in [pipeline], for this source."),
    "group": _key(TEXT, "Consumer group that shows the progress.", "NAME-SOURCE"),
    "max_records_per_batch": _key(NUMBER, "At most so many records per batch.", "all there are"),
    "fail_on_data_loss": _key(FLAG, "Whether records that retention deleted unread end the run.", "true"),
    "options": _key(SETTINGS, "More options of the data source `headrace`.", "none"),
}

TRANSFORM: Mapping[str, Key] = {
    "sql": _key(TEXT, "A SELECT over sources and transforms by their names; or `python`."),
    "python": _key(FUNCTION, "A function (inputs, spark, options) -> DataFrame; its module lies beside the file."),
    "inputs": _key(TEXTS, "What it reads.", "for SQL: the names after FROM and JOIN; else required"),
    "options": _key(TABLE, "What the Python function gets as `options`.", "none"),
    "deduplicate": _key(TEXTS, "As for a source, for the rows of this step alone."),
}

SINK: Mapping[str, Key] = {
    "from": _key(TEXT, "The source or transform whose rows it takes.", required=True),
    "topic": _key(TOPIC, "Write records to this topic; or `parquet`, `console`, `jdbc`."),
    "parquet": _key(TEXT, "Write Parquet files under this directory or address."),
    "console": _key(FLAG, "Print the rows."),
    "jdbc": _key(TEXT, "Write to a database at this JDBC address; the driver's jar goes into [pipeline.spark]."),
    "mode": _key(one_of("append", "update", "complete"), "Spark's output mode.", "append"),
    "trigger": _key(TRIGGER, "As in [pipeline], for this sink."),
    "key": _key(TEXT, "topic: the column that becomes the key.", "no key"),
    "value": _key(
        TEXTS, "topic: one column as it is, or a list of columns for the JSON object.", "all columns as JSON"
    ),
    "format": _key(one_of("json", "string", "binary"), "topic: how `value` is written.", "json; string for one column"),
    "headers": _key(TEXT, "topic: a column array<struct<key string, value binary>>.", "none"),
    "timestamp": _key(TEXT, "topic: the column that becomes the record's timestamp.", "the time of writing"),
    "exactly_once": _key(FLAG, "topic: each batch in transactions, once even after a crash.", "false"),
    "partition_by": _key(TEXTS, "parquet: columns, or day(column), hour(column), month(column), year(column)."),
    "compact": _key(FLAG, "parquet: merge the small files of partitions that have come to rest.", "false"),
    "compact_after": _key(DURATION, "parquet: how long nothing was written to a partition that has.", "10 minutes"),
    "table": _key(TEXT, "jdbc: the table."),
    "rows": _key(NUMBER, "console: how many rows of a batch are shown.", "20"),
    "options": _key(SETTINGS, "topic: more options of the sink `headrace`; jdbc: properties (user, password).", "none"),
}

TABLES: Mapping[str, Mapping[str, Key]] = {
    "pipeline": PIPELINE,
    "source": SOURCE,
    "transform": TRANSFORM,
    "sink": SINK,
}
NAMED = ("source", "transform", "sink")
"""The tables that hold one table per name."""

ONLY_FOR: Mapping[str, tuple[str, ...]] = {
    "topic": ("key", "value", "format", "headers", "timestamp", "exactly_once"),
    "parquet": ("partition_by", "compact", "compact_after"),
    "console": ("rows",),
    "jdbc": ("table",),
}
"""Which keys of a sink make sense for only one kind of sink."""
