"""Where a stream begins and where it ends, in offsets: positions, groups and times looked up in the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from headrace.client.records import TopicPartition
from headrace.gateway.problem import PARTITION_NOT_FOUND, TOPIC_NOT_FOUND, Problem
from headrace.gateway.streams.hub import Topic
from headrace.gateway.streams.moment import EARLIEST, LATEST
from headrace.gateway.streams.position import At, Position
from headrace.gateway.streams.wish import Wish
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.client.async_admin import AsyncKafkaAdmin

GROUP_BUSY: Final = 40905
_SHOWN_MAX: Final = 50
_AT_REST: Final = {"Empty", "Dead", ""}
_COMMITTED: Final = "read_committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a stream begins with."""

    topics: Mapping[str, Topic]
    positions: dict[TopicPartition, int]
    stops: dict[TopicPartition, int] | None
    """Where each partition ends, if that is known: `until` may lie ahead."""
    beyond: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the logs end of which a position was never reached; of a stream without stops, reading finds that out."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to send."""
        return (
            self.stops is not None
            and not self.beyond
            and all(self.positions[place] >= stop for place, stop in self.stops.items())
        )


async def begin(admin: AsyncKafkaAdmin, wish: Wish, topics: Mapping[str, Topic], now_ms: int) -> Start:
    """Look everything up; Problem if a topic, a partition or the group cannot be had."""
    places = places_of(wish, topics)
    committed: dict[TopicPartition, int] = {}
    if wish.group is not None:
        await check_at_rest(admin, wish.group)
        found = await admin.list_group_offsets(wish.group, places)
        committed = {place: one.offset for place, one in found.items()}
    wanted = {place: _from(place, wish, committed) for place in places}
    positions = await _offsets(admin, wanted)
    if wish.until is None or wish.until > now_ms:
        return Start(topics=topics, positions=positions, stops=None)
    stops = await find_stops(admin, places, wish.until)
    beyond = await _beyond(admin, {place: offset for place, offset in positions.items() if offset > stops[place]})
    return Start(topics=topics, positions=positions, stops=stops, beyond=beyond)


async def missing_topics(admin: AsyncKafkaAdmin, wish: Wish, topics: Mapping[str, Topic]) -> Problem | None:
    """The topics that are not there, said with those that are."""
    missing = [name for name in wish.topics if name not in topics]
    if not missing:
        return None
    there = [name for name in await admin.list_topics() if not name.startswith("__")]
    shown = ", ".join(there[:_SHOWN_MAX]) + (f" and {len(there) - _SHOWN_MAX} more" if len(there) > _SHOWN_MAX else "")
    return Problem(404, TOPIC_NOT_FOUND, f"Topic '{missing[0]}' is not there; there are: {shown or 'none'}.")


def places_of(wish: Wish, topics: Mapping[str, Topic]) -> list[TopicPartition]:
    """The partitions that are wanted."""
    places: list[TopicPartition] = []
    for name in wish.topics:
        numbers = topics[name].leaders
        absent = sorted((wish.partitions or frozenset()) - set(numbers))
        if absent:
            raise Problem(404, PARTITION_NOT_FOUND, f"Topic '{name}' has no partition {absent[0]}.")
        places += [TopicPartition(name, n) for n in sorted(numbers) if wish.partitions is None or n in wish.partitions]
    return places


async def check_at_rest(admin: AsyncKafkaAdmin, group: str) -> None:
    """Problem if a group has members, which hold its offsets."""
    try:
        state = (await admin.describe_groups([group]))[group].state
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if state not in _AT_REST:
        raise Problem(409, GROUP_BUSY, f"Group '{group}' has members; stop them, or choose another group.")


def _from(place: TopicPartition, wish: Wish, committed: Mapping[TopicPartition, int]) -> At:
    """What a client knows beats what its group knows beats what it asks for."""
    position = wish.position or Position({}, {})
    known = position.at(place)
    if known is not None:
        return known
    if position.knows(place.topic):
        # The topic had no such partition when the position was made.
        return At(timestamp=EARLIEST)
    if place in committed:
        return At(committed[place])
    return At() if wish.since is None else At(timestamp=wish.since)


async def _offsets(admin: AsyncKafkaAdmin, wanted: Mapping[TopicPartition, At]) -> dict[TopicPartition, int]:
    known = {place: at.offset for place, at in wanted.items() if at.timestamp is None and at.offset >= 0}
    times = {
        place: LATEST if at.timestamp is None else at.timestamp for place, at in wanted.items() if place not in known
    }
    found = known | await _look_up(admin, times)
    return {place: found[place] for place in wanted}


async def find_stops(admin: AsyncKafkaAdmin, places: Iterable[TopicPartition], until: int) -> dict[TopicPartition, int]:
    """The first offsets at or after a time, or the ends where nothing is so late."""
    return await _look_up(admin, dict.fromkeys(places, until))


async def _beyond(admin: AsyncKafkaAdmin, passed: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The ends of logs that are shorter than a position says; nothing is read there, so no broker would complain."""
    if not passed:
        return {}
    ends = await admin.list_offsets(dict.fromkeys(passed, LATEST))
    return {place: ends[place].offset for place, offset in passed.items() if offset > ends[place].offset}


async def _look_up(admin: AsyncKafkaAdmin, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    if not times:
        return {}
    found = {place: one.offset for place, one in (await admin.list_offsets(times, _COMMITTED)).items()}
    late = [place for place, offset in found.items() if offset < 0]
    if late:
        ends = await admin.list_offsets(dict.fromkeys(late, LATEST), _COMMITTED)
        found |= {place: one.offset for place, one in ends.items()}
    return found
