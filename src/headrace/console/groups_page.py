"""Groups: all of them, what they do and how far they are behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headrace.console import group_equivalents
from headrace.console.data_groups import GroupRow, load_groups
from headrace.console.data_table import Column, DataTable
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import Live
from headrace.console.page import Page, Visit, named
from headrace.console.states import card, empty, heading
from headrace.console.words import count, duration

_EVERY_S = 3.0
TONES = {"Stable": "good", "Empty": "plain", "Dead": "bad"}
"""By state; others are on their way."""
_COLUMNS = (
    Column(name="group", label="Group", href=lambda row: named("/groups/{}", row["group"])),
    Column(name="state", label="State", tone=lambda row: TONES.get(row["state"], "warn")),
    Column(name="type", label="Protocol", is_wide=True),
    Column(name="members", label="Members", show=count, is_number=True, is_wide=True),
    Column(name="lag", label="Lag in records", show=count, is_number=True),
    Column(name="seconds", label="Lag in time", show=duration, is_number=True),
)


def _build(visit: Visit) -> None:
    with heading("Groups"):
        pass
    Live(lambda: load_groups(visit.services, visit.history), partial(_show, visit), every_s=_EVERY_S)
    EquivalentsPanel(group_equivalents.listing(visit.where))


def _show(visit: Visit, groups: list[GroupRow]) -> Callable[[list[GroupRow]], None] | None:
    if not groups:
        with empty(
            "groups", "No groups yet", "Consumers that share the work of reading topics form a group; it appears here."
        ):
            pass
        return None
    with card():
        table = DataTable(visit, _COLUMNS, map(_row, groups), key="group", search="Search groups")
    return lambda fresh: table.update(map(_row, fresh))


def _row(group: GroupRow) -> Mapping[str, Any]:
    return {
        "group": group.listed.group_id,
        "state": group.listed.state,
        "type": group.listed.group_type or "classic",
        "members": group.members,
        "lag": None if group.lag is None else group.lag.records,
        "seconds": None if group.lag is None else group.lag.seconds,
    }


PAGES = (Page(path="/groups", title="Groups", icon="groups", key="c", build=_build),)
