"""Brokers: who is there, what each leads and holds; and one of them with its directories and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from nicegui import ui

from headrace.client.admin_values import ConfigEntry, LogDirDescription
from headrace.console.data_brokers import BrokerDetail, BrokerView, load_broker, load_brokers
from headrace.console.data_table import Column, DataTable
from headrace.console.equivalents import Equivalent, admin, command
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import Live
from headrace.console.page import Page, Visit, named
from headrace.console.states import card, empty, figure, heading
from headrace.console.words import count, several, size

_EVERY_S = 5.0
_LARGEST = 200
_SOURCES = {
    1: "topic",
    2: "this broker, changed while it runs",
    3: "all brokers, changed while they run",
    4: "its file",
    5: "default",
    6: "logger",
}

_COLUMNS = (
    Column(name="node_id", label="Broker", href=lambda row: named("/brokers/{}", str(row["node_id"]))),
    Column(name="address", label="Address"),
    Column(
        name="role", label="Role", tone=lambda row: "accent" if row["role"] == "controller" else "plain", is_wide=True
    ),
    Column(name="rack", label="Rack", is_wide=True),
    Column(name="leaders", label="Leads", show=count, is_number=True),
    Column(name="replicas", label="Replicas", show=count, is_number=True, is_wide=True),
    Column(
        name="behind",
        label="Not in sync",
        show=count,
        is_number=True,
        tone=lambda row: "bad" if row["behind"] else None,
    ),
    Column(name="size_bytes", label="Size", show=size, is_number=True, is_wide=True),
)


def _build(visit: Visit) -> None:
    with heading("Brokers", "What each of them leads and holds"):
        pass
    Live(lambda: load_brokers(visit.services), partial(_show, visit), every_s=_EVERY_S)
    EquivalentsPanel(
        Equivalent(
            cli=command("kafka-log-dirs", "--describe", options={"bootstrap-server": visit.bootstrap}),
            curl=visit.where.curl(visit.where.v3("/brokers")),
            python=admin(visit.bootstrap, "print(admin.describe_cluster())", "print(admin.describe_log_dirs())"),
        )
    )


def _show(visit: Visit, brokers: Sequence[BrokerView]) -> Callable[[Sequence[BrokerView]], None]:
    with ui.element("div").classes("hr-figures"):
        changes = [figure(label, *words(brokers)[:2]) for label, words in _FIGURES.items()]
    with card():
        table = DataTable(visit, _COLUMNS, map(_row, brokers), key="node_id")

    def update(fresh: Sequence[BrokerView]) -> None:
        table.update(map(_row, fresh))
        for change, words in zip(changes, _FIGURES.values(), strict=True):
            change(*words(fresh))

    return update


def _behind(brokers: Sequence[BrokerView]) -> tuple[str, str, str]:
    behind = sum(one.behind for one in brokers)
    return count(behind), "replicas" if behind else "everybody has everything", "bad" if behind else ""


_FIGURES: dict[str, Callable[[Sequence[BrokerView]], tuple[str, ...]]] = {
    "Brokers": lambda brokers: (count(len(brokers)), "in the cluster"),
    "Partitions": lambda brokers: (
        count(sum(one.leaders for one in brokers)),
        several(sum(one.replicas for one in brokers), "replica"),
    ),
    "Not in sync": _behind,
    "Size on disk": lambda brokers: (size(sum(one.size_bytes or 0 for one in brokers)), "all replicas together"),
}


def _row(broker: BrokerView) -> dict[str, Any]:
    return {
        **asdict(broker),
        "address": f"{broker.host}:{broker.port}",
        "role": "controller" if broker.is_controller else "broker",
    }


# --- one broker


def _build_one(visit: Visit) -> None:
    number = visit.path["broker"]
    with heading(f"Broker {number}", back=("/brokers", "Brokers")):
        pass
    if not number.isdigit():
        with empty("dns", "There is no such broker", "Brokers have numbers."):
            ui.button("All brokers", on_click=lambda: ui.navigate.to("/brokers")).props("unelevated no-caps")
        return
    node_id = int(number[:10])
    Live(lambda: load_broker(visit.services, node_id), partial(_show_one, visit), every_s=2 * _EVERY_S)
    resource = f'ConfigResource("BROKER", "{node_id}")'
    EquivalentsPanel(
        Equivalent(
            cli=command(
                "kafka-configs",
                "--describe",
                options={
                    "bootstrap-server": visit.bootstrap,
                    "entity-type": "brokers",
                    "entity-name": node_id,
                    "all": True,
                },
            ),
            curl=visit.where.curl(visit.where.v3(f"/brokers/{node_id}/configs")),
            python=admin(
                visit.bootstrap,
                f"print(admin.describe_log_dirs([{node_id}]))",
                f"print(admin.describe_configs([{resource}]))",
                imports="ConfigResource, KafkaAdmin",
            ),
        )
    )


def _standing(broker: BrokerView) -> list[str]:
    """Where a broker stands, and whether it leads the cluster."""
    return [
        f"rack {broker.rack}" if broker.rack else "no rack",
        *(["active controller"] if broker.is_controller else []),
    ]


def _show_one(visit: Visit, detail: BrokerDetail) -> Callable[[BrokerDetail], None]:
    broker = detail.broker
    with ui.element("div").classes("hr-figures"):
        figure("Address", f"{broker.host}:{broker.port}", ", ".join(_standing(broker)))
        figure("Leads", count(broker.leaders), f"of {several(broker.replicas, 'replica')} it has")
        figure("Not in sync", count(broker.behind), "behind their leaders" if broker.behind else "all is well")
        figure("Size on disk", size(broker.size_bytes), "all its replicas together")
    with card("Log directories"):
        dirs = DataTable(visit, _DIR_COLUMNS, map(_dir_row, detail.log_dirs), key="path")
    with card("Replicas", "The largest first"):
        replicas = DataTable(
            visit,
            _REPLICA_COLUMNS,
            _replica_rows(detail.log_dirs),
            key="name",
            search="Search replicas",
            query="replica",
            sort="size",
            descending=True,
        )
    with card("Settings"):
        configs = DataTable(
            visit, _CONFIG_COLUMNS, map(_config_row, detail.configs), key="name", search="Search settings"
        )

    def update(fresh: BrokerDetail) -> None:
        dirs.update(map(_dir_row, fresh.log_dirs))
        replicas.update(_replica_rows(fresh.log_dirs))
        configs.update(map(_config_row, fresh.configs))

    return update


_DIR_COLUMNS = (
    Column(name="path", label="Directory"),
    Column(name="state", label="State", tone=lambda row: "good" if row["state"] == "usable" else "bad"),
    Column(name="replicas", label="Replicas", show=count, is_number=True),
    Column(name="size", label="Size", show=size, is_number=True),
    Column(name="free", label="Free", show=size, is_number=True),
    Column(name="total", label="Of the disk", show=size, is_number=True, is_wide=True),
)
_REPLICA_COLUMNS = (
    Column(name="name", label="Partition", href=lambda row: named("/topics/{}", row["topic"])),
    Column(name="size", label="Size", show=size, is_number=True),
    Column(name="lag", label="Behind", show=count, is_number=True),
    Column(name="directory", label="Directory", is_wide=True),
)
_CONFIG_COLUMNS = (
    Column(name="name", label="Setting"),
    Column(name="value", label="Value"),
    Column(
        name="source", label="From", tone=lambda row: "plain" if row["source"] == "default" else "accent", is_wide=True
    ),
)


def _dir_row(directory: LogDirDescription) -> dict[str, Any]:
    return {
        "path": directory.path,
        "state": directory.error or "usable",
        "replicas": len(directory.replicas),
        "size": sum(one.size_bytes for one in directory.replicas),
        "free": None if directory.usable_bytes < 0 else directory.usable_bytes,
        "total": None if directory.total_bytes < 0 else directory.total_bytes,
    }


def _replica_rows(directories: Sequence[LogDirDescription]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "name": f"{one.partition.topic}-{one.partition.partition}" + (" (moving here)" if one.is_future else ""),
            "topic": one.partition.topic,
            "size": one.size_bytes,
            "lag": one.offset_lag,
            "directory": directory.path,
        }
        for directory in directories
        for one in directory.replicas
    ]
    return sorted(rows, key=lambda row: -row["size"])[:_LARGEST]


def _config_row(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": "(kept secret)" if entry.is_sensitive else entry.value,
        "source": _SOURCES.get(entry.source, "default" if entry.is_default else "set"),
    }


PAGES = (
    Page(path="/brokers", title="Brokers", icon="dns", section="Cluster", key="b", build=_build),
    Page(path="/brokers/{broker}", title="Broker", section="/brokers", build=_build_one),
)
