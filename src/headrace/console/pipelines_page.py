"""Pipelines: every query of every pipeline with its rate, its lag and its state; and one of them over the last hour."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from headrace.console.chart import line_chart
from headrace.console.data_pipelines import SPAN_MS, ProgressReader, QueryView
from headrace.console.data_table import Column, DataTable
from headrace.console.equivalents import Equivalent, command, curl
from headrace.console.equivalents_panel import EquivalentsPanel, code_block
from headrace.console.live import Live
from headrace.console.page import Page, Visit, named
from headrace.console.states import card, empty, figure, heading
from headrace.console.words import count, duration, moment, rate
from headrace.pipeline.declaration import PROGRESS_TOPIC
from headrace.pipeline.progress import QueryProgress

_EVERY_S = 2.0
_BATCHES_SHOWN = 100
_TWO_COLUMNS = "grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr))"


def _seconds(passed_ms: float) -> str:
    return duration(passed_ms / 1000)


_COLUMNS = (
    Column(name="query", label="Query", href=lambda row: named("/pipelines/{}/{}", row["pipeline"], row["query"])),
    Column(name="pipeline", label="Pipeline", is_wide=True),
    Column(name="state", label="State", tone=lambda row: "good" if row["state"] == "running" else "plain"),
    Column(name="rate", label="Rows", show=rate, is_number=True),
    Column(name="lag", label="Lag", show=count, is_number=True),
    Column(name="lag_ms", label="Lag in time", show=_seconds, is_number=True),
    Column(name="batch_ms", label="Batch", show=_seconds, is_number=True, is_wide=True),
    Column(name="state_rows", label="State rows", show=count, is_number=True, is_wide=True),
    Column(name="late", label="Late rows", show=count, is_number=True, is_wide=True),
    Column(name="heard", label="Last batch", show=moment, is_wide=True),
)


# --- all of them


def _build(visit: Visit) -> None:
    with heading("Pipelines", "Spark queries, as they tell of themselves after every batch"):
        pass
    reader = ProgressReader(visit.services)
    Live(reader.read, partial(_show, visit), every_s=_EVERY_S)
    EquivalentsPanel(_elsewhere(visit, None))


def _show(visit: Visit, views: Sequence[QueryView]) -> Callable[[Sequence[QueryView]], None] | None:
    if not views:
        sentence = "A pipeline is one file; while it runs, its queries are here with their rate, lag and state."
        with empty("account_tree", "No pipeline has run in the last hour", sentence):
            pass
        with card("Begin with one"):
            code_block("headrace pipeline run examples/trucks/fleet.toml", "Command line", "terminal")
        return None
    with ui.element("div").classes("hr-figures"):
        changes = [figure(label, *words(views)) for label, words in _FIGURES.items()]
    with card():
        table = DataTable(visit, _COLUMNS, map(_row, views), key="name", search="Search queries", sort="query")

    def update(fresh: Sequence[QueryView]) -> None:
        table.update(map(_row, fresh))
        for change, words in zip(changes, _FIGURES.values(), strict=True):
            change(*words(fresh))

    return update


_FIGURES: dict[str, Callable[[Sequence[QueryView]], tuple[str, str]]] = {
    "Queries": lambda views: (f"{sum(one.is_running for one in views)} of {len(views)}", "are running"),
    "Rows": lambda views: (rate(sum(_rate(one) for one in views)), "in all queries together"),
    "Lag": lambda views: (count(sum(one.latest.lag_records or 0 for one in views)), "records wait"),
    "Lag in time": lambda views: (_seconds(max((one.latest.lag_ms or 0 for one in views), default=0)), "at the most"),
}


def _rate(view: QueryView) -> float:
    return view.latest.rows_per_second if view.is_running else 0.0


def _row(view: QueryView) -> dict[str, Any]:
    latest = view.latest
    return {
        "name": view.name,
        "query": latest.query,
        "pipeline": latest.pipeline,
        "state": "running" if view.is_running else "stopped",
        "rate": _rate(view),
        "lag": latest.lag_records,
        "lag_ms": latest.lag_ms,
        "batch_ms": latest.batch_ms,
        "state_rows": latest.state_rows,
        "late": latest.late_rows_total,
        "heard": latest.time_ms,
    }


# --- one of them


def _build_one(visit: Visit) -> None:
    pipeline, query = visit.path["pipeline"], visit.path["query"]
    with heading(query, f"A query of the pipeline {pipeline}", back=("/pipelines", "Pipelines")):
        pass
    reader = ProgressReader(visit.services)

    async def load() -> QueryView | None:
        views = await reader.read()
        return next((one for one in views if (one.latest.pipeline, one.latest.query) == (pipeline, query)), None)

    Live(load, partial(_show_one, visit), every_s=_EVERY_S)
    EquivalentsPanel(_elsewhere(visit, f"{pipeline}/{query}"))


def _show_one(visit: Visit, view: QueryView | None) -> Callable[[QueryView | None], None] | None:
    if view is None:
        with empty("account_tree", "Nothing was heard of it in the last hour", "Is the pipeline running?"):
            ui.button("All pipelines", on_click=lambda: ui.navigate.to("/pipelines")).props("unelevated no-caps")
        return None
    with ui.element("div").classes("hr-figures"):
        changes = [figure(label, *words(view)) for label, words in _DETAILS.items()]
    charts = []
    with ui.element("div").classes("hr-columns").style(_TWO_COLUMNS):
        for title, (words, value) in _CHARTS.items():
            with card(title):
                charts.append((ui.html(_chart(view, title, words, value), sanitize=False).classes("hr-full"), title))
    with card("Batches", "The latest first"):
        table = DataTable(visit, _BATCH_COLUMNS, _batch_rows(view), key="id", sort="id", descending=True)

    def update(fresh: QueryView | None) -> None:
        if fresh is None:
            return
        for change, words in zip(changes, _DETAILS.values(), strict=True):
            change(*words(fresh))
        for element, title in charts:
            element.content = _chart(fresh, title, *_CHARTS[title])
        table.update(_batch_rows(fresh))

    return update


_DETAILS: dict[str, Callable[[QueryView], tuple[str, str]]] = {
    "State": lambda view: (
        "Running" if view.is_running else "Stopped",
        f"batch {view.latest.batch_id}, {moment(view.latest.time_ms)[11:19]}",
    ),
    "Rows": lambda view: (rate(_rate(view)), f"{count(view.latest.rows_total)} in all"),
    "Lag": lambda view: (count(view.latest.lag_records), f"waiting for {_waiting(view.latest)}"),
    "State rows": lambda view: (count(view.latest.state_rows), f"{count(view.latest.late_rows_total)} came too late"),
}


def _waiting(progress: QueryProgress) -> str:
    return "?" if progress.lag_ms is None else _seconds(progress.lag_ms)


_CHARTS: dict[str, tuple[Callable[[float], str], Callable[[QueryProgress], float | None]]] = {
    "Rows per second": (rate, lambda one: one.rows_per_second),
    "Lag in records": (count, lambda one: one.lag_records),
    "Lag in time": (_seconds, lambda one: one.lag_ms),
    "Time of a batch": (_seconds, lambda one: one.batch_ms),
}


def _chart(
    view: QueryView, title: str, words: Callable[[float], str], value: Callable[[QueryProgress], float | None]
) -> str:
    points = [(one.time_ms / 1000, found) for one in view.batches if (found := value(one)) is not None]
    # A short history fills the whole width.
    now = time.time()
    span_s = min(SPAN_MS / 1000, max(now - points[0][0], 120.0)) if points else SPAN_MS / 1000
    return line_chart(points, words=words, title=title, span_s=span_s, now=now)


_BATCH_COLUMNS = (
    Column(name="id", label="Batch", show=count, is_number=True),
    Column(name="time", label="Ended", show=moment),
    Column(name="rows", label="Rows", show=count, is_number=True),
    Column(name="batch_ms", label="Took", show=_seconds, is_number=True),
    Column(name="lag", label="Lag", show=count, is_number=True),
    Column(name="state_rows", label="State rows", show=count, is_number=True, is_wide=True),
    Column(name="watermark", label="Watermark", is_wide=True),
)


def _batch_rows(view: QueryView) -> list[dict[str, Any]]:
    return [
        {
            "id": one.batch_id,
            "time": one.time_ms,
            "rows": one.rows,
            "batch_ms": one.batch_ms,
            "lag": one.lag_records,
            "state_rows": one.state_rows,
            "watermark": one.watermark or None,
        }
        for one in {one.batch_id: one for one in view.batches[-_BATCHES_SHOWN:]}.values()
    ]


def _elsewhere(visit: Visit, key: str | None) -> Equivalent:
    query = {"since": "-1h", "key": key}
    program = (
        "from headrace import KafkaConsumer\n\n"
        f'consumer = KafkaConsumer("{PROGRESS_TOPIC}", bootstrap_servers="{visit.bootstrap}",\n'
        '                         auto_offset_reset="earliest")\n'
        "for record in consumer:\n    print(record.key, record.value)"
    )
    return Equivalent(
        cli=command(
            "kafka-console-consumer",
            options={"bootstrap-server": visit.bootstrap, "topic": PROGRESS_TOPIC, "from-beginning": True},
        ),
        curl=curl(visit.base, f"/stream/{PROGRESS_TOPIC}", method="STREAM", query=query),
        python=program,
    )


PAGES = (
    Page(path="/pipelines", title="Pipelines", icon="account_tree", key="p", build=_build),
    Page(path="/pipelines/{pipeline}/{query}", title="Pipeline", section="/pipelines", build=_build_one),
)
