"""The dialog that sends a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from headrace.console import topic_equivalents
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.form import dialog_form
from headrace.console.record_lines import NewRecord
from headrace.console.toast import toast
from headrace.gateway.problem import bad_request

if TYPE_CHECKING:
    from headrace.console.page import Visit


def ask_for_record(visit: Visit, topic: str) -> None:
    """Ask for a key, a value and headers, and send them."""
    with dialog_form(f"Produce to {topic}", "Send", is_wide=True, icon="send") as form:
        with ui.element("div").classes("hr-row"):
            key = ui.input("Key", placeholder="none").props('outlined dense data-test="key"').classes("hr-grow hr-mono")
            partition = ui.number("Partition", min=0, precision=0, placeholder="by the key")
            partition.props("outlined dense").style("width: 150px")
        value = ui.textarea("Value").props('outlined dense autogrow data-test="value"').classes("hr-full hr-mono")
        nothing = ui.checkbox("A tombstone: no value at all").props("dense")
        headers = ui.textarea("Headers, a line each", placeholder="source: console")
        headers.props("outlined dense autogrow").classes("hr-full hr-mono")

        def record(*, is_lenient: bool = False) -> NewRecord:
            return NewRecord(
                key=key.value.encode() if key.value else None,
                value=None if nothing.value else (value.value or "").encode(),
                headers=headers_of(headers.value or "", is_lenient=is_lenient),
                partition=None if partition.value is None else int(partition.value),
                timestamp=None,
            )

        panel = EquivalentsPanel(topic_equivalents.production(visit.where, topic, record()))

    def changed() -> None:
        value.set_enabled(not nothing.value)
        panel.change(topic_equivalents.production(visit.where, topic, record(is_lenient=True)))

    for field in (key, value, headers):
        field.on_value_change(changed)
    partition.on_value_change(changed)
    nothing.on_value_change(changed)

    async def send() -> None:
        new = record()
        producer = await visit.services.producer()
        stored = await producer.send_and_wait(topic, new.value, new.key, new.partition, headers=new.headers)
        toast(f"Stored in partition {stored.partition} at offset {stored.offset}.")

    form.submit = send


def headers_of(text: str, *, is_lenient: bool = False) -> list[tuple[str, bytes | None]]:
    """Lines of `name: value`; a line that is none is a Problem, or left out."""
    found: list[tuple[str, bytes | None]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        name, sign, value = line.partition(":")
        if sign and name.strip():
            found.append((name.strip(), value.strip().encode()))
        elif line.strip() and not is_lenient:
            raise bad_request(f"Line {number} of the headers is not name: value.")
    return found
