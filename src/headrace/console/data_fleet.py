"""What the fleet's map is told before it follows the streams: which topics there are, and where their log begins."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.client.records import TopicPartition

if TYPE_CHECKING:
    from headrace.gateway.services import Services

REPORTS, ALERTS = "trucks_gps", "trucks_alerts"
BACK_LEAST_MS, BACK_MOST_MS = 60_000, 1_200_000
_BACK_RECORDS = 20_000
"""What leads to now is read for the trails: as much time as holds so many reports."""
_LOOK_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSource:
    """Where the trucks are."""

    topics: tuple[str, ...]
    """Those of the fleet that are there; none means there is no fleet."""
    first_ms: int | None = field(compare=False)
    """When the oldest report that is still there was made."""
    back_ms: int = field(default=BACK_MOST_MS, compare=False)
    """How much time before now is read for the trails."""


async def load_fleet(services: Services) -> FleetSource:
    """Look which topics there are, and when the oldest report was made."""
    there = set(await services.admin.list_topics())
    if REPORTS not in there:
        return FleetSource(topics=(), first_ms=None)
    topics = (REPORTS, ALERTS) if ALERTS in there else (REPORTS,)
    (described,) = await services.admin.describe_topics([REPORTS])
    places = [TopicPartition(REPORTS, one.partition) for one in described.partitions if one.leader >= 0]
    return FleetSource(
        topics=topics,
        first_ms=await _first_ms(services, places),
        back_ms=back_ms(await _recent(services, places)),
    )


async def _first_ms(services: Services, places: list[TopicPartition]) -> int | None:
    # Asked as a time and not read: a fetch over all partitions leaves out those whose first batch is large.
    found = await services.admin.list_offsets(dict.fromkeys(places, 0))
    return min((one.timestamp for one in found.values() if one.offset >= 0), default=None)


async def _recent(services: Services, places: list[TopicPartition]) -> int:
    """How many reports the last minute has."""
    since_ms = time.time_ns() // 1_000_000 - _LOOK_MS
    begins = await services.admin.list_offsets(dict.fromkeys(places, since_ms))
    ends = await services.admin.list_offsets(dict.fromkeys(places, "latest"))
    return sum(ends[place].offset - one.offset for place, one in begins.items() if one.offset >= 0)


def back_ms(recent: int) -> int:
    """How much time holds about as many reports as are worth reading, if the last minute had so many."""
    return min(max(_BACK_RECORDS * _LOOK_MS // max(recent, 1), BACK_LEAST_MS), BACK_MOST_MS)
