"""The dialog that makes a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from headrace.client.admin_values import BROKER_DEFAULT, NewTopic
from headrace.console import topic_equivalents
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.form import dialog_form, settings_of
from headrace.console.page import named
from headrace.console.toast import toast

if TYPE_CHECKING:
    from headrace.console.equivalents import Equivalent
    from headrace.console.page import Visit


def ask_for_topic(visit: Visit) -> None:
    """Ask for a name and numbers, make the topic, and go there."""
    with dialog_form("New topic", "Create") as form:
        name = ui.input("Name", validation={"A topic needs a name": bool})
        name.props('outlined dense autofocus maxlength=249 data-test="topic-name"').classes("hr-full")
        with ui.element("div").classes("hr-row"):
            partitions = ui.number("Partitions", min=1, precision=0, placeholder="as the cluster is set")
            replication = ui.number("Replicas", min=1, precision=0, placeholder="as the cluster is set")
            for number in (partitions, replication):
                number.props("outlined dense").classes("hr-grow")
        configs = ui.textarea("Settings, a line each", placeholder="retention.ms=86400000")
        configs.props("outlined dense autogrow").classes("hr-full hr-mono")

        def equivalent() -> Equivalent:
            return topic_equivalents.creation(
                visit.where,
                name.value or "",
                partitions=int(partitions.value) if partitions.value else None,
                replication=int(replication.value) if replication.value else None,
                configs=settings_of(configs.value or "", is_lenient=True),
            )

        panel = EquivalentsPanel(equivalent())
    for field in (name, partitions, replication, configs):
        field.on_value_change(lambda: panel.change(equivalent()))

    async def create() -> None:
        topic = NewTopic(
            (name.value or "").strip(),
            num_partitions=int(partitions.value) if partitions.value else BROKER_DEFAULT,
            replication_factor=int(replication.value) if replication.value else BROKER_DEFAULT,
            topic_configs=settings_of(configs.value or ""),
        )
        await visit.services.admin.create_topics([topic])
        toast(f"{topic.name} is there.")
        ui.navigate.to(named("/topics/{}", topic.name))

    form.submit = create
