"""A partition as a broker holds it, whoever leads it: its log, how far that is safe, what failed, and who waits."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from headrace.broker.partition_waiters import FlushWaiters, LowWaiters
from headrace.broker.traffic import Traffic
from headrace.model.errors import ErrorCode, KafkaError, StorageFault

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from headrace.broker.flusher import Flusher
    from headrace.broker.lane import Lane
    from headrace.broker.led_partition import LedPartition
    from headrace.broker.partition_waiters import FetchWaiter, ReplicaWaiter
    from headrace.cores.producers import ProducerStates
    from headrace.cores.replication.leader import Leader
    from headrace.cores.replication.messages import AlterPartition
    from headrace.cores.replication.replica import Replica
    from headrace.model.log_config import LogConfig
    from headrace.storage.log import Log

DAY_MS = 24 * 3600 * 1000


def not_led_here() -> KafkaError:
    """What whoever needs the leader hears of any other broker."""
    return KafkaError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, "For requests intended only for the leader, this broker is not it."
    )


class HeldPartition:
    """What leading a partition and following it have in common."""

    __slots__ = (
        "_broken",
        "_fetch_waiters",
        "_flush_waiters",
        "_flusher",
        "_gaps_close_ms",
        "_is_flush_due",
        "_is_refusing",
        "_leader_start_offset",
        "_low_waiters",
        "_on_fault",
        "_replica_waiters",
        "_safe_waiters",
        "_settling",
        "_unstable",
        "fault",
        "index",
        "is_led",
        "lane",
        "leader_epoch",
        "log",
        "on_isr_change",
        "producers",
        "replica",
        "replicated",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(
        self,
        *,
        topic: str,
        topic_id: UUID,
        index: int,
        log: Log,
        producers: ProducerStates,
        flusher: Flusher,
        lane: Lane,
        on_fault: Callable[[HeldPartition, StorageFault | None], None],
    ) -> None:
        """It serves nothing until it is told its part: `lead` or `follow`."""
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.producers = producers
        self._unstable = producers.unstable
        self.traffic = Traffic()
        """What went in and out; all partitions of a topic share it."""
        self.leader_epoch = -1
        self.lane = lane
        self.is_led = False
        """Whether this broker leads it."""
        self.fault: KafkaError | None = not_led_here()
        """Why writes are refused: it is led elsewhere, or the disk failed. Reads of what is safe go on."""
        self.replica: Replica | None = None
        """Our part in it as the metadata says; None where nobody asked the metadata."""
        self.replicated: Leader | None = None
        """The same, while we lead it and it has followers."""
        self.on_isr_change: Callable[[LedPartition, AlterPartition], None] = lambda partition, request: None
        self._broken: KafkaError | None = None
        """Why the disk can be trusted no longer, whatever our part is."""
        self._is_refusing = False
        """Whether the last write failed; it may go better with the next."""
        self._is_flush_due = False
        self._flusher = flusher
        self._on_fault = on_fault
        self._safe_waiters: deque[tuple[int, Callable[[KafkaError | None], None]]] = deque()
        self._fetch_waiters: dict[FetchWaiter, None] = {}
        self._replica_waiters: dict[ReplicaWaiter, None] = {}
        self._low_waiters = LowWaiters()
        self._flush_waiters = FlushWaiters()
        self._settling: asyncio.Future[None] | None = None
        self._leader_start_offset = -1
        self._gaps_close_ms = 0
        """Until then a gap in a producer's sequence numbers is one that closes by itself."""

    @property
    def is_broken(self) -> bool:
        """Whether it takes nothing more, whoever leads it: its disk failed, or it is gone."""
        return self._broken is not None

    @property
    def config(self) -> LogConfig:
        """The topic's settings as they are now."""
        return self.log.config

    def change_log(self, log: Log) -> None:
        """Go on with a whole copy of the log in its place; what of it is not on the disk yet is flushed."""
        self.log = log
        if self.replica is not None:
            self.replica.change_log(log)
        self.flush()

    # --- what is safe

    def restore_high_watermark(self, offset: int) -> None:
        """Begin with a high watermark that was known before; what lies above may not be committed."""
        self.log.high_watermark = max(self.log.log_start_offset, min(offset, self.log.log_end_offset))
        self.producers.advance(self.log.high_watermark)

    def advance(self, offset: int) -> None:
        """Raise the high watermark and tell those who wait for it."""
        if offset <= self.log.high_watermark:
            return
        self.log.high_watermark = offset
        if self._unstable.ended:
            self._unstable.advance(offset)
        waiters = self._safe_waiters
        while waiters and waiters[0][0] <= offset:
            waiters.popleft()[1](None)
        if self._replica_waiters:
            self._tell_marks()
        if self._fetch_waiters:
            self.wake_fetches()

    def is_safe(self, end_offset: int) -> bool:
        """Whether `when_safe` would call at once, and with good news."""
        return self.fault is None and self.log.high_watermark >= end_offset

    def when_safe(self, end_offset: int, done: Callable[[KafkaError | None], None]) -> None:
        """Call `done` when everything below `end_offset` is safe, or cannot be made so."""
        if self.fault is not None:
            done(self.fault)
        elif self.log.high_watermark >= end_offset:
            done(None)
        else:
            self._safe_waiters.append((end_offset, done))

    def _tell_marks(self) -> None:
        for waiter in tuple(self._replica_waiters):
            waiter.wake_for_marks(self)

    # --- the disk

    def flush(self) -> None:
        """Flush in the background, whoever waits or not."""
        if self.log.fault is None:
            self._flusher.request(self)

    def _flush_later(self, delay_ms: int) -> None:
        """Flush when the oldest append since the last timed flush is so old."""
        if not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_later(min(delay_ms, DAY_MS) / 1000, self._flush_in_time)

    def _flush_in_time(self) -> None:
        """The oldest append since the last timed flush is `flush.ms` old."""
        self._is_flush_due = False
        if self._settling is None:
            self.flush()

    async def flushed(self) -> None:
        """Flush, and wait until everything that is in the log now is on the disk, or will never be."""
        if self.log.recovery_point >= self.log.log_end_offset or self.log.fault is not None:
            return
        flushed = self._flush_waiters.add(self.log.log_end_offset)
        self._flusher.request(self)
        await flushed

    def _tell_flushed(self) -> None:
        self._flush_waiters.tell(self.log)
        if self._flush_waiters:
            # The log was truncated under the flush, or has grown since: not from within the flusher's own turn.
            asyncio.get_running_loop().call_soon(self.flush)

    def on_flushed(self) -> None:
        """The disk has everything below the recovery point."""
        if self._flush_waiters:
            self._tell_flushed()

    def on_flush_failed(self, fault: StorageFault) -> None:
        """Nothing more is acknowledged here; what was safe stays readable."""
        self._tell_flushed()
        if self.fault is not None and self.fault.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            # The topic was deleted under the flush, or this was known before: everyone who waited has been told.
            return
        self.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)))
        self._on_fault(self, fault)

    def _refused(self, fault: StorageFault) -> KafkaError:
        """A write failed: say so once, until one succeeds again; a log that cannot go on is given up."""
        error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault))
        if self.log.fault is not None:
            if self.fault is None or self.fault.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self.fail(error)
                self._on_fault(self, fault)
        elif not self._is_refusing:
            self._is_refusing = True
            self._on_fault(self, fault)
        return error

    def _accept_again(self) -> None:
        """A write succeeded after one that failed."""
        self._is_refusing = False
        self._on_fault(self, None)

    def fail(self, error: KafkaError) -> None:
        """Refuse writes for good and answer everyone who waits for one: the disk failed, or the partition is gone."""
        self._broken = error
        self._refuse(error)

    def _refuse(self, error: KafkaError) -> None:
        self.fault = error
        waiters, self._safe_waiters = self._safe_waiters, deque()
        for _, done in waiters:
            done(error)
        self._low_waiters.refuse(error)
        self.wake_fetches()
        for waiter in tuple(self._replica_waiters):
            waiter.wake_for(self)

    # --- a truncation under way

    async def settled(self) -> None:
        """Wait until a truncation under way is done: our part must not change under it."""
        while self._settling is not None:
            await asyncio.wait({self._settling})

    @property
    def is_settling(self) -> bool:
        """Whether a thread is truncating the log, so that nobody may look at it."""
        return self._settling is not None

    def begin_settling(self) -> Callable[[], None]:
        """The log is going to be truncated by a thread; what is returned is to be called when it is done."""
        assert self._settling is None, "one truncation at a time"
        settling = self._settling = asyncio.get_running_loop().create_future()

        def done() -> None:
            self._settling = None
            settling.set_result(None)
            self._tell_flushed()

        return done

    # --- who reads

    @property
    def last_stable_offset(self) -> int:
        """What a read_committed consumer may read up to: all below is decided, and safe."""
        log = self.log
        first_unstable = self._unstable.first
        if first_unstable >= log.high_watermark:
            return log.high_watermark
        return max(first_unstable, log.log_start_offset)

    def park(self, waiter: FetchWaiter) -> None:
        """Wake `waiter` when there is more to read."""
        self._fetch_waiters[waiter] = None

    def unpark(self, waiter: FetchWaiter) -> None:
        """Stop waking `waiter`."""
        self._fetch_waiters.pop(waiter, None)

    def wake_fetches(self) -> None:
        """Have everyone parked look again."""
        for waiter in tuple(self._fetch_waiters):
            waiter.wake()

    def park_replica(self, waiter: ReplicaWaiter) -> None:
        """Wake a follower's fetch when something is appended or a mark has moved."""
        self._replica_waiters[waiter] = None

    def unpark_replica(self, waiter: ReplicaWaiter) -> None:
        """Stop waking it."""
        self._replica_waiters.pop(waiter, None)
