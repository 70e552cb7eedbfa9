"""`headrace add-broker`: one node more for a cluster that `headrace start -n` started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli import nodes
from headrace.cli.local_cluster import PORT, LocalCluster, NoPortFree, cluster_of, free_ports
from headrace.cli.node_launch import bring_up
from headrace.cli.node_table import node_document, print_nodes
from headrace.cli.profile import DEFAULT, load_profile, save_profile
from headrace.cli.running import running_servers
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import Option, Tool, UsageError, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

TOOL = Tool(
    name="headrace add-broker",
    summary="Start one more broker of the cluster that `headrace start -n` started.",
    options=(
        Option(name="port", short="p", argument="port", help="Where it listens, instead of the next free one."),
        Option(name="data", short="d", argument="directory", help="Which cluster, where several run."),
    ),
    examples=(("One broker more", ""),),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _add, check=_check, is_own=True)


def _check(values: Values) -> None:
    if values.words:
        raise UsageError(f"'{values.words[0]}' is not understood here")
    port = values.number("port")
    if port is not None and not 0 < port < 65_535:
        raise UsageError(f"{port} cannot be the port of a broker")


async def _add(session: Session) -> int:
    cluster = _running_cluster(session.values.get("data"))
    before = [plan for plan in cluster.plans() if nodes.find_running(plan.expected())]
    node = cluster.add(_port(cluster, session.values.number("port")))
    try:
        (added,) = await bring_up([cluster.plan(node)], among=before)
    except Failure:
        if nodes.find_running(cluster.plan(node).expected()) is None:
            # What could not start would not start with the others next time.
            cluster.leave(node)
        raise
    _remember(added.address, {plan.expected().address for plan in before})
    shown = [nodes.find_running(plan.expected()) or plan.expected() for plan in cluster.plans()]
    statuses = [nodes.RUNNING if nodes.find_running(one) else nodes.STOPPED for one in shown]
    print_nodes(session.report, shown, statuses)
    session.report.line(f"\nIt has no partitions yet. To give it its share: {nodes.typed_name()} rebalance")
    session.report.data({"added": node, "nodes": list(map(node_document, shown, statuses))})
    return 0


def _running_cluster(data: str | None) -> LocalCluster:
    found = {
        cluster.directory: cluster
        for server in running_servers()
        if server.by_start and (cluster := cluster_of(server))
    }
    if data is not None:
        found = {path: one for path, one in found.items() if path.resolve() == nodes.cluster_directory(data).resolve()}
    if not found:
        raise Failure(
            "No cluster runs here that `headrace start -n` started.",
            remedy=f"Start one with: {nodes.typed_name()} start -n 3",
        )
    if len(found) > 1:
        named = ", ".join(sorted(nodes.shown_path(str(path)) for path in found))
        raise Failure(f"Several clusters run here: {named}.", remedy="Say which one with --data.")
    return next(iter(found.values()))


def _port(cluster: LocalCluster, wanted: int | None) -> int:
    """The port that is asked for, or the first free one after those of the others."""
    taken = [int(plan.expected().address.rpartition(":")[2]) for plan in cluster.plans()]
    try:
        (port,) = free_ports(1, first=wanted or max([PORT, *taken]))
    except NoPortFree:
        raise Failure("There is no free port.", remedy="Choose one with --port.") from None
    if wanted is not None and port != wanted:
        raise Failure(f"Something listens on port {wanted} or {wanted + 1} already.", remedy="Choose another --port.")
    return port


def _remember(address: str, others: set[str]) -> None:
    """Let the tools know the new address too, if they talk to this cluster, whose others are at these."""
    saved = load_profile(DEFAULT).get("bootstrap.servers", "")
    if others & {*saved.split(",")} and address not in saved.split(","):
        save_profile(DEFAULT, {"bootstrap.servers": f"{saved},{address}"})
