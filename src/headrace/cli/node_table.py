"""Nodes as a table, the same for every command that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.colours import BOLD, GREEN, RED, YELLOW, paint
from headrace.cli.node_choice import shown_data
from headrace.cli.nodes import COLUMNS, RUNNING, SILENT, STARTING, STOPPED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.report import Report
    from headrace.cli.running import RunningServer

_COLOURS = {RUNNING: GREEN, STARTING: YELLOW, STOPPED: RED, SILENT: RED}


def print_nodes(report: Report, servers: Sequence[RunningServer], statuses: Sequence[str]) -> None:
    """One line per node under a heading."""
    rows = [
        (str(server.node_id), status, server.address or "-", shown_data(server) or "-")
        for server, status in zip(servers, statuses, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    report.line(paint(_padded(COLUMNS, widths), BOLD))
    for row in rows:
        plain = _padded(row, widths)
        report.line(plain.replace(row[1], paint(row[1], _COLOURS.get(row[1], "")), 1))


def _padded(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True)).rstrip()


def node_document(server: RunningServer, status: str) -> dict[str, object]:
    """A node for programs."""
    return {
        "nodeId": server.node_id,
        "status": status,
        "address": server.address,
        "data": server.data.split(",") if server.data else [],
        "pid": server.pid,
    }
