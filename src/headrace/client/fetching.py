"""Reading partitions from any place, without a group and without librdkafka: one question, one answer.

For those who read a little from here and there (the gateway, the console) or serve many readers from one place. Nothing
is kept between two questions but who leads what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.client.admin_topics import LEVELS
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.records.aborted import AbortedProducers
from headrace.records.batch import BatchHeader, split_batches
from headrace.records.control import read_end_marker
from headrace.records.walk import payload_of, walk_payload
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

FETCH = 1
_VERSION_MAX = 12
"""The last in which topics go by their names."""
_NO_LEADER = -1


class FetchedRecord(NamedTuple):
    """One record."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class FetchedPartition(NamedTuple):
    """What one partition gave."""

    records: Sequence[FetchedRecord]
    position: int
    """Where to read on: behind the last record, and behind what is not shown, such as markers of transactions."""
    start_offset: int
    end_offset: int
    """Behind the last record that may be read: the high watermark, or the last stable offset."""


class Fetcher:
    """Reads from a cluster; several may be asked for at once."""

    def __init__(self, cluster: Cluster, *, isolation_level: str = "read_committed") -> None:
        self._cluster = cluster
        self._isolation = LEVELS[isolation_level]
        self._leaders: dict[TopicPartition, int] = {}

    async def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        max_wait_ms: int = 500,
        max_bytes: int = 1024 * 1024,
        partition_bytes: int = 256 * 1024,
    ) -> dict[TopicPartition, FetchedPartition]:
        """What there is from these offsets on, waiting for the first record if there is none.

        Partitions of one leader are asked for together, and so wait together; whoever wants partitions of several
        leaders without waiting for the slowest asks for each leader's alone (`by_leader`). KafkaError for the first
        partition that cannot be read: OFFSET_OUT_OF_RANGE if its offset is not there.
        """

        async def attempt() -> dict[TopicPartition, FetchedPartition]:
            parts = await asyncio.gather(
                *(
                    self.fetch_from(
                        leader,
                        {place: positions[place] for place in places},
                        max_wait_ms=max_wait_ms,
                        max_bytes=max_bytes,
                        partition_bytes=partition_bytes,
                    )
                    for leader, places in (await self.by_leader(positions)).items()
                )
            )
            found: dict[TopicPartition, FetchedPartition] = {}
            for place, one in (item for part in parts for item in part.items()):
                if isinstance(one, KafkaError):
                    raise one
                found[place] = one
            return found

        return await self._cluster.persist(attempt)

    async def by_leader(
        self, places: Sequence[TopicPartition] | Mapping[TopicPartition, Any]
    ) -> dict[int, list[TopicPartition]]:
        """The partitions sorted by the broker that leads them; KafkaError if one is unknown or has no leader."""
        if any(place not in self._leaders for place in places):
            await self._look_up({place.topic for place in places})
        found: dict[int, list[TopicPartition]] = {}
        for place in places:
            leader = self._leaders.get(place)
            if leader is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{place.topic}' has no partition {place.partition}."
                )
            if leader == _NO_LEADER:
                del self._leaders[place]
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place.topic}-{place.partition} has no leader now.")
            found.setdefault(leader, []).append(place)
        return found

    async def _look_up(self, topics: set[str]) -> None:
        answer = await self._cluster.metadata(sorted(topics))
        for topic in answer.topics:
            if topic.error_code:
                raise KafkaError(ErrorCode(topic.error_code), f"Topic '{topic.name}' cannot be read.")
            for one in topic.partitions:
                self._leaders[TopicPartition(topic.name or "", one.partition_index)] = one.leader_id

    async def fetch_from(
        self,
        leader: int,
        positions: Mapping[TopicPartition, int],
        *,
        max_wait_ms: int,
        max_bytes: int = 1024 * 1024,
        partition_bytes: int = 256 * 1024,
    ) -> dict[TopicPartition, FetchedPartition | KafkaError]:
        """What one broker gives, partition by partition, with the error of those it does not; asked once."""
        by_topic: dict[str, list[FetchPartition]] = {}
        for place, offset in positions.items():
            asked = FetchPartition(partition=place.partition, fetch_offset=offset, partition_max_bytes=partition_bytes)
            by_topic.setdefault(place.topic, []).append(asked)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=self._isolation,
            topics=tuple(FetchTopic(topic=topic, partitions=tuple(parts)) for topic, parts in by_topic.items()),
        )
        try:
            channel = await self._cluster.channel_to(leader)
            answer = await channel.ask(FETCH, request, version=channel.version_of(FETCH, at_most=_VERSION_MAX))
        except BaseException:
            self._forget(positions)
            raise
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code), "The broker refused to be read from.")
        found: dict[TopicPartition, FetchedPartition | KafkaError] = {}
        for topic in answer.responses:
            for one in topic.partitions:
                place = TopicPartition(topic.topic, one.partition_index)
                if one.error_code:
                    self._forget(positions)
                    found[place] = KafkaError(ErrorCode(one.error_code), _refusal(place, positions[place], one))
                else:
                    found[place] = _partition(place, positions[place], one, committed=self._isolation > 0)
        return found

    def _forget(self, places: Mapping[TopicPartition, int]) -> None:
        for place in places:
            self._leaders.pop(place, None)


def _refusal(place: TopicPartition, offset: int, answer: Any) -> str:
    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return f"{place.topic}-{place.partition} has no offset {offset}."
    return f"{place.topic}-{place.partition} cannot be read."


def _partition(place: TopicPartition, offset: int, answer: Any, *, committed: bool) -> FetchedPartition:
    records, position = read_batches(
        place,
        offset,
        memoryview(answer.records or b""),
        [(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()] if committed else (),
    )
    end = answer.last_stable_offset if committed else answer.high_watermark
    return FetchedPartition(records, position, answer.log_start_offset, end)


def read_batches(
    place: TopicPartition, offset: int, data: memoryview, aborted: Sequence[tuple[int, int]]
) -> tuple[list[FetchedRecord], int]:
    """The records from an offset on, and where to read on."""
    records: list[FetchedRecord] = []
    undone = AbortedProducers(aborted)
    position = offset
    for start, header in split_batches(data):
        batch = data[start : start + header.size]
        position = max(position, header.next_offset)
        undone.reach(header.last_offset)
        if header.is_control:
            marker = read_end_marker(batch, header)
            if marker is not None and not marker.committed:
                undone.end(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in undone:
            continue
        records += _records(place, offset, batch, header)
    return records, position


def _records(place: TopicPartition, offset: int, batch: memoryview, header: BatchHeader) -> Iterator[FetchedRecord]:
    for one in walk_payload(payload_of(batch, header), header):
        if one.offset >= offset:
            yield FetchedRecord(
                place.topic,
                place.partition,
                one.offset,
                one.timestamp,
                None if one.key is None else bytes(one.key),
                None if one.value is None else bytes(one.value),
                one.headers,
            )
