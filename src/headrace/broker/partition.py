"""One partition as its leader serves it: the log, its producers, and who waits for what.

The rule that everything here follows: *visible is safe*.
The high watermark is what consumers may read and what acks=all waits for.
Where a topic flushes on acks=all (the default) it follows the disk flush; where a topic opts out it follows the
append, as Kafka's does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.model.log_config import UNBOUNDED_MS, LogConfig
from headrace.records.batch import TRANSACTIONAL, BatchHeader, patch_append_time, read_header
from headrace.records.control import EndTransactionMarker, build_end_marker
from headrace.records.produced import check_produced, needs_deep_check

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from headrace.broker.flusher import Flusher
    from headrace.broker.lane import Lane
    from headrace.cores.producers import ProducerStates, Verification
    from headrace.storage.log import Log


DAY_MS = 24 * 3600 * 1000


class Appended(NamedTuple):
    """Where a batch went."""

    base_offset: int
    append_time_ms: int
    """-1 unless the topic stamps records itself."""
    end_offset: int
    """acks=all is answered when the high watermark reaches this."""


_new_appended = tuple.__new__


class FetchWaiter(Protocol):
    """Somebody parked until there is more to read."""

    def wake(self) -> None:
        """More may be readable now."""


class Partition:
    """A partition this broker leads."""

    __slots__ = (
        "_fetch_waiters",
        "_flusher",
        "_is_flush_due",
        "_is_refusing",
        "_on_fault",
        "_safe_waiters",
        "_unstable",
        "fault",
        "index",
        "lane",
        "leader_epoch",
        "log",
        "producers",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        *,
        topic: str,
        topic_id: UUID,
        index: int,
        log: Log,
        producers: ProducerStates,
        leader_epoch: int,
        flusher: Flusher,
        lane: Lane,
        on_fault: Callable[[Partition, StorageFault | None], None],
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.producers = producers
        self._unstable = producers.unstable
        self.leader_epoch = leader_epoch
        self.lane = lane
        self.fault: KafkaError | None = None
        """Set when the disk failed: writes are refused until a restart, reads of what is safe go on."""
        self._is_refusing = False
        """Whether the last write failed; it may go better with the next."""
        self._is_flush_due = False
        self._flusher = flusher
        self._on_fault = on_fault
        self._safe_waiters: deque[tuple[int, Callable[[KafkaError | None], None]]] = deque()
        self._fetch_waiters: set[FetchWaiter] = set()
        log.high_watermark = log.log_end_offset
        producers.advance(log.high_watermark)

    @property
    def config(self) -> LogConfig:
        """The topic's settings as they are now."""
        return self.log.config

    # --- writing

    def check(self, batch: memoryview, now_ms: int) -> BatchHeader:
        """Refuse what must not be appended; cheap, from the header."""
        if self.fault is not None:
            raise self.fault
        return check_produced(batch, self.log.config, now_ms)

    def must_queue(self, header: BatchHeader) -> bool:
        """Whether this batch needs a thread's help first, or stands behind one that does."""
        return self.lane.busy or needs_deep_check(header, self.log.config)

    def append(self, batch: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        """Write one checked batch; the same batch sent again is answered as the first time. HOT.

        The first batch of a transaction should have been verified with its coordinator (`must_verify`).
        """
        log = self.log
        config = log.config
        is_idempotent = header[9] >= 0
        if is_idempotent:
            known = self.producers.check(header)
            if known is not None:
                return Appended(known.first_offset, -1, known.last_offset + 1)
        append_time_ms = -1
        if config.message_timestamp_log_append:
            patch_append_time(batch, 0, timestamp_ms=now_ms)
            header = read_header(batch)
            append_time_ms = now_ms
        try:
            base_offset = log.append(batch, header, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except StorageFault as fault:
            raise self._refused(fault) from fault
        if is_idempotent:
            self.producers.record(header, base_offset, now_ms)
        return _new_appended(Appended, (base_offset, append_time_ms, self._make_safe(log, config)))

    def _make_safe(self, log: Log, config: LogConfig) -> int:
        """Have what was just written flushed as the topic asks for; answers the end offset. HOT."""
        if self._is_refusing:
            self._is_refusing = False
            self._on_fault(self, None)
        end_offset = log.log_end_offset
        if config.flush_on_acks_all or end_offset - log.recovery_point >= config.flush_messages:
            self._flusher.request(self)
        else:
            if config.flush_ms != UNBOUNDED_MS and not self._is_flush_due:
                self._is_flush_due = True
                asyncio.get_running_loop().call_later(min(config.flush_ms, DAY_MS) / 1000, self._flush_in_time)
            self.advance(end_offset)
        return end_offset

    # --- transactions

    def append_end_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        transaction_version: int,
    ) -> Appended:
        """End a producer's transaction here with a marker; without an open one the marker is written all the same."""
        if self.fault is not None:
            raise self.fault
        self.producers.check_marker(
            producer_id, producer_epoch, coordinator_epoch=coordinator_epoch, transaction_version=transaction_version
        )
        marker = EndTransactionMarker(commit, coordinator_epoch, now_ms)
        batch = memoryview(build_end_marker(marker, producer_id=producer_id, producer_epoch=producer_epoch))
        try:
            offset = self.log.append(batch, read_header(batch), leader_epoch=self.leader_epoch, now_ms=now_ms)
        except StorageFault as fault:
            raise self._refused(fault) from fault
        aborted = self.producers.end(producer_id, producer_epoch, marker, offset)
        if aborted is not None:
            self.log.note_aborted(aborted)
        return Appended(offset, -1, self._make_safe(self.log, self.log.config))

    def must_verify(self, header: BatchHeader) -> bool:
        """Whether a batch begins a transaction here, so that its coordinator must be asked first (KIP-890)."""
        return bool(header[5] & TRANSACTIONAL) and not self.producers.has_transaction(header[9], header[10])

    def start_verification(self, header: BatchHeader, *, epoch_bumps: bool) -> Verification:
        """Take this along to the coordinator, and back to `check_verified` right before the append.

        `epoch_bumps` says that the client knows transaction version 2: then a producer unknown here begins at 0.
        """
        return self.producers.start_verification(header, epoch_bumps=epoch_bumps)

    def check_verified(self, header: BatchHeader, guard: Verification | None) -> None:
        """Refuse a batch if the transaction that the coordinator confirmed may have ended since it was asked."""
        if not self.producers.is_verified(header, guard):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "The record was not part of an ongoing transaction.")

    def _refused(self, fault: StorageFault) -> KafkaError:
        """A write failed: say so once, until one succeeds again; a log that cannot go on is given up."""
        error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault))
        if self.log.fault is not None:
            if self.fault is None:
                self.fail(error)
                self._on_fault(self, fault)
        elif not self._is_refusing:
            self._is_refusing = True
            self._on_fault(self, fault)
        return error

    def when_safe(self, end_offset: int, done: Callable[[KafkaError | None], None]) -> None:
        """Call `done` when everything below `end_offset` is safe, or cannot be made so."""
        if self.fault is not None:
            done(self.fault)
        elif self.log.high_watermark >= end_offset:
            done(None)
        else:
            self._safe_waiters.append((end_offset, done))

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
        if self._fetch_waiters:
            self.wake_fetches()

    # --- the flusher's side

    def flush(self) -> None:
        """Flush in the background, whoever waits or not."""
        if self.fault is None:
            self._flusher.request(self)

    def _flush_in_time(self) -> None:
        """The oldest append since the last timed flush is `flush.ms` old."""
        self._is_flush_due = False
        self.flush()

    def on_flushed(self) -> None:
        """The disk has everything below the recovery point."""
        self.advance(self.log.recovery_point)

    def on_flush_failed(self, fault: StorageFault) -> None:
        """Nothing more is acknowledged here; what was safe stays readable."""
        if self.fault is not None:
            # The topic was deleted under the flush, or this was known before: everyone who waited has been told.
            return
        self.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)))
        self._on_fault(self, fault)

    def fail(self, error: KafkaError) -> None:
        """Refuse writes from now on and answer everyone who waits for one."""
        self.fault = error
        waiters, self._safe_waiters = self._safe_waiters, deque()
        for _, done in waiters:
            done(error)
        self.wake_fetches()

    # --- reading

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
        self._fetch_waiters.add(waiter)

    def unpark(self, waiter: FetchWaiter) -> None:
        """Stop waking `waiter`."""
        self._fetch_waiters.discard(waiter)

    def wake_fetches(self) -> None:
        """Have everyone parked look again."""
        for waiter in tuple(self._fetch_waiters):
            waiter.wake()
