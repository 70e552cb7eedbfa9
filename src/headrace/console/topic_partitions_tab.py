"""The partitions of a topic: who leads them, who is in sync, what lies in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from headrace.console import topic_equivalents
from headrace.console.chart import line_chart
from headrace.console.data_table import Column, DataTable
from headrace.console.data_topics import TopicView, load_topic
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import Live
from headrace.console.page import link_to, named
from headrace.console.states import card
from headrace.console.words import count, rate, size, span

if TYPE_CHECKING:
    from headrace.console.page import Visit

_EVERY_S = 3.0
_TONES = {"in sync": "good", "lacks replicas": "warn", "no leader": "bad"}
_COLUMNS = (
    Column(name="partition", label="Partition", href=lambda row: row["href"]),
    Column(name="state", label="", tone=lambda row: _TONES[row["state"]]),
    Column(name="leader", label="Leader", is_number=True),
    Column(name="replicas", label="Replicas", is_wide=True),
    Column(name="isr", label="In sync", is_wide=True),
    Column(name="begin", label="First offset", show=count, is_number=True, is_wide=True),
    Column(name="end", label="Next offset", show=count, is_number=True),
    Column(name="records", label="Records", show=count, is_number=True, is_wide=True),
    Column(name="size", label="Size", show=size, is_number=True, is_wide=True),
)


def build_partitions(visit: Visit, topic: str) -> None:
    """The tab."""
    Live(lambda: load_topic(visit.services, topic), partial(_show, visit), every_s=_EVERY_S)
    EquivalentsPanel(topic_equivalents.description(visit.where, topic))


def _show(visit: Visit, topic: TopicView) -> Callable[[TopicView], None]:
    history = visit.history
    with card("Throughput", f"records written per second, over {span(history.span_s)}"):
        chart = ui.html("", sanitize=False).classes("hr-full")
    with card():
        table = DataTable(visit, _COLUMNS, _rows(topic), key="partition")

    def update(fresh: TopicView) -> None:
        title = f"Records written to {fresh.name} per second"
        points = history.throughput(fresh.name)
        chart.content = line_chart(points, words=rate, title=title, span_s=history.span_s, now=time.time())
        table.update(_rows(fresh))

    update(topic)
    return update


def _rows(topic: TopicView) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for one in topic.partitions:
        described = one.described
        is_full = len(described.isr) == len(described.replicas)
        rows.append(
            {
                "partition": described.partition,
                "href": link_to(named("/topics/{}", topic.name), partition=described.partition),
                "state": "no leader" if described.leader < 0 else "in sync" if is_full else "lacks replicas",
                "leader": None if described.leader < 0 else described.leader,
                "replicas": ", ".join(map(str, described.replicas)),
                "isr": ", ".join(map(str, sorted(described.isr))),
                "begin": one.begin,
                "end": one.end,
                "records": one.records,
                "size": one.bytes,
            }
        )
    return rows
