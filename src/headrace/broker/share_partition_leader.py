"""A share partition as its leader serves it: the core, the partition of the log, locks that run out, and who waits.

What a member decides is written down with the share coordinator before the member is answered.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.broker import share_persister
from headrace.broker.share_persister import told_to_consumers
from headrace.broker.share_settings import share_limits
from headrace.cores.share_partition import SharePartition
from headrace.cores.share_state import Write
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.broker.partition_waiters import FetchWaiter
    from headrace.cores.share_partition import StateWrite
    from headrace.cores.share_partition_acknowledgements import Acknowledgement
    from headrace.cores.share_state import SharePartitionId, ShareState

logger = logging.getLogger(__name__)

_TICK_S = 0.001
"""The least time between two looks at the locks."""

FENCING = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    }
)
"""Answers of the share coordinator after which what is known here is worth nothing: it has to be read again."""


class SharePartitionLeader:
    """One share partition led here."""

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        share_id: SharePartitionId,
        state: ShareState,
        start_offset: int,
        on_fenced: Callable[[SharePartitionLeader], None],
    ) -> None:
        self.share_id = share_id
        self.partition = partition
        self.core = SharePartition(start_offset, state.batches, lambda: share_limits(broker, share_id[0]))
        self._broker = broker
        self._state_epoch = state.state_epoch
        self._leader_epoch = partition.leader_epoch
        self._on_fenced = on_fenced
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: dict[FetchWaiter, None] = {}
        self._is_closed = False
        self._writes = 0
        self._newest_written = 0

    @property
    def is_current(self) -> bool:
        """Whether the partition is still led here, in the epoch in which this began."""
        partition = self.partition
        return not self._is_closed and partition.is_led and partition.leader_epoch == self._leader_epoch

    def check_current(self) -> None:
        """KafkaError if somebody else leads the share partition by now."""
        if not self.is_current:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "The share partition is led elsewhere.")

    # --- what members ask

    async def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> None:
        """Take in what a member says of records it has; KafkaError if that cannot be."""
        self.check_current()
        self.follow_log_start()
        write = self.core.acknowledge(member_id, acknowledgements, self._broker.clock())
        if write is not None:
            await self._carry_out(write)

    async def release(self, member_id: str) -> None:
        """Take back what a member has."""
        write = self.core.release(member_id)
        if write is not None:
            await self._carry_out(write)

    def follow_log_start(self) -> None:
        """Forget what the log has dropped."""
        self.core.move_start(self.partition.log.log_start_offset)

    # --- writing down

    async def _carry_out(self, write: StateWrite) -> None:
        assert write.number is not None
        is_written = False
        try:
            await self.write_down(write)
            is_written = True
        except KafkaError as error:
            if error.code in FENCING:
                self._on_fenced(self)
            raise told_to_consumers(error) from error
        finally:
            if is_written:
                self.core.written(write.number)
            else:
                self.core.write_failed(write.number)
            self.watch_locks()
            self._wake()

    async def write_down(self, write: StateWrite) -> None:
        """Tell the share coordinator."""
        command = Write(
            partition=self.share_id,
            state_epoch=self._state_epoch,
            leader_epoch=self._leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            batches=write.batches,
        )
        self._writes += 1
        number = self._writes
        # What is tried again must not undo what was written meanwhile.
        await share_persister.write(self._broker, command, lambda: number > self._newest_written and self.is_current)
        self._newest_written = max(number, self._newest_written)

    # --- locks

    def watch_locks(self) -> None:
        """Wake up when the next lock runs out."""
        deadline_ms = None if self._timer is not None or self._is_closed else self.core.next_deadline_ms
        if deadline_ms is not None:
            delay_s = max((deadline_ms - self._broker.clock()) / 1000, _TICK_S)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.expire_locks()

    def expire_locks(self) -> None:
        """Take back what was held for too long."""
        write = self.core.expire(self._broker.clock())
        self.watch_locks()
        if write is not None:
            self._broker.spawn(self._write_expired(write))
            self._wake()

    async def _write_expired(self, write: StateWrite) -> None:
        try:
            await self.write_down(write)
        except KafkaError as error:
            # What is lost is the delivery counts, should another leader take over now.
            logger.warning("expired_locks_not_written partition=%s reason=%s", self.share_id, error)
            if error.code in FENCING:
                self._on_fenced(self)

    # --- waiting

    def park(self, waiter: FetchWaiter) -> None:
        """Wake `waiter` when records come, or come back."""
        self._waiters[waiter] = None
        self.partition.park(waiter)

    def unpark(self, waiter: FetchWaiter) -> None:
        """Stop waking `waiter`."""
        self._waiters.pop(waiter, None)
        self.partition.unpark(waiter)

    def _wake(self) -> None:
        for waiter in tuple(self._waiters):
            waiter.wake()

    def close(self) -> None:
        """Lead no longer; who waits looks again."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wake()
