"""Reading what a question about records asks for: a page of them, with bounds on what is looked through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.fetching import FetchedRecord, Fetcher
from headrace.client.records import TopicPartition
from headrace.console.record_query import LIVE_BEFORE
from headrace.gateway.streams.event import Event
from headrace.gateway.streams.filter import parse_filter
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.client.async_admin import AsyncKafkaAdmin
    from headrace.console.record_query import RecordQuery

SCANNED_MAX = 100_000
"""Records that one page looks through; whoever wants more asks for the next."""
_SECONDS_MAX = 8.0
_CHUNK_BYTES, _PARTITION_BYTES = 1024 * 1024, 256 * 1024
_WIDEN = 8

Test = Callable[[FetchedRecord], bool]


def record_test(text: str) -> Test:
    """A filter as a function of a record; BadFilter says what is wrong with it, and where."""
    if not text.strip():
        return lambda _: True
    accepts = parse_filter(text)
    return lambda record: accepts(Event(record))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """Some records and where they came from."""

    records: list[FetchedRecord]
    scanned: int
    is_end: bool
    """Whether everything that was there has been looked at."""


class RecordReader:
    """Reads one question, a page at a time."""

    def __init__(self, admin: AsyncKafkaAdmin, fetcher: Fetcher, query: RecordQuery) -> None:
        """BadFilter if its filter makes no sense."""
        self._admin = admin
        self._fetcher = fetcher
        self._query = query
        self._test = record_test(query.filter)
        self.positions: dict[TopicPartition, int] = {}
        self._begins: Mapping[TopicPartition, int] = {}
        self._ends: Mapping[TopicPartition, int] = {}
        self._left: list[FetchedRecord] = []

    async def open(self) -> None:
        """Find out where to begin; KafkaError if the topic or the partition is not there."""
        query = self._query
        (topic,) = await self._admin.describe_topics([query.topic])
        numbers = [one.partition for one in topic.partitions if query.partition in {None, one.partition}]
        if not numbers:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{query.topic}' has no partition {query.partition}."
            )
        places = [TopicPartition(query.topic, number) for number in numbers]
        self._begins = await self._offsets(places, "earliest")
        self._ends = await self._offsets(places, "latest")
        self.positions = await self._starts(places)

    async def _offsets(self, places: list[TopicPartition], when: int | str) -> dict[TopicPartition, int]:
        found = await self._admin.list_offsets(dict.fromkeys(places, when), isolation_level="read_committed")
        return {place: one.offset for place, one in found.items()}

    async def _starts(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        query, begins, ends = self._query, self._begins, self._ends
        match query.start:
            case "beginning":
                return dict(begins)
            case "offset":
                return {place: min(max(query.offset, begins[place]), ends[place]) for place in places}
            case "time" if query.time_ms is not None:
                found = await self._offsets(places, query.time_ms)
                return {place: ends[place] if found[place] < 0 else found[place] for place in places}
            case "live":
                return {place: max(ends[place] - LIVE_BEFORE, begins[place]) for place in places}
        return {place: max(ends[place] - query.limit, begins[place]) for place in places}

    async def page(self, limit: int | None = None) -> RecordPage:
        """The next records, in the order of their times; of the newest, all at once."""
        wanted = self._query.limit if limit is None else limit
        if self._query.start == "last":
            return await self._newest(wanted)
        deadline = asyncio.get_running_loop().time() + _SECONDS_MAX
        scanned = 0
        while len(self._left) < wanted and not self._is_end and scanned < SCANNED_MAX:
            records = await self.read(max_wait_ms=0)
            scanned += len(records)
            self._left += filter(self._test, records)
            if asyncio.get_running_loop().time() > deadline:
                break
        self._left.sort(key=_order)
        page, self._left = self._left[:wanted], self._left[wanted:]
        return RecordPage(records=page, scanned=scanned, is_end=self._is_end and not self._left)

    async def _newest(self, wanted: int) -> RecordPage:
        """Look through a window at the end, and through ever larger ones before it, until there are enough."""
        found: list[FetchedRecord] = []
        scanned, window = 0, wanted
        ends = dict(self._ends)
        deadline = asyncio.get_running_loop().time() + _SECONDS_MAX
        while True:
            self.positions = {place: max(end - window, self._begins[place]) for place, end in ends.items()}
            starts = dict(self.positions)
            while any(self.positions[place] < ends[place] for place in ends):
                records = await self.read(ends=ends)
                scanned += len(records)
                found += (one for one in records if one.offset < ends[_place(one)] and self._test(one))
            is_end = all(starts[place] <= self._begins[place] for place in starts)
            is_late = asyncio.get_running_loop().time() > deadline
            if len(found) >= wanted or is_end or is_late or scanned >= SCANNED_MAX:
                break
            ends, window = starts, min(window * _WIDEN, SCANNED_MAX)
        found.sort(key=_order)
        return RecordPage(records=found[-wanted:], scanned=scanned, is_end=is_end)

    async def read(
        self, *, max_wait_ms: int = 0, ends: Mapping[TopicPartition, int] | None = None
    ) -> list[FetchedRecord]:
        """What comes next of each partition, unfiltered; a partition that lost its place begins anew."""
        until = ends or self._ends
        wanted = {place: at for place, at in self.positions.items() if max_wait_ms or at < until[place]}
        if not wanted:
            return []
        try:
            found = await self._fetcher.fetch(
                wanted, max_wait_ms=max_wait_ms, max_bytes=_CHUNK_BYTES, partition_bytes=_PARTITION_BYTES
            )
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            begins = await self._offsets(list(self.positions), "earliest")
            self.positions = {place: max(at, begins[place]) for place, at in self.positions.items()}
            self._begins = begins
            return []
        records = [record for one in found.values() for record in one.records]
        if not max_wait_ms and all(one.position == wanted[place] for place, one in found.items()):
            # Nothing more is to be had for now, because of an open transaction for one: the end is reached.
            self.positions |= {place: until[place] for place in wanted}
        else:
            self.positions |= {place: one.position for place, one in found.items()}
        return records

    async def live(self, max_wait_ms: int) -> list[FetchedRecord]:
        """What has come since, of what passes the filter; waits a little if nothing has."""
        records = await self.read(max_wait_ms=max_wait_ms)
        return sorted(filter(self._test, records), key=_order)

    @property
    def _is_end(self) -> bool:
        return all(at >= self._ends[place] for place, at in self.positions.items())


def _order(record: FetchedRecord) -> tuple[int, int, int]:
    return record.timestamp, record.partition, record.offset


def _place(record: FetchedRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
