"""`headrace start`: a broker or several in the background, their addresses remembered, and what to type next."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from typing import TYPE_CHECKING

from headrace.cli import gateways, nodes
from headrace.cli.colours import CYAN, paint
from headrace.cli.extras import ensure_extra, has_extra
from headrace.cli.layout import log_directory, project_root
from headrace.cli.local_cluster import PORT, LocalCluster, NoPortFree, cluster_of, free_ports, stopped_nodes
from headrace.cli.node_launch import bring_up
from headrace.cli.node_table import node_document, print_nodes
from headrace.cli.profile import DEFAULT, current, save_profile
from headrace.cli.running import running_servers
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import Option, Tool, UsageError, Values
from headrace.storage.meta_properties import META_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headrace.cli.running import RunningGateway, RunningServer
    from headrace.cli.session import Session

_PATIENCE_S = 120.0
"""How long a broker may take to recover its logs before we stop watching; it goes on without us."""
_SILENT_S = 2.0
_PAUSE_S = 0.05
_PORT_MAX = 65534
_NODES_MAX = 100
"""More would be a mistake of typing."""

TOOL = Tool(
    name="headrace start",
    summary="Start a broker, or a cluster of several, in the background and remember its address, so that "
    "--bootstrap-server may be left out.",
    options=(
        Option(name="nodes", short="n", argument="number", default="1", help="How many nodes the cluster has."),
        Option(
            name="port",
            short="p",
            argument="port",
            help="Where it listens, instead of 9092; the nodes of a cluster on this port and every second after it.",
        ),
        Option(name="data", short="d", argument="directory", help="Where it keeps its data."),
        Option(name="gateway", short="g", help="Start a gateway too: REST, streams and console on port 8082."),
        Option(name="no-gateway", help="Start none, although it is installed."),
    ),
    examples=(
        ("A broker on localhost:9092", ""),
        ("Three brokers that keep three copies of everything", "-n 3"),
        ("With REST, streams and the web console, which are installed if they are not", "--gateway"),
        ("Another port, other data", "--port 19092 --data elsewhere"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _start, check=_check, is_own=True)


def _check(values: Values) -> None:
    if values.words:
        raise UsageError(f"'{values.words[0]}' is not understood here")
    port = values.number("port")
    if port is not None and not 0 < port <= _PORT_MAX:
        raise UsageError(f"{port} cannot be the port of a broker")
    if not 1 <= (values.number("nodes") or 0) <= _NODES_MAX:
        raise UsageError(f"A cluster on one machine has 1 to {_NODES_MAX} nodes")
    if values.has("gateway") and values.has("no-gateway"):
        raise UsageError("--gateway and --no-gateway cannot both be meant")


async def _start(session: Session) -> int:
    values = session.values
    if project_root() is None:
        # A package has no directory of its own to write to, and the current one is anybody's.
        os.environ.setdefault("LOG_DIR", str(nodes.base_directory() / "logs"))
    cluster = LocalCluster(nodes.cluster_directory(values.get("data")))
    if values.number("nodes") != 1 or (values.has("data") and cluster.nodes()):
        _make_if_new(cluster, values)
        plans = cluster.plans()
        with _beside(values, plans) as beside:
            started = await bring_up(plans)
    else:
        plan = nodes.plan_node(port=values.number("port"), data=values.get("data"))
        with _beside(values, [plan]) as beside:
            started = [await _bring_up(plan)]
            await _until_answering(started)
    failure = None
    try:
        gateway = beside()
    except Failure as reason:
        # The brokers run all the same.
        gateway, failure = None, reason
    _show(session, started, gateway)
    if failure is not None:
        raise failure
    return 0


@contextmanager
def _beside(values: Values, plans: Sequence[nodes.NodePlan]) -> Iterator[Callable[[], RunningGateway | None]]:
    """Start a gateway before the brokers, where one is wanted; what is given waits until it listens.

    It takes its time to come up and needs no broker for that, so both come up at once.
    """
    if not _wants_gateway(values):
        yield lambda: None
        return
    brokers = ",".join(plan.expected().address for plan in plans)
    running = gateways.find_gateway(brokers)
    if running is not None:
        yield lambda: running
        return
    launch = gateways.Launch(["--bootstrap-server", brokers, "--listen", gateways.free_url()], by_start=True)
    try:
        yield launch.listening
    except BaseException:
        launch.abandon()
        raise


def _wants_gateway(values: Values) -> bool:
    if values.has("gateway"):
        ensure_extra("client", "gateway")
        return True
    return not _declines_gateway(values) and has_extra("client", "gateway")


def _declines_gateway(values: Values) -> bool:
    return values.has("no-gateway") or os.environ.get(gateways.CHOICE, "") == "no"


def _make_if_new(cluster: LocalCluster, values: Values) -> None:
    """Write the settings of the nodes, or see that those which are there are meant."""
    count, port, where = values.number("nodes") or 1, values.number("port"), nodes.shown_path(str(cluster.directory))
    known = cluster.nodes()
    if known:
        if values.has("nodes") and len(known) != count:
            raise Failure(
                f"The cluster in {where} has {len(known)} nodes.",
                remedy=f"To start it: {nodes.typed_name()} start -n {len(known)}. For a node more, when it runs: "
                f"{nodes.typed_name()} add-broker. For another cluster: --data elsewhere.",
            )
        first = cluster.plan(known[0]).expected().address
        if port is not None and not first.endswith(f":{port}"):
            raise Failure(
                f"The cluster in {where} listens on {first} and on.",
                remedy="Its ports are in the server.properties of its nodes; they can be changed there.",
            )
        return
    if (cluster.directory / META_PROPERTIES).exists():
        raise Failure(
            f"{where} holds the data of a single node.", remedy="Name another directory with --data for the cluster."
        )
    if not values.has("data"):
        _refuse_beside_a_half(count)
    cluster.make(_ports(count, port))


def _refuse_beside_a_half(count: int) -> None:
    """Who starts a cluster of which a part runs wants the rest of it, and not another one in the usual place."""
    started = [server for server in running_servers() if server.by_start]
    for missing in stopped_nodes(started):
        half = cluster_of(missing)
        if half is not None and len(half.nodes()) == count:
            where = nodes.shown_path(str(half.directory))
            raise Failure(
                f"Node {missing.node_id} of the cluster in {where} is stopped, and others of it run.",
                remedy=f"To start what is missing: {nodes.typed_name()} start --data {where}. "
                "For another cluster: --data elsewhere.",
            )


def _ports(count: int, first: int | None) -> list[int]:
    """Where the nodes of a new cluster listen: those that were asked for, or free ones."""
    try:
        ports = free_ports(count, first=first or PORT)
    except NoPortFree:
        raise Failure("There are not enough free ports.", remedy="Choose a lower one with --port.") from None
    if first is not None and ports != list(range(first, first + 2 * count, 2)):
        raise Failure(
            f"The ports {first} to {first + 2 * count - 1} are not all free.",
            remedy=f"Choose another one: {nodes.typed_name()} start -n {count} --port 19092",
        )
    return ports


async def _bring_up(plan: nodes.NodePlan) -> RunningServer:
    """Start a node unless it runs; what it is."""
    node = plan.expected()
    running = nodes.find_running(node)
    if running is not None:
        if "listeners" in plan.overrides and running.address != node.address:
            raise Failure(
                f"Node {node.node_id} is running already on this data, and listens on {running.address}.",
                remedy=f"Stop it first ({nodes.typed_name()} stop), or give the new one data of its own with --data.",
            )
        if nodes.SILENT in await nodes.statuses([running]):
            raise Failure(f"Node {node.node_id} is running already, and does not answer.", remedy=nodes.advice(running))
        print(f"Node {node.node_id} is running already.", file=sys.stderr)
        return running
    if await nodes.is_taken(node.address):
        raise Failure(
            f"Something else listens on {node.address} already.",
            remedy=f"End it, or choose another port: {nodes.typed_name()} start --port 19092",
        )
    from headrace.cli import server_start

    os.environ[server_start.STARTED] = "1"
    if server_start.main(["-daemon", *plan.arguments()], "headrace start") != 0:
        raise Failure(f"Node {node.node_id} did not start.", remedy=f"Its whole log: {_log()}")
    return node


async def _until_answering(started: Sequence[RunningServer]) -> None:
    """Wait for every node, with a word to the person when it takes long."""
    from headrace.cli.progress import Progress

    loop = asyncio.get_running_loop()
    begin = loop.time()
    waiting = list(started)
    with ExitStack() as shown:
        told = False
        while waiting := [node for node in waiting if not await nodes.answers(node.address)]:
            _give_up_if_dead(waiting[0], loop.time() - begin)
            if not told and loop.time() - begin > _SILENT_S:
                told = True
                where = ", ".join(node.address for node in waiting)
                shown.enter_context(Progress()).say(f"waiting for {where} to answer")
            await asyncio.sleep(_PAUSE_S)


def _give_up_if_dead(node: RunningServer, waited_s: float) -> None:
    # In its first moments a server may not be listed yet.
    if waited_s > _SILENT_S and nodes.find_running(node) is None:
        raise Failure(f"Node {node.node_id} ended before it answered.", remedy=f"Its log says why: {_log()}")
    if waited_s > _PATIENCE_S:
        raise Failure(
            f"Node {node.node_id} does not answer on {node.address} after {_PATIENCE_S:.0f} s, but it is running.",
            remedy=f"Its log says what it does: {_log()}",
        )


def _log() -> str:
    return nodes.shown_path(str(log_directory() / "server.log"))


def _show(session: Session, started: Sequence[RunningServer], gateway: RunningGateway | None) -> None:
    addresses = ",".join(node.address for node in started)
    save_profile(DEFAULT, {"bootstrap.servers": addresses})
    shown = [nodes.find_running(node) or node for node in started]
    statuses = [nodes.RUNNING] * len(shown)
    print_nodes(session.report, shown, statuses)
    document = {"nodes": list(map(node_document, shown, statuses)), "bootstrapServers": addresses, "profile": DEFAULT}
    if gateway is not None:
        session.report.line(gateways.shown_gateway(gateway))
        document["gateways"] = [gateways.gateway_document(gateway, nodes.RUNNING)]
    _show_next(session, gateway)
    session.report.data(document)


def _show_next(session: Session, gateway: RunningGateway | None) -> None:
    name = nodes.typed_name()
    with nullcontext() if session.report.is_text else redirect_stdout(sys.stderr):
        if current() != DEFAULT:
            print(
                f"\nThe tools talk to the profile '{current()}'. To talk to this broker: {name} profile use {DEFAULT}"
            )
        print("\nWhat to type next:")
        for command in ("topics create events", "produce events", "consume events --from-beginning"):
            print("  " + paint(f"{name} {command}", CYAN))
        if gateway is None and not _declines_gateway(session.values) and not has_extra("client", "gateway"):
            print(f"`{name} start --gateway` adds REST, streams and a web console on port {gateways.PORT}.")
