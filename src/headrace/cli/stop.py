"""`headrace stop`: ends cleanly what `headrace start` started, and forgets its address.

Servers that were started in another way are left alone: they belong to somebody else's work, a test or a service, and
`headrace server stop` is there for them.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING

from headrace.cli.gateways import stop_gateways
from headrace.cli.nodes import typed_name
from headrace.cli.profile import DEFAULT, forget_profile, load_profile
from headrace.cli.running import running_gateways, running_servers
from headrace.cli.server_stop import stop_servers
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import Option, Tool, UsageError, Values
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

TOOL = Tool(
    name="headrace stop",
    summary="Stop what `headrace start` started, one broker or a whole cluster and its gateway, and wait until all is "
    "on disk.",
    options=(Option(name="node-id", argument="id", help="Stop only the node with this id."),),
    examples=(("Stop it", ""), ("One node of a cluster", "--node-id 3")),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _stop, check=_check, is_own=True)


def _check(values: Values) -> None:
    if values.words:
        raise UsageError(f"'{values.words[0]}' is not understood here")
    values.number("node-id")


async def _stop(session: Session) -> int:
    node_id = session.values.number("node-id")
    running = running_servers()
    ours = [server for server in running if server.by_start and node_id in {None, server.node_id}]
    beside = [gateway for gateway in running_gateways() if gateway.by_start and node_id is None]
    if not ours and not beside:
        _forget_the_dead(any(server.by_start for server in running))
        others = len([server for server in running if not server.by_start])
        raise Failure(
            "Nothing runs that `headrace start` started.",
            remedy=f"Others run: {others}. To stop them too: {typed_name()} server stop" if others else "",
        )
    with nullcontext() if session.report.is_text else redirect_stdout(sys.stderr):
        code = stop_gateways(beside) if beside else 0
        code = stop_servers(ours, wait=True) or code
    _forget({server.address for server in ours})
    document: dict[str, object] = {"stopped": [server.node_id for server in ours]}
    session.report.data(document | ({"gateways": [gateway.url for gateway in beside]} if beside else {}))
    return code


def _forget(stopped: set[str]) -> None:
    """Forget the address, unless another node of it still runs."""
    try:
        saved = load_profile(DEFAULT).get("bootstrap.servers", "")
    except HeadraceError:
        return
    if {*saved.split(",")} <= stopped:
        forget_profile(DEFAULT)


def _forget_the_dead(is_any_alive: bool) -> None:
    """A broker that was killed leaves its address behind."""
    try:
        saved = load_profile(DEFAULT).get("bootstrap.servers", "")
    except HeadraceError:
        return
    if not is_any_alive and saved.startswith("localhost:"):
        forget_profile(DEFAULT)
