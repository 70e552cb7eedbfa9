"""What only the leader of a partition does: it takes writes, ends transactions, and counts its followers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.held_partition import HeldPartition, not_led_here
from headrace.broker.steady_clock import steady_ms
from headrace.cores.replication.epochs import check_leader_epoch
from headrace.cores.replication.messages import FetchPosition
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.model.log_config import UNBOUNDED_MS, LogConfig
from headrace.records.batch import TRANSACTIONAL, BatchHeader, patch_append_time, read_header
from headrace.records.control import EndTransactionMarker, build_end_marker
from headrace.records.produced import check_produced, needs_deep_check

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.producers import Verification
    from headrace.cores.replication.leader import Leader
    from headrace.cores.replication.messages import AlterAnswer, AlterPartition, EpochEnd
    from headrace.storage.log import Log
    from headrace.wire.fetch import FetchPartition

GAPS_CLOSE_MS = 30_000
"""As long as a client waits for an answer by default, and so may take to come again with what was refused."""
ALL_REPLICAS = -1
"""The acks of a producer that wants its records on every replica that is in sync."""


class Appended(NamedTuple):
    """Where a batch went."""

    base_offset: int
    append_time_ms: int
    """-1 unless the topic stamps records itself."""
    end_offset: int
    """acks=all is answered when the high watermark reaches this."""


_new_appended = tuple.__new__


class LedPartition(HeldPartition):
    """A partition while this broker leads it."""

    __slots__ = ()

    # --- writing

    def check(self, batch: memoryview, now_ms: int, acks: int = 1) -> BatchHeader:
        """Refuse what must not be appended; cheap, from the header."""
        if self.fault is not None:
            raise self.fault.with_traceback(None)
        if self.replicated is not None and acks == ALL_REPLICAS:
            try:
                self.replicated.check_enough_replicas()
            except KafkaError:
                self._expect_gaps()
                raise
        return check_produced(batch, self.log.config, now_ms)

    def check_enough_replicas(self) -> None:
        """Refuse a write that asks for acks=all while too few replicas are in sync."""
        if self.replicated is not None:
            self.replicated.check_enough_replicas()

    def must_queue(self, header: BatchHeader) -> bool:
        """Whether this batch needs a thread's help first, or stands behind one that does."""
        return self.lane.busy or needs_deep_check(header, self.log.config)

    def append(self, batch: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        """Write one checked batch; the same batch sent again is answered as the first time. HOT.

        The first batch of a transaction should have been verified with its coordinator (`must_verify`).
        """
        if not self.is_led:
            raise not_led_here()
        log = self.log
        config = log.config
        is_idempotent = header[9] >= 0
        if is_idempotent:
            try:
                known = self.producers.check(header)
            except KafkaError as error:
                raise self._out_of_turn(error) from error
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
        traffic = self.traffic
        traffic.messages_in += header[12]
        traffic.bytes_in += len(batch)
        return _new_appended(Appended, (base_offset, append_time_ms, self._make_safe(log, config)))

    def _expect_gaps(self) -> None:
        """Writes are or were refused that will come again: batches behind them may come first."""
        self._gaps_close_ms = steady_ms() + GAPS_CLOSE_MS

    def _out_of_turn(self, error: KafkaError) -> KafkaError:
        """What to say of a batch that does not follow its producer's last one.

        Clients send several batches without waiting for answers. When the first of them is refused because we do not
        lead yet, or have too few replicas, the next may find us ready and the first missing. It will come again. Told
        that its sequence is out of order, librdkafka ends its epoch, and writes again in the next one what leaders of
        other partitions have kept without having acknowledged it.
        """
        if error.code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or self.replicated is None:
            return error
        if steady_ms() >= self._gaps_close_ms:
            return error
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{error.message}; what was refused must come first.")

    def _make_safe(self, log: Log, config: LogConfig) -> int:
        """Have what was just written flushed as the topic asks for; answers the end offset. HOT."""
        if self._is_refusing:
            self._accept_again()
        end_offset = log.log_end_offset
        if config.flush_on_acks_all or end_offset - log.recovery_point >= config.flush_messages:
            self._flusher.request(self)
        else:
            if config.flush_ms != UNBOUNDED_MS:
                self._flush_later(config.flush_ms)
            if self.replicated is None:
                self.advance(end_offset)
        if self.replicated is not None:
            self._appended(self.replicated)
        return end_offset

    def _appended(self, leader: Leader) -> None:
        """Followers may come for more; where nothing is flushed it may count already."""
        if leader.appended(steady_ms()):
            self._settle()
        for waiter in tuple(self._replica_waiters):
            waiter.wake_for(self)

    def outcome(self, end_offset: int) -> KafkaError | None:
        """What to tell a producer whose records are below the high watermark: they may be on too few replicas."""
        code = ErrorCode.NONE if self.replicated is None else self.replicated.outcome(end_offset)
        if code is None or code is ErrorCode.NONE:
            return None
        return KafkaError(code, "The records are written, but too few replicas are in sync to call them safe.")

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
            raise self.fault.with_traceback(None)
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

    # --- our followers

    def fetched(self, replica_id: int, broker_epoch: int, asked: FetchPartition) -> EpochEnd | None:
        """A follower asks for more, and so says what it has; where its log parts from ours, that is the answer."""
        leader = self.check_replica(asked)
        position = FetchPosition(
            leader_epoch=asked.current_leader_epoch,
            offset=asked.fetch_offset,
            last_fetched_epoch=asked.last_fetched_epoch,
            log_start_offset=asked.log_start_offset,
        )
        diverging = leader.fetch(replica_id, position, broker_epoch=broker_epoch, now_ms=steady_ms())
        self._settle()
        return diverging

    def is_level(self, replica_id: int, broker_epoch: int, asked: FetchPartition, now_ms: int) -> bool:
        """Whether a follower asks what it asked before and lacks nothing; takes down that it was there. HOT."""
        leader, end_offset = self.replicated, self.log.log_end_offset
        if self._low_waiters:
            # They wait for all live replicas: whether the last of them has died is looked at with every fetch.
            return False
        if leader is None or asked.fetch_offset != end_offset or asked.current_leader_epoch != leader.leader_epoch:
            return False
        follower = leader.followers.get(replica_id)
        if (
            follower is None
            or follower.offset != end_offset
            or follower.broker_epoch != broker_epoch
            or follower.log_start_offset != asked.log_start_offset
            or replica_id not in leader.isr.maximal
        ):
            return False
        follower.fetched(end_offset, asked.log_start_offset, broker_epoch, end_offset, now_ms)
        return True

    def check_replica(self, asked: FetchPartition) -> Leader:
        """Refuse a follower that has another leader in mind."""
        if not self.is_led:
            raise not_led_here()
        check_leader_epoch(asked.current_leader_epoch, self.leader_epoch)
        if self.replicated is None:
            # It may know already that it is to be a replica.
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, "This partition is not known to have other replicas.")
        return self.replicated

    def tick(self) -> None:
        """Have a look at followers that do not keep pace."""
        if self.replicated is not None:
            self.replicated.tick(steady_ms())
            self._settle()

    def isr_answered(self, request: AlterPartition, answer: AlterAnswer) -> None:
        """The controller answered to a change of the in-sync replicas; what we do not lead any more is not asked."""
        if self.replicated is not None:
            self.replicated.answered(request, answer, steady_ms())
            self._settle()

    def _settle(self) -> None:
        """After anything that was told to `replicated`: act on what it made of it."""
        leader = self.replicated
        assert leader is not None, "only where followers are counted there is something to settle"
        if leader.high_watermark > self.log.high_watermark:
            self.advance(leader.high_watermark)
        if self._low_waiters:
            self._low_waiters.tell(leader.low_watermark())
        request = leader.take_request()
        if request is not None:
            self.on_isr_change(self, request)

    def delete_before(self, offset: int, done: Callable[[KafkaError | None], None]) -> None:
        """Let the log start later, and call `done` when every live replica has done the same."""
        self.log.advance_start_offset(offset)
        if self.replicated is None or self.replicated.low_watermark() >= offset:
            done(None)
            return
        self._low_waiters.add(offset, done)
        self._tell_marks()

    @property
    def low_watermark(self) -> int:
        """Where the log starts on all live replicas."""
        return self.log.log_start_offset if self.replicated is None else self.replicated.low_watermark()
