"""Reading for one share fetch: from which share partitions, how much of each, and waiting until there is something.

What can be had is first only looked at; when it is enough, or time is up, it is acquired and leaves as the log has it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field

from headrace.broker.share_settings import reads_committed
from headrace.broker.share_transactions import aborted_extents
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.records.batch import CorruptBatch, split_batches

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from headrace.broker.broker import Broker
    from headrace.broker.share_partition_leader import SharePartitionLeader
    from headrace.cores.share_partition_take import Acquired
    from headrace.net.connection import Connection
    from headrace.storage.span import Span

    TopicPartition = tuple[UUID, int]

WAIT_MS_MAX = 300_000


class ShareFetchCommand(Struct, frozen=True, kw_only=True):
    """What a member asks for."""

    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool
    """Whether `max_records` is met to the record."""


class Found(Struct):
    """What there is for a member in one partition."""

    error: KafkaError | None = None
    records: memoryview | bytes = b""
    acquired: list[Acquired] = field(default_factory=list)


class _Sight(Struct):
    """Records that could be handed out."""

    leader: SharePartitionLeader
    offset: int
    span: Span


class ShareFetch:
    """One fetch from its arrival to what it found."""

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        command: ShareFetchCommand,
        leaders: Sequence[SharePartitionLeader],
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._command = command
        self._leaders = leaders
        self._is_committed = reads_committed(broker, command.group_id)
        self._woken = asyncio.Event()
        self._is_late = False

    async def run(self) -> dict[TopicPartition, Found]:
        """What the member gets, by partition; nothing when its time is up or its connection is gone."""
        command = self._command
        if command.max_records <= 0 or command.max_bytes <= 0 or not self._leaders:
            return {}
        loop = asyncio.get_running_loop()
        timer = loop.call_later(min(max(command.max_wait_ms, 0), WAIT_MS_MAX) / 1000, self._expire)
        self._is_late = command.max_wait_ms <= 0
        for leader in self._leaders:
            leader.park(self)
        try:
            while True:
                self._woken.clear()
                found = await self._look()
                if found or self._is_late or self._connection.closed or self._broker.share.is_stopped:
                    return found
                await self._woken.wait()
        finally:
            timer.cancel()
            for leader in self._leaders:
                leader.unpark(self)

    def wake(self) -> None:
        """There may be something now."""
        self._woken.set()

    def _expire(self) -> None:
        self._is_late = True
        self._woken.set()

    # --- looking

    async def _look(self) -> dict[TopicPartition, Found]:
        """Acquire what there is, if it is enough."""
        may_be_cold = True
        while not self._connection.closed:
            sights, found = self._sights()
            if may_be_cold and not all(_is_at_hand(sight.span) for sight in sights):
                await self._warm(sights)
                may_be_cold = False
                continue
            if sum(sight.span.size for sight in sights) < self._command.min_bytes and not (self._is_late or found):
                return {}
            found |= self._acquire(sights)
            if found or not sights:
                return found
            # All that was in sight turned out to be gone or not to be seen; look behind it.
        return {}

    def _sights(self) -> tuple[list[_Sight], dict[TopicPartition, Found]]:
        """What could be handed out, within the limits, and the partitions that cannot be read."""
        sights: list[_Sight] = []
        errors: dict[TopicPartition, Found] = {}
        left = min(self._command.max_bytes, self._broker.fetch_bytes_max)
        for place, leader in enumerate(self._leaders):
            if left <= 0:
                break
            try:
                sight = self._sight(leader, max(left // (len(self._leaders) - place), 1), at_least_one=not sights)
            except (KafkaError, StorageFault) as fault:
                errors[leader.share_id[1:]] = Found(_told(fault))
                continue
            if sight is not None:
                sights.append(sight)
                left -= sight.span.size
        return sights, errors

    def _sight(self, leader: SharePartitionLeader, max_bytes: int, *, at_least_one: bool) -> _Sight | None:
        leader.check_current()
        leader.follow_log_start()
        core, partition = leader.core, leader.partition
        limit = partition.last_stable_offset if self._is_committed else partition.log.high_watermark
        offset = core.fetch_offset
        if offset >= limit or not core.can_acquire:
            return None
        span = partition.log.read(offset, max_bytes=max_bytes, limit_offset=limit, at_least_one=at_least_one)
        return _Sight(leader, offset, span) if span.size else None

    async def _warm(self, sights: Sequence[_Sight]) -> None:
        """Have a thread bring records into memory; a disk that fails is noticed when they are taken."""
        loop = asyncio.get_running_loop()
        async with self._broker.cold_fetches:
            for sight in sights:
                with suppress(StorageFault):
                    await loop.run_in_executor(self._broker.readers, sight.span.bring, sight.span.view())

    # --- acquiring

    def _acquire(self, sights: Sequence[_Sight]) -> dict[TopicPartition, Found]:
        """Lock what is in sight, up to the number of records asked for."""
        results: dict[TopicPartition, Found] = {}
        left = self._command.max_records
        for sight in sights:
            if left <= 0:
                break
            try:
                found = self._take(sight, left)
            except (StorageFault, CorruptBatch) as fault:
                results[sight.leader.share_id[1:]] = Found(_told(fault))
                continue
            left -= sum(one.last_offset - one.first_offset + 1 for one in found.acquired)
            if found.acquired:
                results[sight.leader.share_id[1:]] = found
        return results

    def _take(self, sight: _Sight, records_max: int) -> Found:
        command, leader = self._command, sight.leader
        view = sight.span.view()
        batches = list(split_batches(view))
        acquired = leader.core.acquire(
            command.member_id,
            [(header.base_offset, header.last_offset) for _, header in batches],
            fetch_offset=sight.offset,
            records_max=records_max,
            batch_size=command.batch_size,
            strict=command.strict,
            now_ms=self._broker.clock(),
        )
        if self._is_committed:
            acquired = self._without_aborted(sight, view, acquired)
        leader.watch_locks()
        if not acquired:
            return Found()
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        wanted = [(at, header) for at, header in batches if header.last_offset >= first and header.base_offset <= last]
        if not wanted:
            return Found(None, b"", acquired)
        return Found(None, view[wanted[0][0] : wanted[-1][0] + wanted[-1][1].size], acquired)

    def _without_aborted(self, sight: _Sight, view: memoryview, acquired: list[Acquired]) -> list[Acquired]:
        """Give up the records whose transactions were aborted."""
        extents = aborted_extents(sight.leader.partition.log, view, sight.offset, sight.span.end_offset)
        if not extents:
            return acquired
        for first, last in extents:
            sight.leader.core.discard(self._command.member_id, first, last)
        return [
            one._replace(first_offset=first, last_offset=last)
            for one in acquired
            for first, last in _uncovered(one.first_offset, one.last_offset, extents)
        ]


def _is_at_hand(span: Span) -> bool:
    """Whether records can be had without waiting for the disk."""
    try:
        return span.resident()
    except StorageFault:
        return True


def _told(fault: KafkaError | StorageFault | CorruptBatch) -> KafkaError:
    if isinstance(fault, KafkaError):
        return fault
    is_corrupt = isinstance(fault, CorruptBatch)
    return KafkaError(ErrorCode.CORRUPT_MESSAGE if is_corrupt else ErrorCode.KAFKA_STORAGE_ERROR, str(fault))


def _uncovered(first: int, last: int, extents: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of a range without others, which are in order."""
    left: list[tuple[int, int]] = []
    for gone_first, gone_last in extents:
        if gone_last < first or gone_first > last:
            continue
        if gone_first > first:
            left.append((first, gone_first - 1))
        first = gone_last + 1
    return [*left, (first, last)] if first <= last else left
