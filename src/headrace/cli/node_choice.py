"""Which of the nodes that run here somebody means: all of them, those of some data, or the one of an id."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.local_cluster import cluster_of
from headrace.cli.nodes import shown_path
from headrace.cli.session import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.running import RunningServer

DATA_HELP = "Only what keeps its data there: the directory of a node, or that of a cluster."


def choose_nodes(
    servers: Sequence[RunningServer], *, node_id: int | None = None, data: str | None = None
) -> list[RunningServer]:
    """Those that are meant, perhaps none; Failure if an id means several nodes, which are of different clusters."""
    meant = [server for server in servers if node_id in {None, server.node_id}]
    if data is not None:
        directory = (Path.cwd() / data).resolve()
        meant = [server for server in meant if directory in _directories(server)]
    if node_id is not None and len(meant) > 1:
        named = " and ".join(sorted(map(shown_data, meant)))
        raise Failure(f"Several nodes {node_id} run here: {named}.", remedy="Say which one with --data.")
    return meant


def shown_data(server: RunningServer) -> str:
    """Where a server keeps its data, as a person in this directory would type it."""
    return ",".join(map(shown_path, server.data.split(",")))


def _directories(server: RunningServer) -> list[Path]:
    """Where a server is: its log directories, and the directory of its cluster."""
    cluster = cluster_of(server)
    found = [Path(path) for path in server.data.split(",") if path]
    return [path.resolve() for path in (*found, *([cluster.directory] if cluster else []))]
