"""A pipeline as its file declares it, read and checked: sources, transforms, sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.pipeline.schedule import Trigger

PROGRESS_TOPIC = "__pipeline_progress"
TYPED_FORMATS = ("json", "avro")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How long to wait for records that are late by their own clock."""

    column: str
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Topics to read, and what their records mean."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    format: str = "json"
    schema: str = ""
    avro_schema: str = ""
    avro_framing: str = ""
    starting: str | int | Mapping[str, Mapping[str, int]] = "earliest"
    """`earliest`, `latest`, `group`, milliseconds since 1970, or offsets by topic and partition."""
    watermark: Watermark | None = None
    deduplicate: tuple[str, ...] = ()
    drop_repeats_within: int | None = None
    """How many records of a partition a repeat may be away from the first; None if repeats stay."""
    require: tuple[str, ...] = ()
    group: str = ""
    max_records_per_batch: int | None = None
    fail_on_data_loss: bool = True
    dead_letter: str = ""
    """The topic for what cannot be read or does not fulfil `require`; empty if such records are dropped."""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def can_fail(self) -> bool:
        """Whether a record of this source can be bad at all."""
        return self.format in TYPED_FORMATS or bool(self.require)

    @property
    def has_dead_letters(self) -> bool:
        """Whether a query of its own carries the bad records away."""
        return self.can_fail and bool(self.dead_letter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """A step between sources and sinks: SQL over named inputs, or a Python function."""

    name: str
    inputs: tuple[str, ...]
    sql: str = ""
    python: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    deduplicate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where the rows of a step go; `kind` is the key that says where: topic, parquet, console or jdbc."""

    name: str
    step: str
    kind: str
    target: str
    mode: str = "append"
    trigger: Trigger
    key: str = ""
    value: str | tuple[str, ...] = ()
    format: str = "json"
    headers: str = ""
    timestamp: str = ""
    exactly_once: bool = False
    partition_by: tuple[str, ...] = ()
    compact: bool = False
    compact_after_ms: int = 0
    table: str = ""
    rows: int = 20
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One pipeline file."""

    name: str
    file: Path
    brokers: str = ""
    checkpoint: str = ""
    """Where the queries keep what they have done; empty: in the state directory."""
    trigger: Trigger
    properties: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    progress_topic: str = PROGRESS_TOPIC
    sources: Mapping[str, Source]
    transforms: Mapping[str, Transform]
    sinks: Mapping[str, Sink]
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict, compare=False)

    @property
    def directory(self) -> Path:
        """Where the file lies: paths and Python modules are looked for from here."""
        return self.file.parent

    def path(self, target: str) -> str:
        """A path of the file as Spark needs it: an address stays, anything else is seen from the file."""
        return target if "://" in target else str((self.directory / target).absolute())

    def inputs_of(self, step: str) -> tuple[str, ...]:
        """What a step reads directly; nothing if it is a source."""
        return self.transforms[step].inputs if step in self.transforms else ()

    def sources_of(self, step: str) -> tuple[str, ...]:
        """The sources a step stands on, each once, in their order of use."""
        if step in self.sources:
            return (step,)
        return tuple(dict.fromkeys(name for one in self.inputs_of(step) for name in self.sources_of(one)))
