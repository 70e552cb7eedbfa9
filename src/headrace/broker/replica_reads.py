"""A follower's fetch, as the leader serves it: up to the log end, and counted.

It is counted once, on arrival: its offsets say what the follower has. Then it is parked as a consumer's is, but woken
by every append rather than by the high watermark. That the high watermark or the log start has moved is told too, a
little later, so that a busy leader need not answer twice for every batch.

A follower may follow thousands of partitions of which few have news. So those that it is level with are passed over,
and one that is parked is looked at again only where something happened.

A throttled follower that is not in sync is sent nothing while the leader's quota is exceeded (KIP-73); one that is in
sync is never held back, but counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from headrace.broker.fetcher import Fetch, Found
from headrace.broker.steady_clock import steady_ms
from headrace.cores.replication.leader import NotAFollower

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from headrace.broker.fetcher import Cached
    from headrace.broker.held_partition import HeldPartition
    from headrace.broker.partition import Partition
    from headrace.model.errors import KafkaError
    from headrace.net.reply import Buffers, PendingReply

MARKS_TOLD_MS = 20
"""How long after the high watermark moved a parked follower hears of it."""


class ReplicaFound(Found):
    """What was found for one partition of a follower."""

    __slots__ = ()

    def check(self, partition: Partition, fetch: Fetch) -> None:
        """Count the follower, the first time; refuse whom this broker does not lead."""
        assert isinstance(fetch, ReplicaFetch)
        asked = self.cached.asked
        if fetch.is_counted:
            partition.check_replica(asked)
            return
        try:
            diverging = partition.fetched(fetch.replica_id, fetch.broker_epoch, asked)
        except NotAFollower as error:
            fetch.refused(error)
            raise
        if diverging is not None:
            self.diverging_epoch = (diverging.epoch, diverging.end_offset)

    def read(self, partition: Partition, budget: int, fetch: Fetch, *, at_least_one: bool, wait: bool = False) -> None:
        """Find the batches to copy, unless they have to wait."""
        assert isinstance(fetch, ReplicaFetch)
        if not fetch.holds_back(partition):
            super().read(partition, budget, fetch, at_least_one=at_least_one, wait=wait)
            return
        self.check(partition, fetch)
        self.partition = partition
        self.high_watermark = partition.log.high_watermark
        self.last_stable_offset = partition.last_stable_offset
        self.log_start_offset = partition.log.log_start_offset

    def count(self) -> None:
        """Copies are not what consumers read."""
        assert self.partition is not None, "records come from a partition"
        self.partition.traffic.replication_bytes_out += sum(map(len, self.records))

    def limit(self, fetch: Fetch) -> int:
        """A follower copies everything there is."""
        assert self.partition is not None
        return self.partition.log.log_end_offset


class ReplicaFetch(Fetch):
    """One fetch request of a follower from arrival to answer."""

    __slots__ = ("_marks_timer", "_places", "_woken", "broker_epoch", "is_counted", "replica_id")

    FOUND: ClassVar[type[Found]] = ReplicaFound

    def start(self) -> Buffers | PendingReply:
        """Answer now if there is something to copy; otherwise park."""
        self.replica_id = self._command.replica_id
        self.broker_epoch = self._command.replica_epoch
        self.is_counted = False
        self._marks_timer: asyncio.TimerHandle | None = None
        self._places: dict[HeldPartition, Cached] = {}
        """The partitions that were there on arrival."""
        self._woken: dict[HeldPartition, Cached] = {}
        """Those in which something has happened since."""
        return super().start()

    def refused(self, error: KafkaError) -> None:
        """Tell that a client poses as a replica, or a broker does not know yet that it is none."""
        subject = f"replica={self.replica_id} peer={self._call.connection.peer[0]}"
        self._call.broker.refusals.tell("replica_refused", subject, error)

    # --- evaluating

    def _evaluate(self) -> tuple[list[Found], int, bool]:
        evaluated = super()._evaluate()
        self.is_counted = True
        return evaluated

    def _to_read(self) -> Iterable[Cached]:
        if self._session is None or self._full:
            return self._wanted
        if self.is_counted:
            return list(self._woken.values())
        return self._with_news()

    def _with_news(self) -> list[Cached]:
        """The partitions of a session that the follower is not level with, or has something to say of."""
        broker = self._call.broker
        find, now_ms = broker.partitions.find, steady_ms()
        known = broker.metadata.brokers.get(self.replica_id)
        if known is None or known.broker_epoch != self.broker_epoch:
            return list(self._wanted)
        news = []
        for cached in self._wanted:
            partition = find((cached.topic, cached.partition))
            if partition is None or not partition.is_level(self.replica_id, self.broker_epoch, cached.asked, now_ms):
                news.append(cached)
                continue
            self._places[partition] = cached
            if _has_other_marks(partition, cached):
                self._woken[partition] = cached
        return news

    # --- throttling

    def holds_back(self, partition: Partition) -> bool:
        """Whether the follower has to wait: it is throttled, not in sync, and lately much was sent."""
        quota, leader = self._call.broker.throttles.leader, partition.replicated
        if leader is None or not quota.is_throttled(partition.topic, partition.index):
            return False
        return self.replica_id not in leader.isr.committed and quota.is_exceeded(steady_ms())

    def _encode(self, found: list[Found]) -> Buffers:
        """Count what throttled followers are sent, whether they had to wait or not."""
        quota = self._call.broker.throttles.leader
        sent_bytes = sum(
            sum(map(len, entry.records))
            for entry in found
            if entry.partition is not None and quota.is_throttled(entry.partition.topic, entry.partition.index)
        )
        if sent_bytes:
            quota.record(sent_bytes, steady_ms())
        return super()._encode(found)

    # --- waiting

    def _park(self, found: list[Found]) -> None:
        self._begin_waiting()
        for entry in found:
            read = entry.partition
            if read is not None:
                self._places[read] = entry.cached
                if _has_other_marks(read, entry.cached):
                    self._woken[read] = entry.cached
        for partition in self._places:
            partition.park_replica(self)
        if self._woken:
            self._tell_marks_soon()

    def _unpark(self) -> None:
        self._end_waiting()
        for partition in self._places:
            partition.unpark_replica(self)
        if self._marks_timer is not None:
            self._marks_timer.cancel()
            self._marks_timer = None

    def wake_for(self, partition: HeldPartition) -> None:
        """Something was appended, or we lead it no longer."""
        self._woken[partition] = self._places[partition]
        self.wake()

    def wake_for_marks(self, partition: HeldPartition) -> None:
        """A mark has moved."""
        self._woken[partition] = self._places[partition]
        self._tell_marks_soon()

    def _tell_marks_soon(self) -> None:
        """Without a session the follower cannot be told only that."""
        if self._marks_timer is None and self._session is not None:
            self._marks_timer = self._call.connection.loop.call_later(MARKS_TOLD_MS / 1000, self._expire)


def _has_other_marks(partition: HeldPartition, cached: Cached) -> bool:
    """Whether the follower was told other marks than there are now."""
    log = partition.log
    return log.high_watermark != cached.high_watermark or log.log_start_offset != cached.log_start_offset
