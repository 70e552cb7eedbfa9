"""A pipeline's graph as lines of text: what each step is, and what it reads."""

from __future__ import annotations

import json
from typing import Any

from headrace.pipeline.declaration import Pipeline, Sink, Source, Transform
from headrace.pipeline.graph import DEAD_LETTERS, sources_of_query, steps_in_order
from headrace.pipeline.schedule import in_words

_SQL_SHOWN = 100


def graph_document(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Every step with what it reads and what it does, in order."""
    steps = []
    for name in steps_in_order(pipeline):
        if name in pipeline.sources:
            steps.append(_step("source", name, (), describe_source(pipeline.sources[name])))
        else:
            one = pipeline.transforms[name]
            steps.append(_step("transform", name, one.inputs, describe_transform(one)))
    steps += [_step("sink", name, (one.step,), describe_sink(one)) for name, one in pipeline.sinks.items()]
    for name, source in pipeline.sources.items():
        if source.has_dead_letters:
            query = DEAD_LETTERS + name
            steps.append(_step("sink", query, sources_of_query(pipeline, query), f"topic {source.dead_letter}"))
    return steps


def graph_lines(pipeline: Pipeline) -> list[str]:
    """The same for people, in columns."""
    rows = [
        (one["kind"], one["name"], f"<- {', '.join(one['inputs'])}" if one["inputs"] else "", one["what"])
        for one in graph_document(pipeline)
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    return [
        "  ".join([*(f"{text:<{width}}" for text, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def describe_source(source: Source) -> str:
    """What a source reads, and what it makes of it."""
    where = f"pattern {source.pattern}" if source.pattern else f"topic {', '.join(source.topics)}"
    words = [where, source.format, f"from {_start(source)}", f"group {source.group}"]
    if source.watermark:
        words.append(f"late after {in_words(source.watermark.delay_ms)} by {source.watermark.column}")
    if source.deduplicate:
        words.append(f"once per {', '.join(source.deduplicate)}")
    words += [f"where {condition}" for condition in source.require]
    return "; ".join(words)


def describe_transform(transform: Transform) -> str:
    """The statement on one line, or the function."""
    sql = " ".join(transform.sql.split())
    shown = sql if len(sql) <= _SQL_SHOWN else sql[: _SQL_SHOWN - 1] + "…"
    once = f"; once per {', '.join(transform.deduplicate)}" if transform.deduplicate else ""
    return (shown or f"python {transform.python}") + once


def describe_sink(sink: Sink) -> str:
    """Where the rows go, and when."""
    words = ["console" if sink.kind == "console" else f"{sink.kind} {sink.target}"]
    if sink.table:
        words.append(f"table {sink.table}")
    if sink.key:
        words.append(f"key {sink.key}")
    if sink.partition_by:
        words.append(f"by {', '.join(sink.partition_by)}")
    if sink.exactly_once:
        words.append("exactly once")
    words += [sink.mode, str(sink.trigger) if sink.trigger.is_available_now else f"every {sink.trigger}"]
    return "; ".join(words)


def _start(source: Source) -> str:
    if isinstance(source.starting, str):
        return source.starting
    return (
        f"time {source.starting} ms" if isinstance(source.starting, int) else f"offsets {json.dumps(source.starting)}"
    )


def _step(kind: str, name: str, inputs: tuple[str, ...], what: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "inputs": list(inputs), "what": what}
