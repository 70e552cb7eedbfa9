"""`headrace stop`: ends cleanly what `headrace start` started, and forgets its address.

Servers that were started in another way are left alone: they belong to somebody else's work, a test or a service, and
`headrace server stop` is there for them.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING

from headrace.cli.gateways import stop_gateways
from headrace.cli.node_choice import DATA_HELP, choose_nodes, shown_data
from headrace.cli.nodes import typed_name
from headrace.cli.profile import DEFAULT, forget_profile, load_profile
from headrace.cli.running import running_gateways, running_servers
from headrace.cli.server_stop import stop_servers
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import Option, Tool, UsageError, Values
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.running import RunningGateway, RunningServer
    from headrace.cli.session import Session

TOOL = Tool(
    name="headrace stop",
    summary="Stop what `headrace start` started, one broker or a whole cluster and its gateway, and wait until all is "
    "on disk.",
    options=(
        Option(name="node-id", argument="id", help="Stop only the node with this id."),
        Option(name="data", short="d", argument="directory", help=DATA_HELP),
    ),
    examples=(
        ("Stop it", ""),
        ("One node of a cluster", "--node-id 3"),
        ("One cluster of several", "--data elsewhere"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _stop, check=_check, is_own=True)


def _check(values: Values) -> None:
    if values.words:
        raise UsageError(f"'{values.words[0]}' is not understood here")
    values.number("node-id")


async def _stop(session: Session) -> int:
    node_id, data = session.values.number("node-id"), session.values.get("data")
    started = [server for server in running_servers() if server.by_start]
    ours = choose_nodes(started, node_id=node_id, data=data)
    beside = [] if node_id is not None else _gateways(ours, everywhere=data is None)
    if not ours and not beside:
        if not started:
            _forget_the_dead()
        raise _nothing(started, node_id=node_id, data=data)
    with nullcontext() if session.report.is_text else redirect_stdout(sys.stderr):
        code = stop_gateways(beside) if beside else 0
        code = stop_servers(ours, wait=True) or code
    _forget({server.address for server in ours})
    document: dict[str, object] = {"stopped": [server.node_id for server in ours]}
    session.report.data(document | ({"gateways": [gateway.url for gateway in beside]} if beside else {}))
    return code


def _gateways(servers: Sequence[RunningServer], *, everywhere: bool) -> list[RunningGateway]:
    """The gateways that `headrace start` started: all of them, or those before these servers."""
    addresses = {server.address for server in servers}
    return [one for one in running_gateways() if one.by_start and (everywhere or addresses & {*one.brokers.split(",")})]


def _nothing(started: Sequence[RunningServer], *, node_id: int | None, data: str | None) -> Failure:
    """That nothing fits, and what there is instead."""
    if started:
        what = "Nothing" if node_id is None else f"No node {node_id}"
        where = "" if data is None else f" in {data}"
        named = ", ".join(f"node {one.node_id} ({shown_data(one)})" for one in started)
        return Failure(f"{what} runs{where} that `headrace start` started.", remedy=f"There are: {named}.")
    others = len(running_servers())
    return Failure(
        "Nothing runs that `headrace start` started.",
        remedy=f"Others run: {others}. To stop them too: {typed_name()} server stop" if others else "",
    )


def _forget(stopped: set[str]) -> None:
    """Forget the address, unless another node of it still runs."""
    try:
        saved = load_profile(DEFAULT).get("bootstrap.servers", "")
    except HeadraceError:
        return
    if {*saved.split(",")} <= stopped:
        forget_profile(DEFAULT)


def _forget_the_dead() -> None:
    """A broker that was killed leaves its address behind."""
    try:
        saved = load_profile(DEFAULT).get("bootstrap.servers", "")
    except HeadraceError:
        return
    if saved.startswith("localhost:"):
        forget_profile(DEFAULT)
