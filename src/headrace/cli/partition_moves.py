"""Moves of partitions that a command carries out from beginning to end: asked for, throttled, watched, finished."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING

from headrace.cli.administration import describe_topics, reassignments
from headrace.cli.progress import Progress
from headrace.cli.reassign_actions import ask_for_moves, clear_throttles, throttle_moves
from headrace.cli.reassign_plan import Plan, moves, shown
from headrace.cli.session import Failure
from headrace.cli.tool import Option, UsageError, Values
from headrace.model.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from headrace.cli.administration import Place
    from headrace.cli.session import Session

THROTTLE = Option(name="throttle", argument="bytes/s", help="How fast partitions may move, at most.")
_PAUSE_S = 0.1
_KNOWN_S = 10.0
"""How long a broker may take to hear what was decided; what somebody else has changed again meanwhile never comes."""
_TOPICS_AT_ONCE = 200
_INTERRUPTED = (
    "The cluster goes on with the moves it was told to make, without a throttle; "
    "kafka-reassign-partitions --list shows them."
)


def check_throttle(values: Values) -> None:
    """Refuse a rate at which nothing would ever arrive."""
    rate = values.number("throttle")
    if rate is not None and rate < 1:
        raise UsageError("A throttle is a number of bytes per second, at least 1")


async def all_replicas(session: Session) -> dict[Place, list[int]]:
    """The brokers of every partition there is."""
    return await _replicas_of(
        session, {topic.name for topic in (await session.cluster.metadata()).topics if topic.name}
    )


async def _replicas_of(session: Session, topics: Collection[str]) -> dict[Place, list[int]]:
    names = sorted(topics)
    found: dict[Place, list[int]] = {}
    for start in range(0, len(names), _TOPICS_AT_ONCE):
        for topic in await describe_topics(session.cluster, names[start : start + _TOPICS_AT_ONCE]):
            found |= {(topic.name, partition.index): list(partition.replicas) for partition in topic.partitions}
    return found


async def racks_of_brokers(session: Session) -> dict[int, str | None]:
    """The brokers that serve, and their racks."""
    metadata = await session.cluster.metadata(())
    return {broker.node_id: broker.rack for broker in metadata.brokers}


async def require_rest(session: Session) -> None:
    """Refuse to begin where partitions are on their way already: two plans would undo each other."""
    ongoing = await reassignments(session.cluster)
    if ongoing:
        raise Failure(
            f"{len(ongoing)} partitions are being moved already.",
            remedy="Wait until they are there; kafka-reassign-partitions --list shows them.",
        )


async def carry_out(
    session: Session, targets: Mapping[Place, Sequence[int]], current: Mapping[Place, Sequence[int]]
) -> None:
    """Move partitions and wait until they are where they shall be; a throttle is lifted at the end."""
    rate = session.values.number("throttle")
    if rate is not None:
        await throttle_moves(session, moves({}, targets, current), rate)
    try:
        errors = await ask_for_moves(session, targets)
        if errors:
            told = "\n".join(f"{shown(place)}: {errors[place]}" for place in sorted(errors))
            raise Failure(f"These partitions cannot be moved:\n{told}")
        await _watch(session, targets, moving(targets, current))
        await _until_known(session, targets)
    except asyncio.CancelledError:
        print(_INTERRUPTED, file=sys.stderr)
        raise
    finally:
        if rate is not None:
            plan = Plan(replicas=[(place, list(replicas)) for place, replicas in targets.items()], log_dirs={})
            await clear_throttles(session, plan)


def moving(targets: Mapping[Place, Sequence[int]], current: Mapping[Place, Sequence[int]]) -> set[Place]:
    """The partitions that go to another broker; of others at most the order of their brokers changes."""
    return {place for place, replicas in targets.items() if {*replicas} != {*current[place]}}


async def _watch(session: Session, targets: Collection[Place], moved: Collection[Place]) -> None:
    """Tell how many of those that move have arrived: in place on a terminal, a line for each change elsewhere."""
    told = -1
    with Progress() as progress:
        while True:
            under_way = [place for place in await reassignments(session.cluster) if place in targets]
            arrived = len(moved) - sum(place in moved for place in under_way)
            if moved and arrived != told:
                progress.say(f"{arrived} of {len(moved)} partitions have moved", share=arrived / len(moved))
                told = arrived
            if not under_way:
                return
            await asyncio.sleep(_PAUSE_S)


async def _until_known(session: Session, targets: Mapping[Place, Sequence[int]]) -> None:
    """Wait until the broker that is asked next knows of it: the controller, who was watched, is the first to."""
    topics = {topic for topic, _ in targets}
    with contextlib.suppress(TimeoutError, KafkaError):  # A topic that is gone is known soon enough, too.
        async with asyncio.timeout(_KNOWN_S):
            while True:
                found = await _replicas_of(session, topics)
                if all(found.get(place) == [*replicas] for place, replicas in targets.items()):
                    return
                await asyncio.sleep(_PAUSE_S)
