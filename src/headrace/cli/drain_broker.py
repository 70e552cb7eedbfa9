"""`headrace drain-broker`: everything a broker has goes to the others, and then the broker may go too."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING

from headrace.cli.administration import ask_controller, check
from headrace.cli.balance_plan import NowhereToGo, plan_drain
from headrace.cli.local_cluster import cluster_of
from headrace.cli.nodes import typed_name
from headrace.cli.partition_moves import (
    THROTTLE,
    all_replicas,
    carry_out,
    check_throttle,
    racks_of_brokers,
    require_rest,
)
from headrace.cli.profile import DEFAULT, load_profile, save_profile
from headrace.cli.reassign_plan import shown
from headrace.cli.running import running_servers
from headrace.cli.server_stop import stop_servers
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.local_cluster import LocalCluster
    from headrace.cli.running import RunningServer
    from headrace.cli.session import Session

UNREGISTER_BROKER = 64
_ROUNDS_MAX = 10
"""How often we look for partitions that were put on the broker while others left it."""
_LISTED_MAX = 5
_FENCED_S = 30.0
_PAUSE_S = 0.1

TOOL = Tool(
    name="headrace drain-broker",
    summary="Move everything a broker has to the others. One that `headrace start` or `add-broker` started on this "
    "machine is then stopped and taken off the cluster's list, unless it votes on metadata.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        THROTTLE,
        Option(name="keep-running", help="Do not stop the broker."),
    ),
    examples=(("Before broker 4 goes", "4"), ("Gently", "4 --throttle 10000000")),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _drain, check=_check, is_own=True)


def _check(values: Values) -> None:
    if not values.words:
        raise UsageError("The id of the broker is missing")
    if len(values.words) > 1:
        raise UsageError(f"'{values.words[1]}' is one word too many")
    if not values.words[0].isdecimal():
        raise UsageError(f"'{values.words[0]}' is not the id of a broker")
    check_throttle(values)


async def _drain(session: Session) -> int:
    broker = int(session.values.words[0])
    await require_rest(session)
    racks = await racks_of_brokers(session)
    if broker not in racks:
        known = ", ".join(map(str, sorted(racks)))
        raise Failure(f"There is no broker {broker}.", remedy=f"The brokers that serve are: {known}.")
    moved = await _move_away(session, broker)
    session.report.line(f"Broker {broker} has no partitions any more; {moved} moved to others.")
    cluster, server = await _ours(session, broker)
    is_stopped = False
    if cluster is None or server is None:
        session.report.line(f"When you have stopped it: kafka-cluster unregister --id {broker}")
    elif cluster.is_voter(broker):
        session.report.line("It goes on running, as it votes on the cluster's metadata.")
    elif not session.values.has("keep-running"):
        await _dismiss(session, cluster, server)
        is_stopped = True
    session.report.data({"broker": broker, "moved": moved, "isStopped": is_stopped})
    return 0


async def _move_away(session: Session, broker: int) -> int:
    """Move until nothing is left, what came meanwhile too; how many partitions that were."""
    moved = 0
    for _ in range(_ROUNDS_MAX):
        current = await all_replicas(session)
        try:
            targets = plan_drain(current, broker, await racks_of_brokers(session))
        except NowhereToGo as error:
            named = ", ".join(map(shown, error.places[:_LISTED_MAX]))
            more = f" and {len(error.places) - _LISTED_MAX} more" if len(error.places) > _LISTED_MAX else ""
            raise Failure(
                f"Broker {broker} cannot be drained: every other broker has a replica already of {named}{more}.",
                remedy=f"Add a broker first ({typed_name()} add-broker), or lower the replication factor.",
            ) from None
        if not targets:
            return moved
        await carry_out(session, targets, current)
        moved += len(targets)
    raise Failure(f"New partitions keep coming to broker {broker}.", remedy="Run this again when fewer are created.")


async def _ours(session: Session, broker: int) -> tuple[LocalCluster | None, RunningServer | None]:
    """The process of the broker and whose it is, if it runs here, is of this cluster and was started by us."""
    brokers = (await session.cluster.metadata(())).brokers
    address = next((f"{one.host}:{one.port}" for one in brokers if one.node_id == broker), "")
    for server in running_servers():
        if server.by_start and server.node_id == broker and server.address == address:
            return cluster_of(server), server
    return None, None


async def _dismiss(session: Session, cluster: LocalCluster, server: RunningServer) -> None:
    """Stop the broker and take it off the list."""
    with nullcontext() if session.report.is_text else redirect_stdout(sys.stderr):
        if await asyncio.to_thread(stop_servers, [server], wait=True) != 0:
            raise Failure(f"Broker {server.node_id} does not stop.", remedy="Its server.log says why.")
    await _until_gone(session, server.node_id)
    from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest

    answer = await ask_controller(session.cluster, UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=server.node_id))
    check(answer.error_code, answer.error_message)
    cluster.leave(server.node_id)
    saved = load_profile(DEFAULT).get("bootstrap.servers", "").split(",")
    if server.address in saved and len(saved) > 1:
        save_profile(DEFAULT, {"bootstrap.servers": ",".join(one for one in saved if one != server.address)})
    session.report.line(f"Broker {server.node_id} is no longer registered; its directory is left as it is.")


async def _until_gone(session: Session, broker: int) -> None:
    """Wait until the cluster has noticed: one that is taken off the list earlier would come back."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_FENCED_S):
            while True:
                if broker not in await racks_of_brokers(session):
                    return
                await asyncio.sleep(_PAUSE_S)
