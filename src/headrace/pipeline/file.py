"""From the text of a pipeline file to a pipeline, or to a list of mistakes, each with its line."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from headrace.pipeline import keys
from headrace.pipeline.declaration import PROGRESS_TOPIC, TYPED_FORMATS, Pipeline, Sink, Source, Transform, Watermark
from headrace.pipeline.fault import FileFault, Mistake, PipelineFault
from headrace.pipeline.graph import graph_mistakes
from headrace.pipeline.schedule import parse_duration, parse_trigger
from headrace.pipeline.sql_names import table_names
from headrace.pipeline.toml_lines import key_lines, line_of

FILE_BYTES_MAX = 1024 * 1024
"""A pipeline file is written by hand; what is larger is some other file."""
COMPACT_AFTER = "10 minutes"
_STEP_NAME = re.compile(r"[A-Za-z_]\w{0,99}\Z")
_PLACE = re.compile(r"(.*?) \(at (?:line (\d+), column \d+|end of document)\)\Z", re.DOTALL)


def load_pipeline(path: Path) -> Pipeline:
    """Read a pipeline file; FileFault lists its mistakes."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise PipelineFault(f"{path} is too large for a pipeline file.", "Name the TOML file of the pipeline.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PipelineFault(
            f"{path} cannot be read: {(error.strerror or str(error)).lower()}.", "Name the TOML file of a pipeline."
        ) from None
    except UnicodeDecodeError:
        raise PipelineFault(f"{path} is no text in UTF-8.", "Name the TOML file of a pipeline.") from None
    return parse_pipeline(text, file=path)


def parse_pipeline(text: str, *, file: Path) -> Pipeline:
    """The pipeline a text declares; FileFault lists its mistakes."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.match(str(error))
        problem, line = (found[1], found[2]) if found else (str(error), None)
        number = int(line) if line else text.count("\n") + 1
        raise FileFault(str(file), [Mistake(number, f"This is no TOML: {_lower(problem)}. Mend the line.")]) from None
    return _Reading(document, key_lines(text), text, file).pipeline()


class _Reading:
    """One file while it is read; what is wrong is noted, and told at the end all at once."""

    def __init__(self, document: Mapping[str, Any], lines: dict[tuple[str, ...], int], text: str, file: Path) -> None:
        self.document = document
        self.lines = lines
        self.text = text
        self.file = file
        self.mistakes: list[Mistake] = []

    def pipeline(self) -> Pipeline:
        self._check_tables()
        self._stop_if_wrong()
        head = self.document["pipeline"]
        trigger = parse_trigger(head.get("trigger", "1 second"))
        dead_letter = head.get("dead_letter", f"{head['name']}_dlq")
        pipeline = Pipeline(
            name=head["name"],
            file=self.file,
            brokers=head.get("brokers", ""),
            checkpoint=head.get("checkpoint", ""),
            trigger=trigger,
            properties=_plain(head.get("properties", {})),
            spark=_plain(head.get("spark", {})),
            progress_topic=head.get("progress_topic", PROGRESS_TOPIC) or "",
            sources={name: self._source(name, one, dead_letter) for name, one in self._named("source")},
            transforms={name: self._transform(name, one) for name, one in self._named("transform")},
            sinks={name: self._sink(name, one, head.get("trigger", "1 second")) for name, one in self._named("sink")},
            lines=self.lines,
        )
        self._stop_if_wrong()
        self.mistakes += graph_mistakes(pipeline, self.text)
        self._stop_if_wrong()
        return pipeline

    # --- every table against the table of keys

    def _check_tables(self) -> None:
        for name in self.document:
            if name not in keys.TABLES:
                self._wrong(f"There is no table [{name}].", _nearest(name, keys.TABLES, "Use"), name)
        if not isinstance(self.document.get("pipeline"), dict):
            self.mistakes.append(Mistake(1, "The table [pipeline] is missing. Write [pipeline] and a name below it."))
        else:
            self._check_table(("pipeline",), self.document["pipeline"])
        for kind in keys.NAMED:
            for name, table in self._named(kind):
                if not _STEP_NAME.match(name):
                    self._wrong(f"'{name}' cannot be a name.", "Use letters, digits and underscores.", kind, name)
                self._check_table((kind, name), table)
        for kind in ("source", "sink"):
            if not any(self._named(kind)):
                self._wrong(f"There is no {kind}.", f"Declare one: [{kind}.NAME].", "pipeline")

    def _check_table(self, path: tuple[str, ...], table: Any) -> None:
        known = keys.TABLES[path[0]]
        shown = f"[{'.'.join(path)}]"
        if not isinstance(table, dict):
            self._wrong(f"{shown} must be a table.", f"Write {shown} on a line of its own, its keys below.", *path)
            return
        for name, value in table.items():
            key = known.get(name)
            if key is None:
                self._wrong(f"{shown} has no key '{name}'.", _nearest(name, known, "Known are"), *path, name)
            elif not key.kind.holds(value):
                self._wrong(f"'{name}' of {shown} must be {key.kind.words}.", "Mend the value.", *path, name)
        for name, key in known.items():
            if key.is_required and name not in table:
                self._wrong(f"{shown} lacks the key '{name}'.", f"It is {key.kind.words}.", *path)

    def _named(self, kind: str) -> list[tuple[str, Any]]:
        tables = self.document.get(kind, {})
        return list(tables.items()) if isinstance(tables, dict) else [(kind, tables)]

    # --- one table each

    def _source(self, name: str, table: dict[str, Any], dead_letter: str | bool) -> Source:
        here = ("source", name)
        self._exactly_one(here, table, ("topic", "topics", "pattern"))
        kind = table.get("format", "json")
        if kind in TYPED_FORMATS and "schema" not in table:
            self._wrong(f"Source '{name}' lacks a schema.", f"Values of format {kind} need one: schema = '...'.", *here)
        if kind == "avro" and "avro_schema" not in table:
            self._wrong(f"Source '{name}' lacks avro_schema.", "Give the writer's schema, or a file with it.", *here)
        if "pattern" in table:
            self._check_pattern(here, table["pattern"])
        if "deduplicate" in table and "watermark" not in table:
            remedy = "Without one every record would have to be remembered for ever."
            self._wrong(f"Source '{name}' needs a watermark to deduplicate.", remedy, *here, "deduplicate")
        mark = table.get("watermark")
        letters = table.get("dead_letter", dead_letter)
        head = self.document["pipeline"]
        return Source(
            name=name,
            topics=(table["topic"],) if "topic" in table else tuple(table.get("topics", ())),
            pattern=table.get("pattern", ""),
            format=kind,
            schema=table.get("schema", ""),
            avro_schema=table.get("avro_schema", ""),
            avro_framing=table.get("avro_framing", ""),
            starting=_start(table.get("starting", "earliest")),
            watermark=Watermark(column=mark["column"], delay_ms=parse_duration(mark["delay"])) if mark else None,
            deduplicate=_texts(table.get("deduplicate", ())),
            drop_repeats_within=table.get("drop_repeats_within"),
            require=_texts(table.get("require", ())),
            group=table.get("group", f"{head['name']}-{name}"),
            max_records_per_batch=table.get("max_records_per_batch"),
            fail_on_data_loss=table.get("fail_on_data_loss", True),
            dead_letter=letters if isinstance(letters, str) else "",
            options=_plain(table.get("options", {})),
        )

    def _transform(self, name: str, table: dict[str, Any]) -> Transform:
        here = ("transform", name)
        self._exactly_one(here, table, ("sql", "python"))
        sql = table.get("sql", "")
        if "python" in table and "inputs" not in table:
            self._wrong(f"Transform '{name}' lacks inputs.", "Name what the function reads: inputs = ['...'].", *here)
        if sql and "options" in table:
            self._wrong(f"Transform '{name}' has options, but SQL takes none.", "Leave them out.", *here, "options")
        return Transform(
            name=name,
            inputs=_texts(table["inputs"]) if "inputs" in table else self._read_by(sql),
            sql=sql,
            python=table.get("python", ""),
            options=table.get("options", {}),
            deduplicate=_texts(table.get("deduplicate", ())),
        )

    def _sink(self, name: str, table: dict[str, Any], trigger: str) -> Sink:
        here = ("sink", name)
        kind = self._exactly_one(here, table, tuple(keys.ONLY_FOR))
        for other, only in keys.ONLY_FOR.items():
            for key in only:
                if key in table and other != kind:
                    self._wrong(f"'{key}' makes sense for {other} sinks only.", "Leave it out.", *here, key)
        if kind == "jdbc" and "table" not in table:
            self._wrong(f"Sink '{name}' lacks a table.", "Name the table of the database: table = '...'.", *here)
        if kind == "console" and table["console"] is False:
            self._wrong(f"Sink '{name}' prints nothing.", "Write console = true, or leave the sink out.", *here)
        mode = table.get("mode", "append")
        if (kind, mode) in _IMPOSSIBLE:
            self._wrong(f"A {kind} sink cannot be in mode {mode}.", _IMPOSSIBLE[kind, mode], *here, "mode")
        value = table.get("value", ())
        return Sink(
            name=name,
            step=table["from"],
            kind=kind,
            target=str(table.get(kind, "")),
            mode=mode,
            trigger=parse_trigger(table.get("trigger", trigger)),
            key=table.get("key", ""),
            value=value if isinstance(value, str) else tuple(value),
            format=table.get("format", "string" if isinstance(value, str) else "json"),
            headers=table.get("headers", ""),
            timestamp=table.get("timestamp", ""),
            exactly_once=table.get("exactly_once", False),
            partition_by=_texts(table.get("partition_by", ())),
            compact=table.get("compact", False),
            compact_after_ms=parse_duration(table.get("compact_after", COMPACT_AFTER)),
            table=table.get("table", ""),
            rows=table.get("rows", 20),
            options=_plain(table.get("options", {})),
        )

    def _read_by(self, sql: str) -> tuple[str, ...]:
        """The steps a statement reads; SQL does not mind whether letters are large or small."""
        steps = {name.lower(): name for kind in ("source", "transform") for name, _ in self._named(kind)}
        return tuple(dict.fromkeys(steps.get(name.lower(), name) for name in table_names(sql)))

    # --- mistakes

    def _check_pattern(self, here: tuple[str, ...], pattern: str) -> None:
        try:
            re.compile(pattern)
        except re.error as error:
            self._wrong(f"The pattern is no regular expression: {error}.", "Mend it.", *here, "pattern")

    def _exactly_one(self, here: tuple[str, ...], table: dict[str, Any], names: tuple[str, ...]) -> str:
        given = [name for name in names if name in table]
        if len(given) == 1:
            return given[0]
        shown = f"{here[0].capitalize()} '{here[1]}'"
        if not given:
            self._wrong(f"{shown} has none of {', '.join(names)}.", "Write one of them.", *here)
        else:
            self._wrong(f"{shown} has {' and '.join(given)}.", "Keep one of them.", *here, given[1])
        return given[0] if given else names[0]

    def _wrong(self, problem: str, remedy: str, *path: str) -> None:
        self.mistakes.append(Mistake(line_of(self.lines, *path), f"{problem} {remedy}".strip()))

    def _stop_if_wrong(self) -> None:
        if self.mistakes:
            raise FileFault(str(self.file), self.mistakes)


_IMPOSSIBLE = {
    ("parquet", "update"): "Files are only added: use append, with a watermark on the source.",
    ("parquet", "complete"): "Files are only added: use append, with a watermark on the source.",
    ("jdbc", "update"): "Use append, or complete to write the whole table anew.",
}
"""Which kinds of sinks cannot be in which mode, and what to do instead."""


def _nearest(name: str, known: Mapping[str, Any], otherwise: str) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"Did you mean '{near[0]}'?" if near else f"{otherwise} {', '.join(known)}."


def _texts(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _plain(table: Mapping[str, Any]) -> dict[str, str]:
    """Settings as texts, as Spark and the clients read them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in table.items()}


def _start(value: Any) -> Any:
    """A time becomes milliseconds; without an offset it is taken as UTC."""
    if isinstance(value, str) and value not in {"earliest", "latest", "group"}:
        value = dt.datetime.fromisoformat(value)
    if isinstance(value, dt.datetime):
        return int((value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp() * 1000)
    return value


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
