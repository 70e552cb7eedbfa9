"""Topics: all of them, how large and how busy; and a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nicegui import ui

from headrace.console import topic_equivalents
from headrace.console.data_table import Column, DataTable
from headrace.console.data_topics import TopicView, load_topics
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import Live
from headrace.console.page import Page, Visit, named
from headrace.console.states import card, empty, heading
from headrace.console.topic_creation import ask_for_topic
from headrace.console.words import count, rate, size

_EVERY_S = 3.0
_COLUMNS = (
    Column(name="name", label="Topic", href=lambda row: named("/topics/{}", row["name"])),
    Column(name="state", label="", tone=lambda row: None if row["state"] == "" else "bad"),
    Column(name="partitions", label="Partitions", show=count, is_number=True, is_wide=True),
    Column(name="replication", label="Replicas", show=count, is_number=True, is_wide=True),
    Column(name="records", label="Records", show=count, is_number=True),
    Column(name="rate", label="Rate", show=rate, is_number=True),
    Column(name="size", label="Size", show=size, is_number=True, is_wide=True),
)


def _build(visit: Visit) -> None:
    with heading("Topics"):
        ui.button("Create", icon="add", on_click=lambda: ask_for_topic(visit)).props("unelevated no-caps")
    Live(lambda: load_topics(visit.services), partial(_show, visit), every_s=_EVERY_S)
    EquivalentsPanel(topic_equivalents.listing(visit.where))


def _show(visit: Visit, topics: list[TopicView]) -> Callable[[list[TopicView]], None] | None:
    if not any(not topic.is_internal for topic in topics) and not visit.query.get("internal"):
        with empty("view_list", "No topics yet", "A topic is a named log that records are appended to."):
            ui.button("Create a topic", icon="add", on_click=lambda: ask_for_topic(visit)).props("unelevated no-caps")
            ui.button("Show internal ones", on_click=lambda: ui.navigate.to("/topics?internal=1")).props("flat no-caps")
        return None
    known = topics

    def rows() -> list[Mapping[str, Any]]:
        return [_row(visit, topic) for topic in known if visit.query.get("internal") or not topic.is_internal]

    def switch(event: Any) -> None:
        visit.remember(internal="1" if event.value else None)
        table.update(rows())

    with card():
        table = DataTable(visit, _COLUMNS, rows(), key="name", search="Search topics")
        with table.tools:
            ui.switch("Internal", value=bool(visit.query.get("internal")), on_change=switch).props("dense")

    def update(fresh: list[TopicView]) -> None:
        nonlocal known
        known = fresh
        table.update(rows())

    return update


def _row(visit: Visit, topic: TopicView) -> Mapping[str, Any]:
    return {
        "name": topic.name,
        "state": "" if topic.is_well else "not in sync",
        "partitions": len(topic.partitions),
        "replication": topic.replication,
        "records": topic.records,
        "rate": visit.history.rate(topic.name),
        "size": topic.bytes,
    }


PAGES = (Page(path="/topics", title="Topics", icon="view_list", key="t", build=_build),)
