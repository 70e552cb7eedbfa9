"""The dialog that reads records from a file of JSON lines and sends them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from nicegui import ui

from headrace.console import topic_equivalents
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.form import dialog_form
from headrace.console.record_lines import BadLine, NewRecord, from_lines
from headrace.console.toast import toast
from headrace.console.words import several
from headrace.gateway.problem import bad_request

if TYPE_CHECKING:
    from headrace.console.equivalents import Equivalent
    from headrace.console.page import Visit

_UNDER_WAY = 500
"""Records that are sent before the first of them is stored."""
_SHOWN = 10
"""Lines that are also told as commands."""
_EXAMPLE = NewRecord(key=b"t-1", value=b'{"speed": 80}', headers=[], partition=None, timestamp=None)
"""What stands elsewhere while there is no line that can be read."""


def ask_for_lines(visit: Visit, topic: str) -> None:
    """Ask for lines or a file, read all of them, and send them if all could be read."""
    with dialog_form(f"Import to {topic}", "Import", is_wide=True, icon="upload") as form:
        ui.label(
            "One JSON object per line, as the export writes them: key, value, headers. If one line cannot be read, "
            "nothing is sent."
        ).classes("hr-dialog-text")
        lines = ui.textarea("Lines", placeholder='{"key": "t-1", "value": {"speed": 80}}')
        lines.props('outlined dense input-style="min-height: 140px; max-height: 40vh" data-test="lines"')
        lines.classes("hr-full hr-mono")
        where = ui.checkbox("To the partitions the lines name").props("dense")

        async def take(event: Any) -> None:
            lines.value = await event.file.text()

        most = visit.services.config["request.max.bytes"]
        upload = ui.upload(label="Or a file", auto_upload=True, max_file_size=most, on_upload=take)
        upload.props('flat bordered accept=".jsonl,.ndjson,.json,.txt"').classes("hr-full")

        def equivalent() -> Equivalent:
            first, left = _first_lines(lines.value or "")
            try:
                records = from_lines(first) or [_EXAMPLE]
            except BadLine:
                records = [_EXAMPLE]
            kept = [one if where.value else one._replace(partition=None) for one in records]
            return topic_equivalents.production(visit.where, topic, *kept, left=left)

        panel = EquivalentsPanel(equivalent())
    for field in (lines, where):
        field.on_value_change(lambda: panel.change(equivalent()))

    async def send() -> None:
        try:
            records = from_lines(lines.value or "")
        except BadLine as error:
            raise bad_request(str(error)) from None
        if not records:
            raise bad_request("There is no line.")
        await send_all(visit, topic, records, keep_partitions=where.value)
        toast(f"{several(len(records), 'record')} stored.")

    form.submit = send


def _first_lines(text: str) -> tuple[str, int]:
    """So much that a person can read it, and how many lines are left; called at every key that is pressed."""
    parts = text.split("\n", _SHOWN)
    rest = parts[_SHOWN].strip() if len(parts) > _SHOWN else ""
    return "\n".join(parts[:_SHOWN]), rest.count("\n") + 1 if rest else 0


async def send_all(visit: Visit, topic: str, records: list[NewRecord], *, keep_partitions: bool) -> None:
    """Send records in their order, and wait until all are stored."""
    producer = await visit.services.producer()
    for start in range(0, len(records), _UNDER_WAY):
        stored = [
            await producer.send(
                topic,
                one.value,
                one.key,
                one.partition if keep_partitions else None,
                one.timestamp,
                one.headers,
            )
            for one in records[start : start + _UNDER_WAY]
        ]
        await asyncio.gather(*stored)
