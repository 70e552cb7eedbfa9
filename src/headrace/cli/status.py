"""`headrace status`: the servers of this machine and whether they answer, and the cluster the tools talk to."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from headrace.cli import gateways, nodes
from headrace.cli.local_cluster import stopped_nodes
from headrace.cli.node_choice import DATA_HELP, choose_nodes
from headrace.cli.node_table import node_document, print_nodes
from headrace.cli.profile import current, load_profile
from headrace.cli.running import RunningServer, running_gateways, running_servers
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session
    from headrace.cli.tool import Values

TOOL = Tool(
    name="headrace status",
    summary="Show the nodes that run here, or those of the cluster that is named.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="data", short="d", argument="directory", help=DATA_HELP),
    ),
    examples=(("What runs here", ""), ("The nodes of another cluster", "--bootstrap-server kafka.example:9092")),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _status, is_own=True)


async def _status(session: Session) -> int:
    servers = _servers_here(session.values)
    statuses = await nodes.statuses(servers)
    missing = stopped_nodes(servers)
    if missing:
        statuses += [nodes.STOPPED] * len(missing)
        servers += missing
    if not servers:
        with session.waiting():
            servers = await _nodes_of_the_cluster(session)
        statuses = [nodes.RUNNING] * len(servers)
    order = sorted(range(len(servers)), key=lambda place: (servers[place].node_id, servers[place].pid))
    servers, statuses = [servers[place] for place in order], [statuses[place] for place in order]
    print_nodes(session.report, servers, statuses)
    for server, status in zip(servers, statuses, strict=True):
        if status == nodes.SILENT:
            print(nodes.advice(server), file=sys.stderr)
    document: dict[str, Any] = {"nodes": list(map(node_document, servers, statuses))}
    saved = load_profile(None).get("bootstrap.servers")
    if saved:
        name = "HEADRACE_BOOTSTRAP_SERVERS" if os.environ.get("HEADRACE_BOOTSTRAP_SERVERS") else current()
        session.report.line(f"\nThe tools talk to {saved} ({name}).")
        document |= {"bootstrapServers": saved, "profile": name}
    statuses += await _show_gateways(session, servers, document)
    session.report.data(document)
    return 0 if all(status == nodes.RUNNING for status in statuses) else 1


def _servers_here(values: Values) -> list[RunningServer]:
    """The servers of this machine, if no other cluster is named; Failure if none has the data that is."""
    data = values.get("data")
    if values.has("bootstrap-server") or values.has("profile"):
        return []
    found = choose_nodes(running_servers(), data=data)
    if data is not None and not found:
        raise Failure(f"Nothing runs in {data}.", remedy=f"Start it with: {nodes.typed_name()} start --data {data}")
    return found


async def _show_gateways(session: Session, servers: Sequence[RunningServer], document: dict[str, Any]) -> list[str]:
    """The gateways of this machine before any of these servers, and what they are at."""
    addresses = {server.address for server in servers}
    found = [one for one in running_gateways() if addresses & {*one.brokers.split(",")}]
    statuses = await gateways.gateway_statuses(found)
    for gateway, status in zip(found, statuses, strict=True):
        session.report.line(f"{gateways.shown_gateway(gateway)} ({status})")
    if found:
        document["gateways"] = list(map(gateways.gateway_document, found, statuses))
    return statuses


async def _nodes_of_the_cluster(session: Session) -> list[RunningServer]:
    """The brokers of the cluster that is named, as servers of which we know no more than their address."""
    if not session.properties().get("bootstrap.servers") and not session.values.has("bootstrap-server"):
        raise Failure("No server of yours runs on this machine.", remedy=f"Start one with: {nodes.typed_name()} start")
    metadata = await session.cluster.metadata(())
    brokers = sorted(metadata.brokers, key=lambda broker: broker.node_id)
    return [
        RunningServer(node_id=one.node_id, process_roles="", pid=0, address=f"{one.host}:{one.port}") for one in brokers
    ]
