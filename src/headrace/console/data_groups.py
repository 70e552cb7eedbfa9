"""What the pages about groups show, and what they do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.offset_targets import (
    EARLIEST,
    INACTIVE,
    LATEST,
    NothingSoLate,
    OffsetTargets,
    OutOfRange,
    Place,
    Plan,
)
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.client.admin_values import GroupDescription, GroupListing, MemberDescription
    from headrace.gateway.history import History, Lag
    from headrace.gateway.services import Services

_DESCRIBED_MAX = 300
"""Groups whose members are counted for the list; of the others only the state is shown."""
_AT_ONCE = 16
_LOOKUPS_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group as the list shows it."""

    listed: GroupListing
    members: int | None
    lag: Lag | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRow:
    """What a group has of one partition."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    seconds: float | None
    """The age of the next record to read; 0 if there is none."""
    member: MemberDescription | None

    @property
    def lag(self) -> int | None:
        """How many records are still to be read."""
        return None if self.committed is None or self.end is None else max(self.end - self.committed, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group."""

    described: GroupDescription
    offsets: tuple[OffsetRow, ...]

    @property
    def records(self) -> int:
        """How many records it is behind."""
        return sum(row.lag or 0 for row in self.offsets)

    @property
    def seconds(self) -> float | None:
        """How long the oldest record that it has not read has been waiting; None where that is not known."""
        waiting = [row for row in self.offsets if row.lag]
        known = [row.seconds for row in waiting if row.seconds is not None]
        return max(known, default=0.0) if known or not waiting else None


async def load_groups(services: Services, history: History) -> list[GroupRow]:
    """All groups; their lag is that of the last sample."""
    listed = await services.admin.list_groups()
    gate = asyncio.Semaphore(_AT_ONCE)

    async def members(group: GroupListing) -> int | None:
        async with gate:
            try:
                found = await services.admin.describe_groups([group.group_id])
            except KafkaError:
                return None
            return len(found[group.group_id].members)

    counted = await asyncio.gather(*map(members, listed[:_DESCRIBED_MAX]))
    counts = [*counted, *([None] * (len(listed) - len(counted)))]
    return [
        GroupRow(listed=group, members=number, lag=history.lag(group.group_id))
        for group, number in zip(listed, counts, strict=True)
    ]


async def load_group(services: Services, history: History, group_id: str) -> GroupView:
    """One group, asked for now; KafkaError if nobody knows it."""
    admin = services.admin
    try:
        described = (await admin.describe_groups([group_id]))[group_id]
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        raise KafkaError(error.code, f"There is no group '{group_id}' here.") from None
    committed = await admin.list_group_offsets(group_id)
    readers = {place: member for member in described.members for place in member.assignment}
    places = sorted({*committed, *readers})
    ends = await _ends(services, places)
    now = time.time()
    lookups = _LOOKUPS_MAX
    rows = []
    for place in places:
        offset = committed[place].offset if place in committed else None
        end = ends.get(place)
        seconds: float | None = None
        if offset is not None and end is not None:
            seconds = 0.0 if offset >= end else history.age_of(place, offset, now)
            if seconds is None and lookups:
                lookups -= 1
                when = await history.written_at(place, offset)
                seconds = None if when is None else max(now - when, 0.0)
        rows.append(
            OffsetRow(
                topic=place.topic,
                partition=place.partition,
                committed=offset,
                end=end,
                seconds=seconds,
                member=readers.get(place),
            )
        )
    return GroupView(described=described, offsets=tuple(rows))


async def _ends(services: Services, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Where logs end; partitions of topics that are gone are left out."""
    there = set(await services.admin.list_topics()) if places else set()
    wanted = [place for place in places if place.topic in there]
    found = await services.admin.list_offsets(dict.fromkeys(wanted, "latest")) if wanted else {}
    return {place: one.offset for place, one in found.items()}


# --- a reset


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """What shall happen to a group's offsets: what the URL of the page says."""

    to: str = "earliest"
    topic: str = ""
    """All that the group has committed for, if empty."""
    offset: int = 0
    shift: int = 0
    time_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPlan:
    """A plan and what has to be said about it."""

    state: str
    offsets: Plan
    current: Mapping[Place, int]
    notes: tuple[str, ...]

    @property
    def may_be_applied(self) -> bool:
        """Whether the group has no members, who would not notice."""
        return self.state in INACTIVE and bool(self.offsets)


async def plan_reset(services: Services, group_id: str, reset: Reset) -> ResetPlan:
    """Where the offsets would stand; NothingCommitted and KafkaError say why there is no plan."""
    admin = services.admin
    try:
        state = (await admin.describe_groups([group_id]))[group_id].state
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        state = "Dead"
    committed = await admin.list_group_offsets(group_id)
    current = {(place.topic, place.partition): one.offset for place, one in committed.items()}
    places = await _places(services, reset.topic) if reset.topic else sorted(current)
    noticed: list[OutOfRange | NothingSoLate] = []
    targets = OffsetTargets(lambda wanted, when: _find(services, wanted, when), noticed.append)
    plan = await _planned(targets, places, current, reset)
    return ResetPlan(state=state, offsets=dict(sorted(plan.items())), current=current, notes=tuple(map(_note, noticed)))


async def _places(services: Services, topic: str) -> list[Place]:
    (found,) = await services.admin.describe_topics([topic])
    return [(topic, one.partition) for one in found.partitions]


async def _find(services: Services, places: Collection[Place], when: int) -> Plan:
    found = await services.admin.list_offsets({TopicPartition(*place): when for place in places})
    return {(place.topic, place.partition): one.offset for place, one in found.items()}


def _note(noticed: OutOfRange | NothingSoLate) -> str:
    topic, partition = noticed.place
    if isinstance(noticed, NothingSoLate):
        return f"{topic}-{partition} has no record as late: its end is taken."
    return f"{topic}-{partition} has no offset {noticed.wanted}: {noticed.offset} is taken."


async def _planned(targets: OffsetTargets, places: list[Place], current: Mapping[Place, int], reset: Reset) -> Plan:
    match reset.to:
        case "latest":
            return await targets.at(places, LATEST)
        case "offset":
            return await targets.to_offset(places, reset.offset)
        case "shift":
            return await targets.shift_by(places, current, reset.shift)
        case "time":
            return await targets.at_time(places, reset.time_ms or 0)
    return await targets.at(places, EARLIEST)


async def apply_reset(services: Services, group_id: str, plan: Plan) -> None:
    """Carry a plan out; the group must have no members."""
    await services.admin.alter_group_offsets(
        group_id, {TopicPartition(*place): offset for place, offset in plan.items()}
    )
