"""The settings of a topic, and changing one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nicegui import ui

from headrace.client.admin_values import ConfigEntry
from headrace.console import topic_equivalents
from headrace.console.data_table import Column, DataTable
from headrace.console.data_topics import change_config, load_configs
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.form import dialog_form
from headrace.console.live import Live
from headrace.console.states import card
from headrace.console.toast import toast

if TYPE_CHECKING:
    from headrace.console.page import Visit

_OF_TOPIC = 1
_SOURCES = {1: "this topic", 2: "its broker", 3: "all brokers", 4: "the broker's file", 5: "default"}
_COLUMNS = (
    Column(name="name", label="Setting", is_action=True),
    Column(name="value", label="Value"),
    Column(name="source", label="Set by", tone=lambda row: "accent" if row["source"] == "this topic" else "plain"),
)


def build_configs(visit: Visit, topic: str) -> None:
    """The tab."""
    live: Live[list[ConfigEntry]] = Live(
        lambda: load_configs(visit.services, topic), lambda entries: _show(visit, topic, entries, live.look)
    )
    EquivalentsPanel(topic_equivalents.configs(visit.where, topic))


def _show(
    visit: Visit, topic: str, entries: list[ConfigEntry], again: Callable[[], Any]
) -> Callable[[list[ConfigEntry]], None]:
    known = {entry.name: entry for entry in entries}
    with card():
        table = DataTable(visit, _COLUMNS, _rows(entries), key="name", search="Search settings")
        with table.tools:
            ui.label("Choose a setting to change it.").classes("hr-note")
    table.on_act(lambda name: _ask_for_value(visit, topic, known[name], again))

    def update(fresh: list[ConfigEntry]) -> None:
        known.update({entry.name: entry for entry in fresh})
        table.update(_rows(fresh))

    return update


def _rows(entries: list[ConfigEntry]) -> list[Mapping[str, Any]]:
    return [
        {
            "name": entry.name,
            "value": "hidden" if entry.is_sensitive else entry.value or "",
            "source": _SOURCES.get(entry.source, "elsewhere"),
        }
        for entry in entries
    ]


def _ask_for_value(visit: Visit, topic: str, entry: ConfigEntry, again: Callable[[], Any]) -> None:
    is_own = entry.source == _OF_TOPIC
    with dialog_form(entry.name, "Save") as form:
        value = ui.input("Value", value=entry.value or "").props("outlined dense autofocus").classes("hr-full hr-mono")
        reset = ui.checkbox("Back to the default").props("dense")
        reset.set_visibility(is_own)
        panel = EquivalentsPanel(topic_equivalents.config_change(visit.where, topic, entry.name, value.value))
    value.on("keydown.enter", form.go)

    def chosen() -> str | None:
        return None if reset.value else value.value

    def changed() -> None:
        value.set_enabled(not reset.value)
        panel.change(topic_equivalents.config_change(visit.where, topic, entry.name, chosen()))

    value.on_value_change(changed)
    reset.on_value_change(changed)

    async def save() -> None:
        await change_config(visit.services, topic, entry.name, chosen())
        toast(f"{entry.name} is {'the default again' if chosen() is None else chosen()}.")
        await again()

    form.submit = save
