"""Group: how far it is behind, now and over time, who is in it, and what may be done with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nicegui import ui

from headrace.client.offset_targets import INACTIVE
from headrace.console import group_equivalents
from headrace.console.chart import line_chart
from headrace.console.confirmation import confirm
from headrace.console.data_groups import GroupView, load_group
from headrace.console.data_table import Column, DataTable
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.groups_page import TONES
from headrace.console.live import Live
from headrace.console.page import Page, Visit, named
from headrace.console.states import card, figure, heading
from headrace.console.words import count, duration, several, span

_EVERY_S = 3.0
_OFFSETS = (
    Column(name="place", label="Partition", href=lambda row: named("/topics/{}", row["topic"])),
    Column(name="committed", label="Committed", show=count, is_number=True, is_wide=True),
    Column(name="end", label="Log end", show=count, is_number=True, is_wide=True),
    Column(name="lag", label="Lag", show=count, is_number=True),
    Column(name="seconds", label="In time", show=duration, is_number=True),
    Column(name="member", label="Read by", is_wide=True),
)
_MEMBERS = (
    Column(name="member", label="Member"),
    Column(name="client", label="Client", is_wide=True),
    Column(name="host", label="Host"),
    Column(name="partitions", label="Partitions", show=count, is_number=True),
    Column(name="assignment", label="Assignment", is_wide=True),
)
_NO_OFFSETS = "This group has no offsets: nothing was committed, and nothing is read."
_NO_MEMBERS = "This group has no members: nobody reads as it now."


def _build(visit: Visit) -> None:
    group_id = visit.path["group"]
    with heading(group_id, back=("/groups", "Groups")):
        ui.button(
            "Reset offsets", icon="restart_alt", on_click=lambda: ui.navigate.to(named("/groups/{}/reset", group_id))
        ).props("flat no-caps").classes("hr-plain")
        with ui.button(icon="more_vert").props('flat round aria-label="More"'), ui.menu():
            ui.menu_item("Delete group…", lambda: _ask_to_delete(visit, group_id))
    Live(
        lambda: load_group(visit.services, visit.history, group_id),
        partial(_show, visit, group_id),
        every_s=_EVERY_S,
    )
    EquivalentsPanel(group_equivalents.description(visit.where, group_id))


def _show(visit: Visit, group_id: str, view: GroupView) -> Callable[[GroupView], None]:
    with ui.element("div").classes("hr-figures"):
        state, members, records, seconds = (figure(words, "") for words in ("State", "Members", "Lag", "Lag in time"))
    with ui.element("div").classes("hr-columns"):
        with card("Lag in records", f"over {span(visit.history.span_s)}"):
            by_records = ui.html("", sanitize=False).classes("hr-full")
        with card("Lag in time", "age of the next record to read"):
            by_seconds = ui.html("", sanitize=False).classes("hr-full")
    with card("Offsets"):
        offsets = DataTable(
            visit, _OFFSETS, _offset_rows(view), key="place", search="Search partitions", nothing=_NO_OFFSETS
        )
    with card("Members"):
        readers = DataTable(visit, _MEMBERS, _member_rows(view), key="member", nothing=_NO_MEMBERS)

    def update(fresh: GroupView) -> None:
        described = fresh.described
        state(described.state, described.assignor or described.group_type, TONES.get(described.state, "warn"))
        members(count(len(described.members)), described.group_type)
        records(count(fresh.records), several(len(fresh.offsets), "partition"))
        seconds(duration(fresh.seconds), "of the oldest record not read")
        by_records.content = _chart(visit, visit.history.lag_records(group_id), count, f"Lag of {group_id} in records")
        by_seconds.content = _chart(visit, visit.history.lag_seconds(group_id), duration, f"Lag of {group_id} in time")
        offsets.update(_offset_rows(fresh))
        readers.update(_member_rows(fresh))

    update(view)
    return update


def _chart(visit: Visit, points: list[tuple[float, float]], words: Callable[[float], str], title: str) -> str:
    return line_chart(points, words=words, title=title, span_s=visit.history.span_s, now=time.time())


def _offset_rows(view: GroupView) -> list[Mapping[str, Any]]:
    return [
        {
            "place": f"{row.topic}-{row.partition}",
            "topic": row.topic,
            "committed": row.committed,
            "end": row.end,
            "lag": row.lag,
            "seconds": row.seconds,
            "member": None if row.member is None else row.member.client_id or row.member.member_id,
        }
        for row in view.offsets
    ]


def _member_rows(view: GroupView) -> list[Mapping[str, Any]]:
    return [
        {
            "member": member.group_instance_id or member.member_id,
            "client": member.client_id,
            "host": member.client_host.removeprefix("/"),
            "partitions": len(member.assignment),
            "assignment": ", ".join(f"{place.topic}-{place.partition}" for place in sorted(member.assignment)[:8])
            + (" …" if len(member.assignment) > 8 else ""),
        }
        for member in view.described.members
    ]


def _ask_to_delete(visit: Visit, group_id: str) -> None:
    confirm(
        f"Delete {group_id}?",
        f"Its offsets are forgotten: whoever reads as this group next begins anew. Only a group in the state "
        f"{' or '.join(sorted(INACTIVE))} can be deleted.",
        name=group_id,
        verb="Delete group",
        act=lambda: visit.services.admin.delete_groups([group_id]),
        done=f"{group_id} is deleted.",
        equivalent=group_equivalents.deletion(visit.where, group_id),
        then=lambda: ui.navigate.to("/groups"),
    )


PAGES = (Page(path="/groups/{group:path}", title="Group", section="/groups", build=_build),)
