"""The steps of a pipeline as a graph: what refers to what, in which order, and what cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.fault import Mistake
from headrace.pipeline.toml_lines import line_of

DEAD_LETTERS = "dead_letters."
"""What the name of a query for dead letters begins with; a sink's name has no dot."""


def graph_mistakes(pipeline: Pipeline, text: str) -> Iterator[Mistake]:
    """What is wrong between the steps: names used twice, names nobody has, circles, steps nobody needs."""
    wrong_names = list(_wrong_names(pipeline, text))
    yield from wrong_names
    if not wrong_names:
        yield from _wrong_ways(pipeline)


def _wrong_names(pipeline: Pipeline, text: str) -> Iterator[Mistake]:
    lines = dict(pipeline.lines)
    for name in pipeline.transforms:
        if name in pipeline.sources:
            at = line_of(lines, "transform", name)
            yield Mistake(at, f"'{name}' is the name of a source already. Choose another for the transform.")
    known = [*pipeline.sources, *pipeline.transforms]
    for name, one in pipeline.transforms.items():
        for given in one.inputs:
            if given not in known:
                key = "inputs" if ("transform", name, "inputs") in lines else "sql"
                line = _find(text, given, line_of(lines, "transform", name, key))
                yield Mistake(
                    line, f"Transform '{name}' reads '{given}', which is not declared. {_meant(given, known)}"
                )
    for name, sink in pipeline.sinks.items():
        if sink.step not in known:
            line = line_of(lines, "sink", name, "from")
            yield Mistake(line, f"Sink '{name}' takes '{sink.step}', which is not declared. {_meant(sink.step, known)}")


def _wrong_ways(pipeline: Pipeline) -> Iterator[Mistake]:
    lines = dict(pipeline.lines)
    circle = _circle(pipeline)
    if circle:
        line = line_of(lines, "transform", circle[0])
        yield Mistake(line, f"The transforms {' -> '.join(circle)} wait for each other. Break the circle.")
        return
    for name, one in pipeline.transforms.items():
        unmarked = [source for source in pipeline.sources_of(name) if pipeline.sources[source].watermark is None]
        if one.deduplicate and unmarked:
            at = line_of(lines, "transform", name, "deduplicate")
            yield Mistake(at, f"Transform '{name}' needs a watermark of source '{unmarked[0]}' to deduplicate.")
    needed = set(steps_in_order(pipeline))
    for kind, steps in (("source", pipeline.sources), ("transform", pipeline.transforms)):
        for name in steps:
            if name not in needed:
                at = line_of(lines, kind, name)
                yield Mistake(at, f"Nobody takes what {kind} '{name}' gives. Use it in a sink, or leave it out.")


def steps_in_order(pipeline: Pipeline) -> list[str]:
    """The sources and transforms that sinks need, each after what it reads."""
    found: dict[str, None] = {}

    def visit(step: str) -> None:
        if step not in found:
            for one in pipeline.inputs_of(step):
                visit(one)
            found[step] = None

    for sink in pipeline.sinks.values():
        visit(sink.step)
    return list(found)


def query_names(pipeline: Pipeline) -> list[str]:
    """The names of all queries: one per sink, one per source with dead letters."""
    letters = [DEAD_LETTERS + name for name, source in pipeline.sources.items() if source.has_dead_letters]
    return [*pipeline.sinks, *letters]


def sources_of_query(pipeline: Pipeline, query: str) -> tuple[str, ...]:
    """The sources a query reads."""
    if query.startswith(DEAD_LETTERS):
        return (query.removeprefix(DEAD_LETTERS),)
    return pipeline.sources_of(pipeline.sinks[query].step)


def _circle(pipeline: Pipeline) -> list[str]:
    """The names on a circle, the first one again at the end; nothing if there is none."""
    done: set[str] = set()

    def visit(step: str, path: list[str]) -> list[str]:
        if step in path:
            return [*path[path.index(step) :], step]
        if step in done:
            return []
        for one in pipeline.inputs_of(step):
            found = visit(one, [*path, step])
            if found:
                return found
        done.add(step)
        return []

    return next((circle for step in pipeline.transforms if (circle := visit(step, []))), [])


def _meant(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"Did you mean '{near[0]}'?" if near else f"Declared are: {', '.join(known) or 'none'}."


def _find(text: str, word: str, first: int) -> int:
    """The line at or after `first` that has the word in it: a statement may have many lines."""
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    for number, line in enumerate(text.splitlines()[first - 1 :], first):
        if pattern.search(line):
            return number
    return first
