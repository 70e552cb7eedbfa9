"""Reset offsets: what would happen, in the table of `kafka-consumer-groups --dry-run`, and then the deed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from nicegui import ui

from headrace.client.offset_targets import NothingCommitted
from headrace.console import group_equivalents
from headrace.console.data_groups import Reset, ResetPlan, apply_reset, plan_reset
from headrace.console.data_table import Column, DataTable
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import sentence_of
from headrace.console.page import Page, Visit, named
from headrace.console.record_query import iso
from headrace.console.states import card, heading
from headrace.console.toast import toast
from headrace.console.words import count, several

_SCENARIOS = {
    "earliest": "To the beginning",
    "latest": "To the end",
    "offset": "To an offset",
    "shift": "By a number of records",
    "time": "To a time (UTC)",
}
_COLUMNS = (
    Column(name="group", label="GROUP", is_wide=True),
    Column(name="topic", label="TOPIC", is_wide=True),
    Column(name="partition", label="PARTITION", is_number=True, is_wide=True),
    Column(name="place", label="PARTITION", is_narrow=True),
    Column(name="current", label="CURRENT", show=count, is_number=True),
    Column(name="new", label="NEW-OFFSET", is_number=True),
    Column(name="change", label="CHANGE", show=lambda number: f"{number:+,}".replace(",", "\u202f"), is_number=True),
)


def reset_from_url(query: Mapping[str, str]) -> Reset:
    """What a URL asks for; what makes no sense is as if it were not there."""
    to = query.get("to", "earliest")
    return Reset(
        to=to if to in _SCENARIOS else "earliest",
        topic=query.get("topic", ""),
        offset=_number(query.get("offset", "")),
        shift=_number(query.get("shift", "")),
        time_ms=_moment(query.get("time", "")),
    )


def reset_to_url(reset: Reset) -> dict[str, object]:
    """The parameters of the URL that asks for it."""
    return {
        "to": reset.to,
        "topic": reset.topic,
        "offset": reset.offset if reset.to == "offset" else None,
        "shift": reset.shift if reset.to == "shift" else None,
        "time": iso(reset.time_ms) if reset.to == "time" and reset.time_ms is not None else None,
    }


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


def _moment(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else datetime.fromisoformat(f"{text}+00:00")
    return round(aware.timestamp() * 1000)


def _build(visit: Visit) -> None:
    group_id = visit.path["group"]
    with heading(
        "Reset offsets", "Nothing is changed until you apply it.", back=(named("/groups/{}", group_id), group_id)
    ):
        pass
    _ResetForm(visit, group_id)


class _ResetForm:
    """One person planning one reset."""

    def __init__(self, visit: Visit, group_id: str) -> None:
        self._visit = visit
        self._group_id = group_id
        self._reset = reset_from_url(visit.query)
        self._plan: ResetPlan | None = None
        reset = self._reset
        with card():
            with ui.element("div").classes("hr-controls"):
                scenario = ui.select(_SCENARIOS, value=reset.to, label="Where to", on_change=self._chosen("to"))
                scenario.props('outlined dense options-dense data-test="scenario"').style("width: 230px")
                self._topic = ui.select(
                    {"": "All it has read"}, value="", label="Topic", on_change=self._chosen("topic")
                )
                self._topic.props("outlined dense options-dense").style("width: 230px")
                self._fields: dict[str, ui.number | ui.input] = {
                    "offset": ui.number("Offset", value=reset.offset, min=0, precision=0),
                    "shift": ui.number("Records, back if negative", value=reset.shift, precision=0),
                    "time": ui.input("Time (UTC)", value="" if reset.time_ms is None else iso(reset.time_ms)[:-1]),
                }
                self._fields["offset"].on_value_change(self._chosen("offset"))
                self._fields["shift"].on_value_change(self._chosen("shift"))
                self._fields["time"].on_value_change(self._chosen("time_ms"))
                for field in self._fields.values():
                    field.props("outlined dense debounce=300").style("width: 230px")
                self._fields["time"].props("type=datetime-local step=0.001 stack-label")
            self._notes = ui.element("div").classes("hr-notes").props('role="status"')
            self._place = ui.element("div").classes("hr-full")
            with ui.element("div").classes("hr-dialog-actions hr-row"):
                self._words = ui.label().classes("hr-note hr-grow")
                self._apply = ui.button("Apply", icon="check", on_click=self._do)
                self._apply.props('unelevated no-caps data-test="apply"')
        self._panel = EquivalentsPanel(group_equivalents.reset(visit.where, group_id, reset, {}, execute=False))
        self._show_fields()
        self._apply.disable()
        ui.timer(0.01, self._begin, once=True)

    def _show_fields(self) -> None:
        for name, field in self._fields.items():
            field.set_visibility(self._reset.to == name)

    def _chosen(self, name: str) -> Any:
        async def change(event: Any) -> None:
            value = event.value
            if name in {"offset", "shift"}:
                value = int(value or 0)
            elif name == "time_ms":
                value = _moment(value or "")
            self._reset = replace(self._reset, **{name: value})
            self._visit.remember(**reset_to_url(self._reset))
            self._show_fields()
            await self._preview()

        return change

    async def _begin(self) -> None:
        wanted = self._reset.topic
        await self._preview()
        topics = sorted({topic for topic, _ in self._plan.current} | {wanted} - {""}) if self._plan else []
        if topics:
            self._topic.set_options({"": "All it has read", **{name: name for name in topics}}, value=wanted)

    async def _preview(self) -> None:
        """Make the plan and show it."""
        asked = self._reset
        try:
            plan = await plan_reset(self._visit.services, self._group_id, asked)
        except NothingCommitted as error:
            self._refuse(f"{error}.")
            return
        except Exception as error:  # noqa: BLE001  (whatever it is, the person is told)
            self._refuse(sentence_of(error))
            return
        if asked != self._reset:
            return
        self._plan = plan
        notes = list(plan.notes)
        if plan.offsets and not plan.may_be_applied:
            notes.insert(0, f"The group is {plan.state}. Stop its members first, then apply.")
        self._tell(notes)
        self._place.clear()
        with self._place:
            DataTable(self._visit, _COLUMNS, self._rows(plan), key="place", sort="topic")
        moved = sum(plan.current.get(place) != offset for place, offset in plan.offsets.items())
        self._words.text = (
            f"{several(moved, 'offset')} would change." if plan.offsets else "Nothing was ever committed."
        )
        self._apply.set_enabled(plan.may_be_applied)
        self._panel.change(
            group_equivalents.reset(self._visit.where, self._group_id, asked, plan.offsets, execute=plan.may_be_applied)
        )

    def _rows(self, plan: ResetPlan) -> list[Mapping[str, Any]]:
        return [
            {
                "place": f"{topic}-{number}",
                "group": self._group_id,
                "topic": topic,
                "partition": number,
                "current": plan.current.get((topic, number)),
                "new": offset,
                "change": offset - plan.current[topic, number] if (topic, number) in plan.current else None,
            }
            for (topic, number), offset in plan.offsets.items()
        ]

    def _refuse(self, sentence: str) -> None:
        self._plan = None
        self._tell([sentence])
        self._place.clear()
        self._words.text = ""
        self._apply.disable()

    def _tell(self, notes: list[str]) -> None:
        self._notes.clear()
        with self._notes:
            for note in notes:
                ui.label(note)

    async def _do(self) -> None:
        if self._plan is None or not self._plan.may_be_applied:
            return
        self._apply.disable()
        try:
            await apply_reset(self._visit.services, self._group_id, self._plan.offsets)
        except Exception as error:  # noqa: BLE001  (whatever it is, the person is told)
            toast(sentence_of(error), "bad")
        else:
            toast(f"{several(len(self._plan.offsets), 'offset')} set.")
        await self._preview()


PAGES = (Page(path="/groups/{group:path}/reset", title="Reset offsets", section="/groups", build=_build),)
