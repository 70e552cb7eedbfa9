"""Moving the offsets of a group: a plan, the same that `kafka-consumer-groups --reset-offsets` makes, then the deed."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from headrace.client.offset_targets import (
    EARLIEST,
    INACTIVE,
    LATEST,
    NothingCommitted,
    NothingSoLate,
    OffsetTargets,
    OutOfRange,
    Place,
    Plan,
)
from headrace.client.records import TopicPartition
from headrace.gateway.moment import milliseconds
from headrace.gateway.problem import PARTITION_NOT_FOUND, Problem, unprocessable
from headrace.gateway.services import Services
from headrace.model.errors import ErrorCode, KafkaError

_BIG = 2**63 - 1
_DEAD = "Dead"
GROUP_IN_USE = 40903


class ToEarliest(Struct, frozen=True, kw_only=True, tag_field="type", tag="to-earliest"):
    """To where the logs begin."""


class ToLatest(Struct, frozen=True, kw_only=True, tag_field="type", tag="to-latest"):
    """To where the logs end."""


class ToCurrent(Struct, frozen=True, kw_only=True, tag_field="type", tag="to-current"):
    """To where they are; to the end where nothing was committed."""


class ToOffset(Struct, frozen=True, kw_only=True, tag_field="type", tag="to-offset"):
    """All to one offset, or the nearest there is."""

    offset: Annotated[int, Meta(ge=0, le=_BIG)]


class ShiftBy(Struct, frozen=True, kw_only=True, tag_field="type", tag="shift-by"):
    """Forward by so many records, or back."""

    records: Annotated[int, Meta(ge=-_BIG, le=_BIG)]


class ToDatetime(Struct, frozen=True, kw_only=True, tag_field="type", tag="to-datetime"):
    """To the first record at or after a point in time."""

    timestamp: Annotated[datetime, Meta(tz=True, examples=["2026-01-31T12:00:00Z"])]


class ByDuration(Struct, frozen=True, kw_only=True, tag_field="type", tag="by-duration"):
    """To the first record that is no older than a duration."""

    duration: Annotated[timedelta, Meta(examples=["P1DT2H"])]


Scenario = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToDatetime | ByDuration


class PlannedOffset(NamedTuple):
    """Where one partition shall stand."""

    place: TopicPartition
    current: int | None
    """Where the group stands; None if it has committed nothing."""
    target: int
    note: str | None
    """What is to be known about it."""


async def plan_reset(
    services: Services, group_id: str, scenario: Scenario, topics: Mapping[str, Sequence[int] | None] | None
) -> list[PlannedOffset]:
    """Where a group shall stand: in some partitions of topics, in all of them (None), or in all it has committed.

    Problem if the group is in use, a partition is not there, or there is nothing to shift.
    """
    await _check_inactive(services, group_id)
    commits = await services.admin.list_group_offsets(group_id)
    current: Plan = {(place.topic, place.partition): one.offset for place, one in commits.items()}
    places = sorted(current) if topics is None else await _places(services, topics)
    notes: dict[Place, str] = {}

    def tell(noticed: OutOfRange | NothingSoLate) -> None:
        notes[noticed.place] = _sentence(noticed)

    async def log_offsets(wanted: Collection[Place], when: int) -> Mapping[Place, int]:
        found = await services.admin.list_offsets(dict.fromkeys(wanted, when))
        return {(place.topic, place.partition): one.offset for place, one in found.items()}

    try:
        plan = await _planned(OffsetTargets(log_offsets, tell), scenario, places, current)
    except NothingCommitted as missing:
        raise unprocessable(f"{missing}.") from None
    return [
        PlannedOffset(TopicPartition(*place), current.get(place), target, notes.get(place))
        for place, target in plan.items()
    ]


async def apply_reset(services: Services, group_id: str, plan: Sequence[PlannedOffset]) -> None:
    """Carry a plan out; Problem if somebody uses the group by now."""
    if not plan:
        return
    try:
        await services.admin.alter_group_offsets(group_id, {one.place: one.target for one in plan})
    except KafkaError as error:
        if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            raise in_use(group_id, "in use") from None
        raise


async def _planned(targets: OffsetTargets, scenario: Scenario, places: Sequence[Place], current: Plan) -> Plan:
    match scenario:
        case ToEarliest():
            return await targets.at(places, EARLIEST)
        case ToLatest():
            return await targets.at(places, LATEST)
        case ToCurrent():
            return await targets.to_current(places, current)
        case ToOffset(offset=offset):
            return await targets.to_offset(places, offset)
        case ShiftBy(records=records):
            return await targets.shift_by(places, current, records)
        case ToDatetime(timestamp=moment):
            return await targets.at_time(places, max(milliseconds(moment), 0))
        case ByDuration(duration=ago):
            then = time.time_ns() // 1_000_000 - ago // timedelta(milliseconds=1)
            return await targets.at_time(places, max(then, 0))


async def _check_inactive(services: Services, group_id: str) -> None:
    """Nobody may be in the group; one that does not exist may be given offsets like an empty one."""
    try:
        state = (await services.admin.describe_groups([group_id]))[group_id].state
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        state = _DEAD
    if state not in INACTIVE:
        raise in_use(group_id, state)


def in_use(group_id: str, state: str) -> Problem:
    """What is said when a group has members."""
    return Problem(
        409, GROUP_IN_USE, f"The offsets of '{group_id[:249]}' cannot be moved while it is {state}; stop its members."
    )


async def _places(services: Services, topics: Mapping[str, Sequence[int] | None]) -> list[Place]:
    places: list[Place] = []
    for topic, wanted in topics.items():
        count = await services.topics.partitions_of(topic)
        for number in range(count) if wanted is None else wanted:
            if number >= count:
                raise Problem(404, PARTITION_NOT_FOUND, f"Topic '{topic}' has no partition {number}.")
            places.append((topic, number))
    return sorted(set(places))


def _sentence(noticed: OutOfRange | NothingSoLate) -> str:
    if isinstance(noticed, NothingSoLate):
        return "No record is as late; the end is taken."
    side = "behind the end" if noticed.offset < noticed.wanted else "before the beginning"
    return f"Offset {noticed.wanted} lies {side} of the log."
