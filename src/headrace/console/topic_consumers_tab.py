"""The groups that read a topic, and how far they are behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.console import topic_equivalents
from headrace.console.data_table import Column, DataTable
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import Live
from headrace.console.page import named
from headrace.console.states import card, empty
from headrace.console.words import count, duration

if TYPE_CHECKING:
    from headrace.console.page import Visit

_EVERY_S = 2.0
_COLUMNS = (
    Column(name="group", label="Group", href=lambda row: named("/groups/{}", row["group"])),
    Column(name="lag", label="Lag in records", show=count, is_number=True),
    Column(name="seconds", label="Lag in time", show=duration, is_number=True),
)


def build_consumers(visit: Visit, topic: str) -> None:
    """The tab; what it shows is remembered anyway, so that many groups take no time."""

    async def load() -> list[Mapping[str, Any]]:
        return _rows(visit, topic)

    Live(load, partial(_show, visit), every_s=_EVERY_S)
    EquivalentsPanel(topic_equivalents.groups(visit.where, topic))


def _rows(visit: Visit, topic: str) -> list[Mapping[str, Any]]:
    now = time.time()
    lags = {group_id: visit.history.lag_of(group_id, topic, now) for group_id in visit.history.committed}
    return [
        {"group": group_id, "lag": lag.records, "seconds": lag.seconds}
        for group_id, lag in lags.items()
        if lag is not None
    ]


def _show(visit: Visit, rows: list[Mapping[str, Any]]) -> Callable[[list[Mapping[str, Any]]], None] | None:
    if not rows:
        with empty("groups", "Nobody reads this topic", "Groups that have committed offsets for it appear here."):
            pass
        return None
    with card():
        table = DataTable(visit, _COLUMNS, rows, key="group", search="Search groups")
    return table.update
