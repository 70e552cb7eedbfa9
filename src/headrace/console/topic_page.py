"""Topic: its messages, partitions, consumers and settings, a tab each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from nicegui import ui

from headrace.client.fault import ClientFault
from headrace.console import topic_equivalents
from headrace.console.confirmation import confirm
from headrace.console.page import Page, Visit
from headrace.console.production import ask_for_record
from headrace.console.record_import import ask_for_lines
from headrace.console.states import empty, heading
from headrace.console.topic_configs_tab import build_configs
from headrace.console.topic_consumers_tab import build_consumers
from headrace.console.topic_creation import ask_for_topic
from headrace.console.topic_messages_tab import build_messages
from headrace.console.topic_partitions_tab import build_partitions
from headrace.model.errors import KafkaError

_TABS: dict[str, tuple[str, Callable[[Visit, str], None]]] = {
    "messages": ("Messages", build_messages),
    "partitions": ("Partitions", build_partitions),
    "consumers": ("Consumers", build_consumers),
    "configs": ("Settings", build_configs),
}


def _build(visit: Visit) -> None:
    topic = visit.path["topic"]
    with heading(topic, back=("/topics", "Topics")), ui.element("div").classes("hr-actions") as actions:
        _actions(visit, topic)
    chosen = visit.query.get("tab", "messages")
    with ui.tabs().classes("hr-tabs") as tabs:
        tabs.props("align=left dense no-caps indicator-color=primary")
        for name, (words, _) in _TABS.items():
            ui.tab(name, words)
    tabs.value = chosen if chosen in _TABS else "messages"
    place = ui.element("div").classes("hr-live")

    def show(event: Any = None) -> None:
        place.clear()
        with place:
            _TABS[tabs.value][1](visit, topic)

    def turn() -> None:
        visit.query.clear()
        visit.remember(tab=None if tabs.value == "messages" else tabs.value)
        show()

    tabs.on_value_change(turn)
    show()

    async def look() -> None:
        with contextlib.suppress(ClientFault, KafkaError):  # what else is wrong, the tab says
            if topic in await visit.services.admin.list_topics():
                return
            actions.set_visibility(False)
            tabs.set_visibility(False)
            place.clear()
            with place:
                _nothing(visit, topic)

    ui.timer(0.01, look, once=True)


def _nothing(visit: Visit, topic: str) -> None:
    with empty("search_off", "This is not there", f"There is no topic '{topic}' here."):
        ui.button("All topics", on_click=lambda: ui.navigate.to("/topics")).props("unelevated no-caps")
        ui.button("Create a topic", icon="add", on_click=lambda: ask_for_topic(visit)).props("flat no-caps")


def _actions(visit: Visit, topic: str) -> None:
    ui.button("Produce", icon="send", on_click=lambda: ask_for_record(visit, topic)).props("unelevated no-caps")
    with ui.button(icon="more_vert").props('flat round aria-label="More"'), ui.menu():
        ui.menu_item("Import records…", lambda: ask_for_lines(visit, topic))
        ui.menu_item("Delete topic…", lambda: _ask_to_delete(visit, topic))


def _ask_to_delete(visit: Visit, topic: str) -> None:
    confirm(
        f"Delete {topic}?",
        "The topic and all of its records are gone for good. Groups that read it are left with nothing.",
        name=topic,
        verb="Delete topic",
        act=lambda: visit.services.admin.delete_topics([topic]),
        done=f"{topic} is deleted.",
        equivalent=topic_equivalents.deletion(visit.where, topic),
        then=lambda: ui.navigate.to("/topics"),
    )


PAGES = (Page(path="/topics/{topic}", title="Topic", section="/topics", build=_build),)
