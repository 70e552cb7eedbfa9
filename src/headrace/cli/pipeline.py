"""`headrace pipeline`: data pipelines on Spark, declared in a file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.colours import BOLD, paint
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.cli.session import Session
    from headrace.pipeline.declaration import Pipeline
    from headrace.pipeline.runs import Run
    from headrace.pipeline.session import Wishes

_STOP_S = 180.0
"""How long `stop` waits: a batch may take its time, and Spark some seconds to end."""
_PAUSE_S = 0.1
_COLUMNS = ("NAME", "STATE", "PROCESS", "BROKERS", "FILE")

TOOL = Tool(
    name="headrace pipeline",
    summary="Pipelines on Spark: run FILE | validate FILE | explain FILE | list | status NAME | stop NAME | keys",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="master", short="m", argument="master", help="Where Spark runs, instead of local[*,4]."),
        Option(name="available-now", help="With run: take the records that are there now, then end."),
        Option(name="once", help="The same.", is_hidden=True),
        Option(name="spark", help="With validate: let Spark check schemas and statements too."),
    ),
    examples=(
        ("Is the file right?", "validate fleet.toml"),
        ("Run it until Ctrl-C", "run fleet.toml"),
        ("Take what is there, then end", "run fleet.toml --available-now"),
        ("What runs on this machine", "list"),
        ("End it after its batch", "stop fleet"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _run, check=_check, is_own=True)


def _check(values: Values) -> None:
    verb, *words = values.words or ["list"]
    if verb not in _VERBS:
        raise UsageError(f"'{verb}' is none of {', '.join(_VERBS)}")
    word, _ = _VERBS[verb]
    if len(words) != bool(word):
        raise UsageError(f"'{verb}' takes one {word}" if word else f"'{verb}' takes no words")


async def _run(session: Session) -> int:
    verb, *words = session.values.words or ["list"]
    return _VERBS[verb][1](session, *words)


# --- files


def _run_file(session: Session, file: str) -> int:
    pipeline = _load(file)
    _need_spark()
    from headrace.pipeline.display import display_for
    from headrace.pipeline.session import run_pipeline

    display = display_for(sys.stdout, sys.stderr, is_json=not session.report.is_text)
    return run_pipeline(pipeline, _wishes(session, pipeline), display)


def _validate(session: Session, file: str) -> int:
    pipeline = _load(file)
    if session.values.has("spark"):
        _plans(session, pipeline)
    else:
        from headrace.pipeline.modules import check_modules

        check_modules(pipeline)
    steps = (len(pipeline.sources), len(pipeline.transforms), len(pipeline.sinks))
    counted = ", ".join(f"{_plural(count, kind)}" for count, kind in zip(steps, _KINDS, strict=True))
    session.report.line(f"{file} is right: {counted}.")
    session.report.data({"file": file, "pipeline": pipeline.name, **dict(zip(_KINDS, steps, strict=True))})
    return 0


def _explain(session: Session, file: str) -> int:
    from headrace.pipeline.explanation import graph_document, graph_lines

    pipeline = _load(file)
    document: dict[str, Any] = {"pipeline": pipeline.name, "steps": graph_document(pipeline)}
    for line in graph_lines(pipeline):
        session.report.line(line)
    if session.values.has("v"):
        document["plans"] = _plans(session, pipeline)
        for step, plan in document["plans"].items():
            session.report.line(f"\n{paint(step, BOLD)}\n{plan.rstrip()}")
    session.report.data(document)
    return 0


def _load(file: str) -> Pipeline:
    from headrace.pipeline.file import load_pipeline

    return load_pipeline(Path(file))


def _plans(session: Session, pipeline: Pipeline) -> dict[str, str]:
    """Spark's plan of every sink; FileFault if Spark refuses a step."""
    _need_spark()
    from headrace.pipeline.plans import plans_of

    return plans_of(pipeline, _wishes(session, pipeline, has_no_cluster=True))


def _need_spark() -> None:
    from headrace.cli.extras import ensure_extra

    ensure_extra("spark")
    from headrace.spark.java import find_java

    find_java()


def _wishes(session: Session, pipeline: Pipeline, *, has_no_cluster: bool = False) -> Wishes:
    from headrace.pipeline.session import Wishes

    values = session.values
    brokers = values.get("bootstrap-server") or ""
    config = values.get("command-config")
    return Wishes(
        brokers=brokers or ("localhost:9092" if has_no_cluster else ""),
        properties=session.properties(),
        given=load_properties(config) if config else None,
        master=values.get("master") or "",
        is_available_now=values.has("available-now") or values.has("once"),
    )


# --- runs


def _list(session: Session) -> int:
    from headrace.pipeline.runs import known_runs

    runs = known_runs()
    rows = [_COLUMNS, *((run.name, run.state, _process(run), run.brokers, run.file) for run in runs)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    for number, row in enumerate(rows):
        line = "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        session.report.line(paint(line, BOLD) if number == 0 else line)
    session.report.data({"pipelines": [_document(run) for run in runs]})
    return 0


def _status(session: Session, name: str) -> int:
    from headrace.pipeline.progress_line import table_of_documents
    from headrace.pipeline.runs import find_run

    run = find_run(name)
    process = f" (process {run.pid})" if run.is_alive else ""
    session.report.line(f"{run.name} is {run.state}{process}: {run.file} at {run.brokers}, Spark {run.master}.")
    if run.reason:
        session.report.line(run.reason)
    for line in table_of_documents(run.queries):
        session.report.line(line)
    session.report.data(_document(run))
    return 0 if run.is_alive or run.state in {"finished", "stopped"} else 1


def _stop(session: Session, name: str) -> int:
    from headrace.pipeline.runs import ask_to_stop, find_run, is_claimed

    run = find_run(name)
    if not run.is_alive:
        raise Failure(f"The pipeline '{name}' does not run.", remedy=f"It is {run.state}.")
    ask_to_stop(name)
    deadline = time.monotonic() + _STOP_S
    while is_claimed(name):
        if time.monotonic() > deadline:
            raise Failure(
                f"The pipeline '{name}' is still in its batch after {_STOP_S:.0f} s.",
                remedy=f"It ends when the batch is done; its process is {run.pid}.",
            )
        time.sleep(_PAUSE_S)
    session.report.line(f"Stopped {name}.")
    session.report.data({"stopped": name})
    return 0


def _keys(session: Session) -> int:
    from headrace.pipeline.keys import NAMED, TABLES

    for table, keys in TABLES.items():
        session.report.line(paint(f"[{table}.NAME]" if table in NAMED else f"[{table}]", BOLD))
        width = max(map(len, keys))
        for name, key in keys.items():
            default = f" Default: {key.default}." if key.default else ""
            session.report.line(f"  {name:<{width}}  {key.help}{default}")
    session.report.data(
        {
            table: {
                name: {"is": key.kind.words, "help": key.help, "default": key.default} for name, key in keys.items()
            }
            for table, keys in TABLES.items()
        }
    )
    return 0


def _document(run: Run) -> dict[str, Any]:
    return {
        "name": run.name,
        "state": run.state,
        "reason": run.reason,
        "file": run.file,
        "bootstrapServers": run.brokers,
        "master": run.master,
        "pid": run.pid,
        "host": run.host,
        "startedMs": run.started_ms,
        "queries": list(run.queries),
    }


def _process(run: Run) -> str:
    return str(run.pid) if run.is_alive else "-"


_KINDS = ("sources", "transforms", "sinks")


def _plural(count: int, kind: str) -> str:
    return f"{count} {kind.removesuffix('s') if count == 1 else kind}"


_VERBS: dict[str, tuple[str, Callable[..., int]]] = {
    "run": ("file", _run_file),
    "validate": ("file", _validate),
    "explain": ("file", _explain),
    "list": ("", _list),
    "status": ("name", _status),
    "stop": ("name", _stop),
    "keys": ("", _keys),
}
"""The word each takes, and what does it."""
