"""Transactions: all transactional ids, one of them, and what hangs, with a way to end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from nicegui import ui

from headrace.client.admin_values import HangingTransaction
from headrace.client.records import TopicPartition
from headrace.console import transaction_equivalents
from headrace.console.confirmation import confirm
from headrace.console.data_table import Column, DataTable
from headrace.console.data_transactions import (
    AT_REST,
    TransactionDetail,
    TransactionRow,
    load_transaction,
    load_transactions,
)
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import Live
from headrace.console.page import Page, Visit, named
from headrace.console.states import card, chip, empty, figure, heading
from headrace.console.words import count, duration, moment
from headrace.gateway.v3_transactions import find_hanging

_EVERY_S = 3.0
_SILENT_MINUTES = 15.0
_TONES = {"Ongoing": "accent", "PrepareCommit": "warn", "PrepareAbort": "warn", "PrepareEpochFence": "warn"}


def _seconds(passed_ms: float) -> str:
    return duration(passed_ms / 1000)


_COLUMNS = (
    Column(
        name="transactional_id",
        label="Transactional id",
        href=lambda row: named("/transactions/{}", row["transactional_id"]),
    ),
    Column(name="state", label="State", tone=lambda row: _TONES.get(row["state"], "plain")),
    Column(name="open_ms", label="Open for", show=_seconds, is_number=True),
    Column(name="partitions", label="Partitions", show=count, is_number=True, is_wide=True),
    Column(name="producer_id", label="Producer", is_number=True, is_wide=True),
    Column(name="coordinator_id", label="Coordinator", is_number=True, is_wide=True),
)


# --- all of them


def _build(visit: Visit) -> None:
    with heading("Transactions", "Producers that write to several partitions at once, or not at all"):
        pass
    Live(lambda: load_transactions(visit.services), partial(_show, visit), every_s=_EVERY_S)
    _hanging_card(visit)
    EquivalentsPanel(transaction_equivalents.listing(visit.where))


def _show(visit: Visit, rows: Sequence[TransactionRow]) -> Callable[[Sequence[TransactionRow]], None] | None:
    if not rows:
        sentence = "A producer with a transactional.id appears here with its first transaction."
        with empty("sync_alt", "No transactions yet", sentence):
            pass
        return None
    with ui.element("div").classes("hr-figures"):
        changes = [figure(label, *words(rows)) for label, words in _FIGURES.items()]
    with card():
        table = DataTable(visit, _COLUMNS, map(asdict, rows), key="transactional_id", search="Search transactional ids")

    def update(fresh: Sequence[TransactionRow]) -> None:
        if not fresh:
            return
        table.update(map(asdict, fresh))
        for change, words in zip(changes, _FIGURES.values(), strict=True):
            change(*words(fresh))

    return update


def _oldest(rows: Sequence[TransactionRow]) -> tuple[str, str]:
    oldest = max(rows, key=lambda row: row.open_ms or -1)
    return ("–", "nothing is open") if oldest.open_ms is None else (_seconds(oldest.open_ms), oldest.transactional_id)


_FIGURES: dict[str, Callable[[Sequence[TransactionRow]], tuple[str, str]]] = {
    "Transactional ids": lambda rows: (count(len(rows)), "known to their coordinators"),
    "Open now": lambda rows: (count(sum(row.state not in AT_REST for row in rows)), "neither committed nor aborted"),
    "Open for longest": _oldest,
}


# --- what hangs


def _hanging_card(visit: Visit) -> None:
    """Asked for by a person: it looks into every partition."""
    with card(
        "Hanging transactions", "Open in a partition, and known to no coordinator: readers wait for them for ever"
    ):
        with ui.element("div").classes("hr-row"):
            minutes = ui.number("Silent for minutes", value=_minutes(visit), min=0, format="%g")
            minutes.props("outlined dense").style("width: 170px")
            button = ui.button("Look for them", icon="search").props("flat no-caps").classes("hr-plain")
        place = ui.element("div").classes("hr-live")
    panel = EquivalentsPanel(
        transaction_equivalents.search(visit.where, _minutes(visit)), title="Look for them elsewhere"
    )

    def look() -> None:
        silent = _SILENT_MINUTES if minutes.value is None else max(float(minutes.value), 0.0)
        visit.remember(hanging=f"{silent:g}")
        panel.change(transaction_equivalents.search(visit.where, silent))
        place.clear()
        with place:
            Live(partial(find_hanging, visit.services, silent_minutes=silent), partial(_show_hanging, visit, look))

    button.on_click(look)
    if "hanging" in visit.query:
        ui.timer(0.01, look, once=True)


def _minutes(visit: Visit) -> float:
    try:
        return max(float(visit.query.get("hanging", _SILENT_MINUTES)), 0.0)
    except ValueError:
        return _SILENT_MINUTES


def _show_hanging(visit: Visit, again: Callable[[], None], found: Sequence[HangingTransaction]) -> None:
    if not found:
        with ui.element("div").classes("hr-row").style("margin-top: 12px"):
            chip("none", "good")
            ui.label("Nothing hangs.").classes("hr-note")
        return
    for one in found:
        where = f"{one.partition.topic}-{one.partition.partition}"
        with ui.element("div").classes("hr-row hr-hanging").style("margin-top: 12px"):
            chip("hangs", "bad")
            ui.link(where, named("/topics/{}", one.partition.topic)).classes("hr-link")
            ui.label(
                f"from offset {count(one.producer.transaction_start_offset)}, producer {one.producer.producer_id}, "
                f"last heard of {moment(one.producer.last_timestamp)}"
            ).classes("hr-note hr-grow")
            ui.button("Abort", icon="block", on_click=partial(_ask_abort, visit, one, again)).props(
                f'flat no-caps aria-label="Abort in {where}"'
            ).classes("hr-plain")


def _ask_abort(visit: Visit, hanging: HangingTransaction, again: Callable[[], None]) -> None:
    topic, partition = hanging.partition
    start = hanging.producer.transaction_start_offset
    confirm(
        "Abort a hanging transaction",
        f"What producer {hanging.producer.producer_id} wrote to {topic}-{partition} from offset {start} on is never "
        "read by those who read only what is committed; they go on behind it.",
        name=topic,
        verb="Abort",
        act=partial(visit.services.admin.abort_transaction, hanging),
        done=f"Aborted in {topic}-{partition}.",
        equivalent=transaction_equivalents.abortion_of_hanging(visit.where, topic, partition, start),
        then=again,
    )


# --- one of them


def _build_one(visit: Visit) -> None:
    name = visit.path["transaction"]
    with heading(name, "Transactional id", back=("/transactions", "Transactions")):
        button = ui.button("Abort", icon="block").props("flat no-caps").classes("hr-plain")
    button.set_visibility(False)

    async def load() -> TransactionDetail:
        detail = await load_transaction(visit.services, name)
        button.set_visibility(True)  # where nobody has used the id, there is nothing to abort
        return detail

    live = Live(load, partial(_show_one, visit), every_s=_EVERY_S)
    button.on_click(partial(_ask_end, visit, name, live))
    EquivalentsPanel(transaction_equivalents.description(visit.where, name))


def _show_one(visit: Visit, detail: TransactionDetail) -> Callable[[TransactionDetail], None]:
    with ui.element("div").classes("hr-figures"):
        changes = [figure(label, *words(detail)) for label, words in _DETAILS.items()]
    with card("Partitions", "In the open transaction"):
        table = DataTable(visit, _PARTITION_COLUMNS, _partition_rows(detail), key="name")

    def update(fresh: TransactionDetail) -> None:
        table.update(_partition_rows(fresh))
        for change, words in zip(changes, _DETAILS.values(), strict=True):
            change(*words(fresh))

    return update


_DETAILS: dict[str, Callable[[TransactionDetail], tuple[str, str]]] = {
    "State": lambda detail: (detail.description.state, f"coordinator {detail.description.coordinator_id}"),
    "Open for": lambda detail: (
        ("–", "nothing is open")
        if detail.open_ms is None
        else (_seconds(detail.open_ms), f"since {moment(detail.description.started_ms)[11:19]}")
    ),
    "Times out after": lambda detail: (duration(detail.description.timeout_ms / 1000), "then it is aborted"),
    "Producer": lambda detail: (str(detail.description.producer_id), f"epoch {detail.description.producer_epoch}"),
}


def _partition_rows(detail: TransactionDetail) -> list[dict[str, Any]]:
    return [_partition_row(one, detail) for one in detail.description.partitions]


_PARTITION_COLUMNS = (
    Column(name="name", label="Partition", href=lambda row: named("/topics/{}", row["topic"])),
    Column(name="start", label="Begins at offset", show=count, is_number=True),
    Column(name="last", label="Last record", show=moment, is_wide=True),
)


def _partition_row(place: TopicPartition, detail: TransactionDetail) -> dict[str, Any]:
    producer = detail.starts.get(place)
    return {
        "name": f"{place.topic}-{place.partition}",
        "topic": place.topic,
        "start": None if producer is None else producer.transaction_start_offset,
        "last": None if producer is None else producer.last_timestamp,
    }


def _ask_end(visit: Visit, name: str, live: Live[TransactionDetail]) -> None:
    confirm(
        "Abort this transaction",
        "What it has written is never read by those who read only what is committed. The producer is fenced: it has "
        "to begin anew.",
        name=name,
        verb="Abort",
        act=partial(visit.services.admin.force_terminate_transaction, name),
        done="The transaction was aborted.",
        equivalent=transaction_equivalents.abortion(visit.where, name),
        then=lambda: ui.timer(0.01, live.look, once=True),
    )


PAGES = (
    Page(path="/transactions", title="Transactions", icon="sync_alt", key="x", build=_build),
    Page(path="/transactions/{transaction:path}", title="Transaction", section="/transactions", build=_build_one),
)
