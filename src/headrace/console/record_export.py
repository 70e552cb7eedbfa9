"""The records of a view, as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from headrace.console.record_lines import to_csv, to_lines
from headrace.console.record_reader import RecordReader
from headrace.console.toast import toast
from headrace.console.words import count

if TYPE_CHECKING:
    from headrace.console.record_query import RecordQuery
    from headrace.gateway.services import Services

EXPORT_MAX = 10_000
"""Records in one file; more are had with the command, without a limit."""
_FORMS = {"jsonl": (to_lines, "application/x-ndjson"), "csv": (to_csv, "text/csv")}


async def export(services: Services, query: RecordQuery, form: str) -> None:
    """Read the view again, as far as a file goes, and hand it to the browser."""
    newest = query.but(start="last") if query.start == "live" else query
    reader = RecordReader(services.admin, services.fetcher, newest)
    await reader.open()
    page = await reader.page(newest.limit if newest.start == "last" else EXPORT_MAX)
    words, media = _FORMS[form]
    ui.download.content(words(page.records), f"{query.topic}.{form}", media)
    if not page.is_end and newest.start != "last":
        toast(f"The file ends after {count(len(page.records))} records; the command goes on.", "plain")
