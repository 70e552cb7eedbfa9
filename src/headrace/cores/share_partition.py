"""A share partition at its leader: which records are out with whom, how often, and what has become of them (KIP-932).

    AVAILABLE --acquire--> ACQUIRED --accept--> ACKNOWLEDGED
        ^                     |-----reject, gap--> ARCHIVED
        '--release, timeout---'-----release or timeout after the last delivery--> ARCHIVED

A decision of a member counts once it is written down: the records wait for the write in their old state, go on when it
is done and stay where they were if it fails. A lock that ran out needs no such care, as nobody is told of it.
Every record before `start_offset` is done for good, none from `next_offset` on was ever handed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.share_partition_acknowledgements import RENEW, STATE_OF, ranges_of
from headrace.cores.share_partition_runs import DONE, RecordState, Run, Runs
from headrace.cores.share_partition_take import Acquired, careful_portion, end_of_take, split_by_size
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.share_state_records import StateBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headrace.cores.share_partition_acknowledgements import Acknowledgement, Range
    from headrace.cores.share_partition_take import Extent


class ShareLimits(Struct, frozen=True, kw_only=True):
    """What the group's settings allow."""

    locks_max: int
    deliveries_max: int
    lock_duration_ms: int
    is_renewing_allowed: bool = True


class StateWrite(Struct, frozen=True, kw_only=True):
    """What has to be written down."""

    number: int | None
    """To be told to `written` or `write_failed`; None where nothing waits for it."""
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class SharePartition:
    """One partition of a topic as one share group sees it."""

    __slots__ = ("_has_free", "_limits", "_runs", "_writes", "next_offset", "start_offset")

    def __init__(self, start_offset: int, batches: Iterable[StateBatch], limits: Callable[[], ShareLimits]) -> None:
        self._limits = limits
        self._runs = Runs()
        self._writes = 0
        self._has_free = True
        """Whether it is worth looking for records that came back."""
        self.start_offset = start_offset
        self.next_offset = start_offset
        for batch in batches:
            self._load(batch)
        self._settle()

    def _load(self, batch: StateBatch) -> None:
        """Take over what was written down; what lies between two batches was out with somebody, and is free again."""
        if batch.last_offset < self.next_offset:
            return
        first = max(batch.first_offset, self.next_offset)
        if first > self.next_offset:
            self._runs.append(Run(self.next_offset, first - 1, RecordState.AVAILABLE, 0))
        state = RecordState(batch.delivery_state)
        if state is RecordState.ACQUIRED:
            state = RecordState.AVAILABLE
        self._runs.append(Run(first, batch.last_offset, state, batch.delivery_count))
        self.next_offset = batch.last_offset + 1

    # --- looking

    @property
    def fetch_offset(self) -> int:
        """The first record that can be handed out."""
        if self._has_free:
            for run in self._runs:
                if run.is_free:
                    return run.first
            self._has_free = False
        return self.next_offset

    @property
    def can_acquire(self) -> bool:
        """Whether the number of records under way leaves room for more, or some came back."""
        return self.next_offset - self.start_offset < self._limits().locks_max or self.fetch_offset != self.next_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many records behind the start are done for good, or will be when the writes under way are done."""
        return sum(run.count for run in self._runs if run.next_state in DONE)

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next lock runs out."""
        deadlines = (run.deadline_ms for run in self._runs if run.state is RecordState.ACQUIRED and run.write is None)
        return min(deadlines, default=None)

    def state_batches(self) -> tuple[StateBatch, ...]:
        """What a leader that takes over needs to know; records that are out are out with nobody then."""
        return tuple(
            _batch(run, RecordState.AVAILABLE if run.state is RecordState.ACQUIRED else run.state) for run in self._runs
        )

    def held_by(self, member_id: str) -> list[tuple[int, int]]:
        """The records a member has, as pairs of first and last offset."""
        return [(run.first, run.last) for run in self._runs if run.holder == member_id]

    # --- handing out

    def acquire(
        self,
        member_id: str,
        fetched: Sequence[Extent],
        *,
        fetch_offset: int,
        records_max: int,
        batch_size: int,
        strict: bool,
        now_ms: int,
    ) -> list[Acquired]:
        """Lock what is free of the batches that were read from `fetch_offset` on, in order.

        The number of records is met exactly where `strict`, else a batch of the log is not torn apart for it.
        """
        if not fetched or records_max <= 0:
            return []
        base, last = fetched[0][0], fetched[-1][1]
        self._archive_missing(fetch_offset, base - 1)
        left = min(records_max, self._limits().locks_max - (self.next_offset - self.start_offset))
        if left <= 0:
            last = min(last, self.next_offset - 1)
            left = records_max
        acquired: list[Acquired] = []
        deadline_ms = now_ms + self._limits().lock_duration_ms
        for run in self._runs.overlapping(base, last):
            if left <= 0:
                break
            if not run.is_free:
                continue
            first = max(run.first, base)
            portion = careful_portion(run.delivery_count, run.count, self._limits().deliveries_max)
            if portion is None:
                end = end_of_take(fetched, first, left, strict=strict)
            elif acquired and portion == 1:
                break
            else:
                # Nothing more goes with records that have come back this often.
                end, left = first + min(portion, left) - 1, 0
            for part in self._runs.between(first, min(run.last, last, end)):
                left -= self._lock(part, member_id, deadline_ms, acquired)
        first = max(base, self.next_offset)
        if left > 0 and first <= last:
            self._skip_to(first)
            run = Run(first, min(last, end_of_take(fetched, first, left, strict=strict)), RecordState.AVAILABLE, 0)
            self._runs.append(run)
            self.next_offset = run.last + 1
            self._lock(run, member_id, deadline_ms, acquired)
        self._settle()
        return split_by_size(acquired, fetched, batch_size)

    def _lock(self, run: Run, member_id: str, deadline_ms: int, acquired: list[Acquired]) -> int:
        """Hand a run out; the number of records. One that was delivered too often, as the limit is now, is given up."""
        if run.delivery_count >= self._limits().deliveries_max:
            run.settle(RecordState.ARCHIVED)
            return 0
        run.state = run.next_state = RecordState.ACQUIRED
        run.holder = member_id
        run.deadline_ms = deadline_ms
        run.delivery_count += 1
        acquired.append(Acquired(run.first, run.last, run.delivery_count))
        return run.count

    def _archive_missing(self, first: int, last: int) -> None:
        """What came back and is not in the log any more is done for."""
        for run in self._runs.between(first, min(last, self.next_offset - 1)):
            if run.is_free:
                run.settle(RecordState.ARCHIVED)

    def _skip_to(self, offset: int) -> None:
        """There are no records up to `offset`."""
        if offset > self.next_offset:
            self._runs.append(Run(self.next_offset, offset - 1, RecordState.ARCHIVED, 0))
            self.next_offset = offset

    def discard(self, member_id: str, first: int, last: int) -> None:
        """Archive records that a member just acquired and must not see, for their transaction was aborted."""
        for run in self._runs.between(first, last):
            if run.state is RecordState.ACQUIRED and run.holder == member_id and run.write is None:
                run.settle(RecordState.ARCHIVED)
        self._settle()

    # --- taking back

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> StateWrite | None:
        """Decide what a member says of records it has: all of it, or KafkaError and nothing; None: nothing to write."""
        ranges = [
            (max(first, self.start_offset), last, kind)
            for first, last, kind in ranges_of(acknowledgements)
            if last >= self.start_offset
        ]
        self._check(member_id, ranges)
        self._runs.cut(ranges)
        changed: list[Run] = []
        limits = self._limits()
        for kind, run in self._runs.meeting(ranges):
            if kind == RENEW:
                run.deadline_ms = now_ms + limits.lock_duration_ms
            else:
                self._begin(run, STATE_OF[kind], limits.deliveries_max)
                changed.append(run)
        return self._write_of(changed)

    def _check(self, member_id: str, ranges: Sequence[Range]) -> None:
        if ranges and self.next_offset == self.start_offset:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The offsets of the request are not under way.")
        if ranges and ranges[-1][1] >= self.next_offset:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The offsets of the request lie behind the acquired records.")
        may_renew = self._limits().is_renewing_allowed
        for kind, run in self._runs.meeting(ranges):
            if kind == RENEW and not may_renew:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group."
                )
            if run.state is not RecordState.ACQUIRED or run.write is not None:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, "A record of the request is not in the acquired state."
                )
            if run.holder != member_id:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "The member does not hold a record of the request.")
        if not self._runs.is_room_for(ranges):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Too many different things are said of the records of the partition."
            )

    def release(self, member_id: str) -> StateWrite | None:
        """Take back all that a member has, for it has gone; None if it has nothing."""
        mine = [run for run in self._runs if run.holder == member_id and run.write is None]
        limit = self._limits().deliveries_max
        for run in mine:
            self._begin(run, RecordState.AVAILABLE, limit)
        return self._write_of(mine)

    def _begin(self, run: Run, state: RecordState, limit: int) -> None:
        """Mark a run to go into a state when the write that is about to begin is done."""
        is_last = state is RecordState.AVAILABLE and run.delivery_count >= limit
        run.next_state = RecordState.ARCHIVED if is_last else state
        run.write = self._writes

    def _write_of(self, changed: list[Run]) -> StateWrite | None:
        if not changed:
            self._runs.join()
            return None
        number = self._writes
        self._writes += 1
        return StateWrite(
            number=number,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            batches=tuple(_batch(run, run.next_state) for run in changed),
        )

    def written(self, number: int) -> None:
        """A write is done: what it said is so now."""
        for run in self._runs:
            if run.write == number:
                run.settle(run.next_state)
        self._settle()

    def write_failed(self, number: int) -> None:
        """A write could not be done: its records stay with those who have them."""
        for run in self._runs:
            if run.write == number:
                run.write = None
                run.next_state = run.state
        self._runs.join()

    def expire(self, now_ms: int) -> StateWrite | None:
        """Take back what was held for too long; the write is only so that the next leader knows the delivery counts."""
        limit = self._limits().deliveries_max
        late = [
            run
            for run in self._runs
            if run.state is RecordState.ACQUIRED and run.write is None and run.deadline_ms <= now_ms
        ]
        for run in late:
            run.settle(RecordState.ARCHIVED if run.delivery_count >= limit else RecordState.AVAILABLE)
        if not late:
            return None
        batches = tuple(_batch(run, run.state) for run in late)
        self._settle()
        return StateWrite(
            number=None,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            batches=batches,
        )

    def move_start(self, log_start_offset: int) -> None:
        """The log begins later now: what lies before is gone, and whoever has it may say of it what they like."""
        if log_start_offset > self.start_offset:
            self._runs.drop_before(log_start_offset)
            self.start_offset = log_start_offset
            self.next_offset = max(self.next_offset, log_start_offset)
            self._settle()

    def _settle(self) -> None:
        """Let the start follow what is done, and tidy up."""
        done = self._runs.drop_done()
        if done is not None:
            self.start_offset = done + 1
        self._runs.join()
        self._has_free = True


def _batch(run: Run, state: RecordState) -> StateBatch:
    return StateBatch(
        first_offset=run.first, last_offset=run.last, delivery_state=int(state), delivery_count=run.delivery_count
    )
