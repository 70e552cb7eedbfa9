"""`headrace rebalance`: the same number of partitions and leaders on every broker, after brokers came or went."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.cli.balance_plan import counts, plan_rebalance
from headrace.cli.leader_election import ELECTIONS, elect
from headrace.cli.partition_moves import (
    THROTTLE,
    all_replicas,
    carry_out,
    check_throttle,
    moving,
    racks_of_brokers,
    require_rest,
)
from headrace.cli.progress import Progress
from headrace.cli.report import table
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.cli.administration import Place
    from headrace.cli.session import Session

_CATCH_UP_S = 60.0
_PAUSE_S = 0.5
_FINE = {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED}

TOOL = Tool(
    name="headrace rebalance",
    summary="Spread partitions and leaders evenly over the brokers, with as few moves as that takes.",
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        THROTTLE,
        Option(name="dry-run", help="Only say what would be moved."),
    ),
    examples=(("After a broker was added", ""), ("Gently", "--throttle 10000000")),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _rebalance, check=_check, is_own=True)


def _check(values: Values) -> None:
    if values.words:
        raise UsageError(f"'{values.words[0]}' is not understood here")
    check_throttle(values)


async def _rebalance(session: Session) -> int:
    await require_rest(session)
    racks = await racks_of_brokers(session)
    current = await all_replicas(session)
    targets = plan_rebalance(current, racks)
    moved = moving(targets, current)
    planned = {**current, **targets}
    if session.values.has("dry-run"):
        session.report.line(f"{_counted(len(moved))} would move, {len(current) - len(moved)} would stay.")
    else:
        if targets:
            await carry_out(session, targets, current)
        await _elect(session)
        session.report.line(f"{_counted(len(moved))} moved, {len(current) - len(moved)} stayed.")
    rows = [["BROKER", "PARTITIONS", "PREFERRED LEADERS"]]
    before, after = counts(current, racks), counts(planned, racks)
    firsts = [_firsts(one, racks) for one in (current, planned)]
    rows += [
        [str(broker), _change(before[broker], after[broker]), _change(firsts[0][broker], firsts[1][broker])]
        for broker in sorted(racks)
    ]
    for line in table(rows, [0, 0, 0], "  "):
        session.report.line(line.rstrip())
    session.report.data(
        {
            "moved": [{"topic": topic, "partition": index} for topic, index in sorted(moved)],
            "brokers": [
                {"id": broker, "partitions": after[broker], "preferredLeaders": firsts[1][broker]}
                for broker in sorted(racks)
            ],
        }
    )
    return 0


async def _elect(session: Session) -> None:
    """Let those lead that come first; one that has been away is given time to catch up."""
    deadline = asyncio.get_running_loop().time() + _CATCH_UP_S
    with Progress() as progress:
        while True:
            results = await elect(session, ELECTIONS["preferred"], None)
            failed = [f"{topic}-{index}" for (topic, index), (code, _) in sorted(results.items()) if code not in _FINE]
            if not failed or asyncio.get_running_loop().time() > deadline:
                break
            progress.detail(f"waiting for {len(failed)} replicas to catch up, which are to lead")
            await asyncio.sleep(_PAUSE_S)
    if failed:
        raise Failure(
            f"{len(failed)} partitions did not get the leader they should have: {', '.join(failed[:10])}.",
            remedy="Look with `headrace health`, and run this again.",
        )


def _counted(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"


def _firsts(replicas: Mapping[Place, Sequence[int]], racks: Mapping[int, str | None]) -> dict[int, int]:
    return counts({place: brokers[:1] for place, brokers in replicas.items()}, racks)


def _change(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} -> {after}"
