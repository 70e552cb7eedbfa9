"""Quorum: who leads the controllers, who votes, who follows, and how far each has read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from nicegui import ui

from headrace.client.admin_values import QuorumDescription
from headrace.console.data_brokers import QuorumRow, quorum_rows
from headrace.console.data_table import Column, DataTable
from headrace.console.equivalents import Equivalent, admin, command
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import Live
from headrace.console.page import Page, Visit
from headrace.console.states import card, figure, heading
from headrace.console.words import count, duration, several

_EVERY_S = 2.0
_TONES = {"leader": "accent", "voter": "good", "observer": "plain"}


def _ago(passed_ms: float) -> str:
    return f"{duration(passed_ms / 1000)} ago"


_COLUMNS = (
    Column(name="node_id", label="Node"),
    Column(name="role", label="Role", tone=lambda row: _TONES[row["role"]]),
    Column(name="log_end_offset", label="Log end", show=count, is_number=True),
    Column(name="lag", label="Lag", show=count, is_number=True),
    Column(name="fetched_ms", label="Asked last", show=_ago, is_number=True, is_wide=True),
    Column(name="caught_up_ms", label="Had everything", show=_ago, is_number=True, is_wide=True),
    Column(name="endpoints", label="Endpoints", is_wide=True),
    Column(name="directory_id", label="Directory id", is_wide=True),
)


def _build(visit: Visit) -> None:
    with heading("Quorum", "The controllers, which keep the cluster's metadata in a log of their own"):
        pass
    Live(visit.services.admin.describe_metadata_quorum, partial(_show, visit), every_s=_EVERY_S)
    EquivalentsPanel(
        Equivalent(
            cli=command("kafka-metadata-quorum", options={"bootstrap-server": visit.bootstrap})
            + " describe --replication --human-readable",
            curl=visit.where.curl(visit.where.v3("/metadata-quorum")),
            python=admin(visit.bootstrap, "print(admin.describe_metadata_quorum())"),
        )
    )


def _show(visit: Visit, quorum: QuorumDescription) -> Callable[[QuorumDescription], None]:
    with ui.element("div").classes("hr-figures"):
        changes = [figure(label, *words(quorum)) for label, words in _FIGURES.items()]
    with card("Nodes", "The leader first, then those with a vote, then those that only read"):
        table = DataTable(visit, _COLUMNS, _rows(quorum), key="node_id")
        # They come in an order of their own.
        table.table.props("binary-state-sort").pagination = {"rowsPerPage": 0, "sortBy": None}

    def update(fresh: QuorumDescription) -> None:
        table.update(_rows(fresh))
        for change, words in zip(changes, _FIGURES.values(), strict=True):
            change(*words(fresh))

    return update


def _rows(quorum: QuorumDescription) -> list[dict[str, Any]]:
    return [asdict(one) for one in _known(quorum)]


def _known(quorum: QuorumDescription) -> list[QuorumRow]:
    return quorum_rows(quorum, int(time.time() * 1000))


def _lag(quorum: QuorumDescription) -> tuple[str, str]:
    rows = [one for one in _known(quorum) if one.role != "leader"]
    slowest = max(rows, key=lambda row: row.lag, default=None)
    return ("0", "alone") if slowest is None else (count(slowest.lag), f"node {slowest.node_id}")


_FIGURES: dict[str, Callable[[QuorumDescription], tuple[str, str]]] = {
    "Leader": lambda quorum: (f"Node {quorum.leader_id}", f"epoch {quorum.leader_epoch}"),
    "High watermark": lambda quorum: (count(quorum.high_watermark), "what a majority has"),
    "Members": lambda quorum: (several(len(quorum.voters), "voter"), several(len(quorum.observers), "observer")),
    "Largest lag": _lag,
}

PAGES = (Page(path="/quorum", title="Quorum", icon="hub", section="Cluster", key="u", build=_build),)
