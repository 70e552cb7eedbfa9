"""`headrace start`: a broker in the background, its address remembered, and what to type next."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, nullcontext, redirect_stdout
from typing import TYPE_CHECKING

from headrace.cli import nodes
from headrace.cli.colours import CYAN, paint
from headrace.cli.layout import log_directory, project_root
from headrace.cli.node_table import node_document, print_nodes
from headrace.cli.profile import DEFAULT, current, save_profile
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import Option, Tool, UsageError, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.running import RunningServer
    from headrace.cli.session import Session

_PATIENCE_S = 120.0
"""How long a broker may take to recover its logs before we stop watching; it goes on without us."""
_SILENT_S = 2.0
_PAUSE_S = 0.05
_PORT_MAX = 65534

TOOL = Tool(
    name="headrace start",
    summary="Start a broker in the background and remember its address, so that --bootstrap-server may be left out.",
    options=(
        Option(name="nodes", short="n", argument="number", default="1", help="How many nodes the cluster has."),
        Option(name="port", short="p", argument="port", help="Where it listens, instead of 9092."),
        Option(name="data", short="d", argument="directory", help="Where it keeps its data."),
    ),
    examples=(
        ("A broker on localhost:9092", ""),
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
    if (values.number("nodes") or 0) < 1:
        raise UsageError("A cluster has at least one node")


async def _start(session: Session) -> int:
    values = session.values
    if values.number("nodes") != 1:
        raise Failure(
            "Clusters of several nodes are not served yet: headrace start runs one broker.",
            remedy=f"Start one with: {nodes.typed_name()} start",
        )
    if project_root() is None:
        # A package has no directory of its own to write to, and the current one is anybody's.
        os.environ.setdefault("LOG_DIR", str(nodes.base_directory() / "logs"))
    plans = nodes.plan_nodes(port=values.number("port"), data=values.get("data"))
    started = [await _bring_up(plan) for plan in plans]
    await _until_answering(started)
    _show(session, started)
    return 0


async def _bring_up(plan: nodes.NodePlan) -> RunningServer:
    """Start a node unless it runs; what it is."""
    node = plan.expected()
    running = nodes.find_running(node)
    if running is not None:
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


def _show(session: Session, started: Sequence[RunningServer]) -> None:
    addresses = ",".join(node.address for node in started)
    save_profile(DEFAULT, {"bootstrap.servers": addresses})
    shown = [nodes.find_running(node) or node for node in started]
    statuses = [nodes.RUNNING] * len(shown)
    print_nodes(session.report, shown, statuses)
    _show_next(session)
    session.report.data(
        {"nodes": list(map(node_document, shown, statuses)), "bootstrapServers": addresses, "profile": DEFAULT}
    )


def _show_next(session: Session) -> None:
    name = nodes.typed_name()
    with nullcontext() if session.report.is_text else redirect_stdout(sys.stderr):
        if current() != DEFAULT:
            print(
                f"\nThe tools talk to the profile '{current()}'. To talk to this broker: {name} profile use {DEFAULT}"
            )
        print("\nWhat to type next:")
        for command in ("topics create events", "produce events", "consume events --from-beginning"):
            print("  " + paint(f"{name} {command}", CYAN))
