"""The list of records, as the browser draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nicegui import ui

from headrace.client.fetching import FetchedRecord
from headrace.console.decoding import as_kind, decode
from headrace.console.page import link_to, named
from headrace.console.words import size

SHOWN_MAX = 1000
"""Records that stay in the list while it grows; the oldest leave."""
_PREVIEW = 300


class RecordList(ui.element, component="assets/record_list.js"):
    """Shows records; a line opens when it is clicked, which `on_expand` is told."""

    def __init__(self) -> None:
        super().__init__()
        self._props["most"] = SHOWN_MAX
        self.on_gone: Callable[[], None] | None = None
        """Called when the list is no longer on a page, because the person or the page went."""

    def _handle_delete(self) -> None:
        if self.on_gone is not None:
            self.on_gone()
        super()._handle_delete()

    def fill(self, records: Iterable[FetchedRecord]) -> None:
        """These, instead of what is there."""
        self.run_method("fill", [line_of(record) for record in records])

    def more(self, records: Iterable[FetchedRecord]) -> None:
        """These too, below."""
        self.run_method("more", [line_of(record) for record in records])

    def prepend(self, records: Iterable[FetchedRecord]) -> None:
        """These too, on top: the newest first."""
        self.run_method("prepend", [line_of(record) for record in records])

    def show(self, record: FetchedRecord, kind: str) -> None:
        """All of one record, in its line."""
        self.run_method("detail", _id(record), detail_of(record, kind))


def _id(record: FetchedRecord) -> str:
    return f"{record.partition}-{record.offset}"


def line_of(record: FetchedRecord) -> dict[str, Any]:
    """What a line shows of a record: the beginning of it."""
    key, value = decode(record.key), decode(record.value)
    return {
        "id": _id(record),
        "p": record.partition,
        "o": record.offset,
        "t": record.timestamp,
        "k": key.text[:_PREVIEW],
        "kk": key.kind,
        "v": " ".join(value.text[:_PREVIEW].split()),
        "vk": value.kind,
    }


def detail_of(record: FetchedRecord, kind: str) -> dict[str, Any]:
    """All of a record; `kind` is json, text or hex, or empty for what fits."""
    found = decode(record.value).kind
    chosen = kind or ("hex" if found == "hex" else "json" if found == "json" else "text")
    address = named("/topics/{}", record.topic)
    href = link_to(address, **{"from": "offset", "partition": record.partition, "offset": record.offset, "limit": 1})
    return {
        "as": chosen,
        "key": None if record.key is None else as_kind(record.key, "json"),
        "value": "null" if record.value is None else as_kind(record.value, chosen),
        "headers": [[name, "null" if value is None else as_kind(value, "json")] for name, value in record.headers],
        "size": f"{found}, {size(len(record.value or b''))}",
        "href": href,
    }
