"""`headrace health`: is every partition led and fully replicated, every log directory there? The exit code says it."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.cli.colours import BOLD, GREEN, RED, paint
from headrace.cli.session import run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.client.fault import ClientFault, NotServed
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

DESCRIBE_LOG_DIRS = 35
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


@dataclass(slots=True, kw_only=True)
class Health:
    """What was found; nothing in the lists means that all is well."""

    unreachable: str = ""
    brokers: list[int] = field(default_factory=list)
    silent_brokers: list[int] = field(default_factory=list)
    topics: int = 0
    partitions: int = 0
    leaderless: list[str] = field(default_factory=list)
    under_replicated: list[str] = field(default_factory=list)
    offline_log_dirs: list[str] = field(default_factory=list)

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to complain of."""
        return not (
            self.unreachable or self.silent_brokers or self.leaderless or self.under_replicated or self.offline_log_dirs
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
        health = await look(session)
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


async def _look_patiently(session: Session) -> Health:
    """Like `look`, but a cluster that cannot be reached is a finding and not the end."""
    try:
        return await look(session)
    except ClientFault as fault:
        return Health(unreachable=f"{fault.problem}.")


async def look(session: Session) -> Health:
    """Ask the cluster how it is."""
    cluster = session.cluster
    metadata = await cluster.metadata()
    health = Health(brokers=sorted(broker.node_id for broker in metadata.brokers), topics=len(metadata.topics))
    for topic in metadata.topics:
        for partition in topic.partitions:
            place = f"{topic.name}-{partition.partition_index}"
            health.partitions += 1
            if partition.leader_id < 0:
                health.leaderless.append(place)
            if len(partition.isr_nodes) < len(partition.replica_nodes):
                health.under_replicated.append(place)
    for node_id in health.brokers:
        await _look_at_disks(session, node_id, health)
    return health


async def _look_at_disks(session: Session, node_id: int, health: Health) -> None:
    try:
        answer = await session.cluster.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=()), node_id=node_id)
    except NotServed:
        return
    except (ClientFault, KafkaError):
        health.silent_brokers.append(node_id)
        return
    health.offline_log_dirs += [
        f"{directory.log_dir} (broker {node_id})"
        for directory in answer.results
        if directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    ]


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
    line = session.report.line
    verdict = paint("yes", GREEN) if health.is_well else paint("no", RED)
    width = max(len(title) for title, _, _ in rows)
    line(paint("Healthy".ljust(width), BOLD) + f"  {verdict}")
    if health.unreachable:
        line(health.unreachable)
    else:
        for title, text, bad in rows:
            line(f"{title:<{width}}  {paint(text, RED) if bad else text}{_named(bad)}")
    session.report.data({"healthy": health.is_well, **asdict(health)})


def _named(places: Sequence[Any]) -> str:
    if not places:
        return ""
    more = f" and {len(places) - _LISTED_MAX} more" if len(places) > _LISTED_MAX else ""
    return f" ({', '.join(map(str, places[:_LISTED_MAX]))}{more})"
