"""`headrace health`: is every partition led and fully replicated, every log directory there? The exit code says it."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headrace.cli.colours import BOLD, GREEN, RED, paint
from headrace.cli.report import camel_case
from headrace.cli.session import run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.client.fault import ClientFault
from headrace.client.health import Health, look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

_PAUSE_S = 1.0
_LISTED_MAX = 10

TOOL = Tool(
    name="headrace health",
    summary="Say whether the cluster is well, and exit with 0 only if it is.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="watch", short="w", help="Look again every second and print what changes, until Ctrl-C."),
        Option(name="exit-when-healthy", short="e", help="Look every second until the cluster is well."),
        Option(name="timeout", argument="seconds", help="Give up waiting after so long, with exit code 1."),
    ),
    examples=(("Is it well?", ""), ("Wait for it, in a script", "--exit-when-healthy --timeout 60")),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _run, check=_check, is_own=True)


def _check(values: Values) -> None:
    if (values.number("timeout") or 0) < 0:
        raise UsageError("A time to wait cannot be negative")


async def _run(session: Session) -> int:
    values = session.values
    waits = values.has("exit-when-healthy")
    if not waits and not values.has("watch"):
        with session.waiting():
            health = await _look(session)
        _show(session, health)
        return 0 if health.is_well else 1
    loop = asyncio.get_running_loop()
    timeout_s = values.number("timeout")
    deadline = None if timeout_s is None else loop.time() + timeout_s
    before: Health | None = None
    while True:
        health = await _look_patiently(session)
        if health != before:
            _show(session, health)
            sys.stdout.flush()
            before = health
        if waits and health.is_well:
            return 0
        if deadline is not None and loop.time() + _PAUSE_S > deadline:
            return 0 if health.is_well else 1
        await asyncio.sleep(_PAUSE_S)


async def _look(session: Session) -> Health:
    """Ask the cluster, and the gateways of this machine that were told the same brokers."""
    from headrace.cli.gateways import gateway_statuses
    from headrace.cli.nodes import RUNNING
    from headrace.cli.running import running_gateways

    health = await look(session.cluster)
    wanted = {*session.bootstrap().split(",")}
    found = [one for one in running_gateways() if wanted & {*one.brokers.split(",")}]
    health.gateways += [one.url for one in found]
    statuses = await gateway_statuses(found)
    health.silent_gateways += [one.url for one, status in zip(found, statuses, strict=True) if status != RUNNING]
    return health


async def _look_patiently(session: Session) -> Health:
    """Like `look`, but a cluster that cannot be reached is a finding and not the end."""
    try:
        return await _look(session)
    except ClientFault as fault:
        return Health(unreachable=f"{fault.problem}.")


# --- telling


def _show(session: Session, health: Health) -> None:
    rows: list[tuple[str, str, Sequence[Any]]] = [
        ("Brokers", ", ".join(map(str, health.brokers)), ()),
        ("Brokers that do not answer", str(len(health.silent_brokers)), health.silent_brokers),
        ("Topics", str(health.topics), ()),
        ("Partitions", str(health.partitions), ()),
        ("Leaderless partitions", str(len(health.leaderless)), health.leaderless),
        ("Under-replicated partitions", str(len(health.under_replicated)), health.under_replicated),
        ("Offline log directories", str(len(health.offline_log_dirs)), health.offline_log_dirs),
    ]
    if health.gateways:
        rows.append(("Gateway", ", ".join(health.gateways), ()))
        rows.append(("Gateways that do not answer", str(len(health.silent_gateways)), health.silent_gateways))
    line = session.report.line
    verdict = paint("yes", GREEN) if health.is_well else paint("no", RED)
    width = max(len(title) for title, _, _ in rows)
    line(paint("Healthy".ljust(width), BOLD) + f"  {verdict}")
    if health.unreachable:
        line(health.unreachable)
    else:
        for title, text, bad in rows:
            line(f"{title:<{width}}  {paint(text, RED) if bad else text}{_named(bad)}")
    session.report.data({"healthy": health.is_well} | {camel_case(name): what for name, what in asdict(health).items()})


def _named(places: Sequence[Any]) -> str:
    if not places:
        return ""
    more = f" and {len(places) - _LISTED_MAX} more" if len(places) > _LISTED_MAX else ""
    return f" ({', '.join(map(str, places[:_LISTED_MAX]))}{more})"
