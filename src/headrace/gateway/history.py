"""What flowed and what lagged in the last hour, from samples: end offsets of logs, committed offsets of groups.

Nothing is asked that Apache Kafka would not answer too. A sample that takes long makes the next one come later, so that
the cluster is asked for a tenth of the time at most. Lag in seconds is how long ago the next record that a group will
read was written: read off the samples of its log, or from the record itself if it is older than they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from headrace.client.async_admin import AsyncKafkaAdmin
from headrace.client.client_options import gather
from headrace.client.cluster import Cluster
from headrace.client.fault import ClientFault, NotServed
from headrace.client.fetching import Fetcher
from headrace.client.option_table import ADMIN
from headrace.client.records import TopicPartition
from headrace.gateway.ring import Ring, rates
from headrace.model.errors import KafkaError

if TYPE_CHECKING:
    from headrace.gateway.services import Services

Series = list[tuple[float, float]]
_POINTS_MAX = 1000
_IDLE_SHARE = 9
"""A sample that took a second is followed by nine of rest, however short the interval."""
_LOOKUPS_MAX = 64
"""Records that one sample reads to learn how old they are."""
_RECORD_BYTES = 1
"""A fetch gives the first batch whole, whatever it was asked for; more than that is not wanted."""
_GROUPS_AT_ONCE = 16
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a group is behind."""

    records: int
    seconds: float | None
    """None where it is not known."""


class History:
    """Samples of one cluster; an asynchronous context manager that looks while it is open."""

    def __init__(self, services: Services) -> None:
        config = services.config
        self.span_s: float = config["history.minutes"] * 60.0
        self._interval_s = max(config["history.interval.ms"] / 1000, self.span_s / _POINTS_MAX)
        points = max(int(self.span_s / self._interval_s) + 1, 2)
        groups_max = config["history.groups.max"]
        self._ends: Ring[TopicPartition] = Ring(points, config["history.partitions.max"])
        self._topics: Ring[str] = Ring(points, config["history.partitions.max"])
        self._total: Ring[str] = Ring(points, 1)
        self._records: Ring[str] = Ring(points, groups_max)
        self._seconds: Ring[str] = Ring(points, groups_max)
        self._groups_max = groups_max
        self._sum = 0.0
        self._end_before: Mapping[TopicPartition, int] = {}
        self.committed: Mapping[str, Mapping[TopicPartition, int]] = {}
        """What groups had committed at the last look, of partitions that are there."""
        self._ages: dict[tuple[str, TopicPartition], tuple[int, float]] = {}
        self._admin = AsyncKafkaAdmin(config=services.client)
        self._cluster = Cluster(gather(ADMIN, {}, config=services.client).connection())
        self._fetcher = Fetcher(self._cluster, isolation_level="read_uncommitted")
        self.cluster_id = ""
        """The cluster's name for itself, as soon as it was asked."""
        self.is_answered = True
        """Whether the cluster answered at the last look."""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="gateway-history")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._admin.close()
        await self._cluster.close()

    # --- what it knows

    @property
    def topics(self) -> list[str]:
        """The topics there were at the last look."""
        return sorted({place.topic for place in self._end_before})

    def throughput(self, topic: str | None = None) -> Series:
        """Records per second that were written over time, to one topic or to all."""
        return rates(self._total.series("") if topic is None else self._topics.series(topic))

    def rate(self, topic: str | None = None) -> float | None:
        """Records per second now; None if it is not known yet."""
        series = self._total.series("")[-2:] if topic is None else self._topics.series(topic)[-2:]
        found = rates(series)
        return found[-1][1] if found else None

    def lag_records(self, group_id: str) -> Series:
        """How many records a group was behind, over time."""
        return self._records.series(group_id)

    def lag_seconds(self, group_id: str) -> Series:
        """How many seconds a group was behind, over time, where that is known."""
        return self._seconds.series(group_id)

    def lag(self, group_id: str) -> Lag | None:
        """How far a group is behind now, as of the last sample."""
        records = self._records.last(group_id)
        return None if records is None else Lag(records=int(records), seconds=self._seconds.last(group_id))

    def age_of(self, place: TopicPartition, offset: int, now: float) -> float | None:
        """How long ago the record with this offset was written, if the samples tell."""
        when = self._ends.when_reached(place, offset)
        return None if when is None else max(now - when, 0.0)

    def lag_of(self, group_id: str, topic: str, now: float) -> Lag | None:
        """How far a group was behind in one topic at the last look; None if it does not read it."""
        offsets = {place: one for place, one in self.committed.get(group_id, {}).items() if place.topic == topic}
        return self._lag(group_id, offsets, now) if offsets else None

    # --- looking

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self.sample(time.time())
            except (ClientFault, KafkaError, TimeoutError, OSError) as error:
                # A cluster that is away leaves a gap; pages say so themselves.
                self.is_answered = False
                logger.debug("history_gap reason=%s", error)
            except Exception:
                logger.exception("history_mistake")
            else:
                self.is_answered = True
            took = loop.time() - began
            await asyncio.sleep(max(self._interval_s - took, _IDLE_SHARE * took))

    async def sample(self, now: float) -> None:
        """Look once."""
        if not self.cluster_id:
            self.cluster_id = (await self._admin.describe_cluster()).cluster_id
        topics = await self._admin.describe_topics()
        places = [
            TopicPartition(topic.name, one.partition) for topic in topics for one in topic.partitions if one.leader >= 0
        ]
        found = await self._admin.list_offsets(dict.fromkeys(places, "latest")) if places else {}
        self.take_ends(now, {place: one.offset for place, one in found.items()})
        await self._sample_groups(now)

    def take_ends(self, now: float, ends: Mapping[TopicPartition, int]) -> None:
        """Where all logs end at this moment."""
        by_topic: dict[str, float] = {}
        for place, end in ends.items():
            by_topic[place.topic] = by_topic.get(place.topic, 0) + end
        # The sum of what was added: a topic that is deleted takes nothing away from what flowed before.
        for place, end in ends.items():
            before = self._end_before.get(place)
            if before is not None:
                self._sum += end - before if end >= before else end
        self._end_before = dict(ends)
        self._ends.add(now, ends)
        self._topics.add(now, by_topic)
        self._total.add(now, {"": self._sum})

    async def _sample_groups(self, now: float) -> None:
        listed = [one.group_id for one in await self._admin.list_groups()][: self._groups_max]
        gate = asyncio.Semaphore(_GROUPS_AT_ONCE)

        async def offsets(group_id: str) -> Mapping[TopicPartition, Any]:
            async with gate:
                try:
                    return await self._admin.list_group_offsets(group_id)
                except (KafkaError, NotServed):
                    return {}  # a group of another kind, or gone meanwhile

        committed = dict(zip(listed, await asyncio.gather(*map(offsets, listed)), strict=True))
        behind = {
            group_id: {place: one.offset for place, one in offsets.items() if place in self._end_before}
            for group_id, offsets in committed.items()
            if offsets
        }
        await self._look_up_ages(behind, now)
        self.take_commits(now, behind)

    def take_commits(self, now: float, committed: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        """What all groups have committed at this moment."""
        self.committed = committed
        lags = {group_id: self._lag(group_id, offsets, now) for group_id, offsets in committed.items()}
        records = {group_id: float(lag.records) for group_id, lag in lags.items()}
        seconds = {group_id: math.nan if lag.seconds is None else lag.seconds for group_id, lag in lags.items()}
        self._records.add(now, records)
        self._seconds.add(now, seconds)

    def _lag(self, group_id: str, offsets: Mapping[TopicPartition, int], now: float) -> Lag:
        lags = {place: max(self._end_before.get(place, 0) - offset, 0) for place, offset in offsets.items()}
        ages = [self._age(group_id, place, offsets[place], now) for place, lag in lags.items() if lag]
        known = [age for age in ages if age is not None]
        seconds = max(known, default=0.0) if known or not ages else None
        return Lag(records=sum(lags.values()), seconds=seconds)

    def _age(self, group_id: str, place: TopicPartition, offset: int, now: float) -> float | None:
        age = self.age_of(place, offset, now)
        if age is not None:
            return age
        looked_up = self._ages.get((group_id, place))
        return max(now - looked_up[1], 0.0) if looked_up is not None and looked_up[0] == offset else None

    async def _look_up_ages(self, committed: Mapping[str, Mapping[TopicPartition, int]], now: float) -> None:
        """Read the next record of groups that stand before what the samples tell; each such record once."""
        wanted = {
            (group_id, place): offset
            for group_id, offsets in committed.items()
            for place, offset in offsets.items()
            if offset < self._end_before[place] and self.age_of(place, offset, now) is None
        }
        self._ages = {key: known for key, known in self._ages.items() if key in wanted and wanted[key] == known[0]}
        missing = [key for key in wanted if key not in self._ages][:_LOOKUPS_MAX]
        for group_id, place in missing:
            offset = wanted[group_id, place]
            when = await self.written_at(place, offset)
            if when is not None:
                self._ages[group_id, place] = (offset, when)

    async def written_at(self, place: TopicPartition, offset: int) -> float | None:
        """When the first record at or after an offset was written, from the record itself."""
        try:
            found = await self._fetcher.fetch({place: offset}, max_wait_ms=0, partition_bytes=_RECORD_BYTES)
        except (KafkaError, ClientFault):
            return None
        records = found[place].records if place in found else ()
        return records[0].timestamp / 1000 if records else None
