"""Bringing up the nodes of a cluster on this machine: as processes of their own, all at once, until all are there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from headrace.cli import nodes
from headrace.cli.session import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.nodes import NodePlan
    from headrace.cli.running import RunningServer

_PATIENCE_S = 120.0
"""How long nodes may take to recover their logs before we stop watching; they go on without us."""
_SILENT_S = 2.0
_PAUSE_S = 0.05
_LAST_WORDS_LINES = 5


async def bring_up(plans: Sequence[NodePlan], *, among: Sequence[NodePlan] = ()) -> list[RunningServer]:
    """Start the nodes that do not run, and wait until all serve and know each other, and those `among` whom they are.

    None comes up before most of those who vote are there, so they are started together.
    """
    expected = [plan.expected() for plan in plans]
    missing = [plan for plan, node in zip(plans, expected, strict=True) if nodes.find_running(node) is None]
    for node in expected:
        if nodes.find_running(node) is not None:
            print(f"Node {node.node_id} is running already.", file=sys.stderr)
    for plan in missing:
        await _require_free(plan)
    processes = {plan.expected().node_id: (plan, spawn(plan)) for plan in missing}
    try:
        await _until_together([plan.expected() for plan in (*among, *plans)], processes)
    finally:
        for _, process in processes.values():
            # It belongs to init now, not to us, and Python need not warn that nobody waited for it.
            process.returncode = 0 if process.returncode is None else process.returncode
    return expected


async def _require_free(plan: NodePlan) -> None:
    node = plan.expected()
    if await nodes.is_taken(node.address):
        raise Failure(
            f"Something else listens on {node.address} already.",
            remedy=f"End it, or change the ports in {nodes.shown_path(str(plan.config))}.",
        )


def spawn(plan: NodePlan) -> subprocess.Popen[bytes]:
    """Start a node as a process that outlives us."""
    from headrace.cli.server_start import STARTED

    assert plan.log is not None, "a node of a cluster has a log of its own"
    command = [sys.executable, "-P", "-m", "headrace.cli", "kafka-server-start", *plan.arguments()]
    with plan.log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, STARTED: "1"},
            start_new_session=True,
            close_fds=True,
        )


async def _until_together(
    expected: Sequence[RunningServer], processes: dict[int, tuple[NodePlan, subprocess.Popen[bytes]]]
) -> None:
    """Wait for every node, with a word to the person when it takes long."""
    from headrace.cli.progress import Progress

    loop = asyncio.get_running_loop()
    begin = loop.time()
    ids = {node.node_id for node in expected}
    with ExitStack() as shown:
        told = False
        while True:
            found = await asyncio.gather(*(nodes.knows(node.address, ids) for node in expected))
            waiting = [node for node, is_there in zip(expected, found, strict=True) if not is_there]
            if not waiting:
                return
            _give_up_if_dead(processes)
            if loop.time() - begin > _PATIENCE_S:
                raise _too_slow(waiting)
            if not told and loop.time() - begin > _SILENT_S:
                told = True
                where = ", ".join(node.address for node in waiting)
                shown.enter_context(Progress()).say(f"waiting for {where} to serve")
            await asyncio.sleep(_PAUSE_S)


def _give_up_if_dead(processes: dict[int, tuple[NodePlan, subprocess.Popen[bytes]]]) -> None:
    """If a node could not start, end the others that were started with it: they may wait for it for ever."""
    for node_id, (plan, process) in processes.items():
        if process.poll() is None:
            continue
        for _, other in processes.values():
            if other.poll() is None:
                other.terminate()
        for _, other in processes.values():
            other.wait()
        raise Failure(f"Node {node_id} ended before it served:\n{_last_words(plan)}", remedy=f"Its log: {_log(plan)}")


def _last_words(plan: NodePlan) -> str:
    assert plan.log is not None
    lines = plan.log.read_text(errors="replace").splitlines()[-_LAST_WORDS_LINES:]
    return "\n".join(f"  {line}" for line in lines)


def _log(plan: NodePlan) -> str:
    return nodes.shown_path(str(plan.log))


def _too_slow(waiting: Sequence[RunningServer]) -> Failure:
    named = ", ".join(f"node {node.node_id} ({node.address})" for node in waiting)
    return Failure(
        f"After {_PATIENCE_S:.0f} s these do not serve, or not all know them, but they are running: {named}.",
        remedy="The server.log beside their server.properties says what they do.",
    )
