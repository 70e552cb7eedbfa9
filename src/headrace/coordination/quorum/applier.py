"""What takes over committed records, batch by batch and in order: into the image, then to the node.

The image is one object for the node's whole life, so a snapshot that came from the leader is taken over as the records
that lead from here to there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.coordination.quorum.takeover import way_to
from headrace.cores.metadata_transaction import MetadataTransaction
from headrace.cores.raft.log_mirror import EMPTY, OffsetAndEpoch
from headrace.model.errors import ErrorCode, KafkaError, StorageFault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from headrace.coordination.quorum.metadata_log import Decision, MetadataLog
    from headrace.coordination.quorum.snapshot_file import Snapshot
    from headrace.cores.metadata import Metadata
    from headrace.model.metadata_records import MetadataRecord

logger = logging.getLogger(__name__)

_YIELD_RECORDS = 2000
"""The loop gets a turn after so many records, that others need not wait for a long replay."""


class Uncovered(Struct):
    """What is committed and not in a snapshot yet."""

    size: int = 0
    since_ms: int | None = None


class Applier:
    """The state machine's side of the quorum."""

    def __init__(
        self,
        metadata: Metadata,
        log: MetadataLog,
        *,
        on_fault: Callable[[StorageFault], None],
        on_applied: Callable[[], None] = lambda: None,
    ) -> None:
        self.metadata = metadata
        self.turn = asyncio.Lock()
        """Held while a batch is taken over; whoever holds it sees an image that stands still."""
        self.on_commit: Callable[[Sequence[MetadataRecord]], Awaitable[None]] | None = None
        self.position = EMPTY
        """How far the image is: the offset behind its last record, and that record's epoch."""
        self.timestamp_ms = 0
        self.uncovered = Uncovered()
        self.transaction = MetadataTransaction()
        """What the image does not show yet, though it is committed and `position` is behind it."""
        self._log = log
        self._on_fault = on_fault
        self._on_applied = on_applied
        self._target = 0
        self._news = asyncio.Event()
        self._snapshots: deque[tuple[OffsetAndEpoch, Snapshot]] = deque()
        self._decided: dict[int, tuple[Decision, asyncio.Future[None]]] = {}
        """What this node decided, by its first offset: it need not be read again, and somebody waits for it."""
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._unfinished: list[MetadataRecord] = []
        """Committed, but the node's disk was full when it should have made logs of it."""
        self._task: asyncio.Task[None] | None = None

    # Being told

    def start(self) -> None:
        """Begin to take over what is committed."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Take over nothing more; who waits is told."""
        if self._task is not None:
            self._task.cancel()
        self._target = self.position.offset
        self.forget_decisions(KafkaError(ErrorCode.NOT_CONTROLLER, "The node is stopping."))
        for _, _, waiting in self._waiting:
            waiting.cancel()
        self._waiting.clear()

    def committed(self, offset: int) -> None:
        """Everything below an offset is committed."""
        self._target = max(self._target, offset)
        self._news.set()

    def load(self, snapshot_id: OffsetAndEpoch, snapshot: Snapshot) -> None:
        """A snapshot came from the leader; all in it is committed."""
        self._snapshots.append((snapshot_id, snapshot))
        self._target = max(self._target, snapshot_id.offset)
        self._news.set()

    def decided(self, decision: Decision) -> asyncio.Future[None]:
        """A decision of this node was appended; the future ends when it is committed and taken over."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._decided[decision.base_offset] = (decision, done)
        return done

    def forget_decisions(self, reason: KafkaError) -> None:
        """This node does not lead any more: what it decided and is not committed may be so yet or never."""
        forgotten = [offset for offset, (decision, _) in self._decided.items() if decision.end_offset > self._target]
        for offset in forgotten:
            _, done = self._decided.pop(offset)
            if not done.done():
                done.set_exception(KafkaError(reason.code, reason.message))
                done.exception()  # Whoever waited may be gone; that is no mistake to complain about.

    async def reached(self, offset: int) -> None:
        """Wait until the image has everything below an offset."""
        if self.position.offset < offset:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (offset, next(self._order), done))
            await done

    async def finish(self) -> None:
        """Have the node take over what it could not when it was committed; StorageFault if it still cannot."""
        if self._unfinished and self.on_commit is not None:
            async with self.turn:
                await self.on_commit(self._unfinished)
                self._unfinished.clear()

    # Taking over

    def begin_from(self, snapshot_id: OffsetAndEpoch, snapshot: Snapshot) -> None:
        """Begin with a snapshot, at start; any thread."""
        for record in snapshot.records:
            self.metadata.replay(record)
        self.position, self.timestamp_ms = snapshot_id, snapshot.timestamp_ms

    def _advance(self, decision: Decision) -> None:
        self.position = OffsetAndEpoch(decision.end_offset, decision.epoch)
        self.timestamp_ms = decision.timestamp_ms
        self.uncovered.size += decision.size
        if decision.records and self.uncovered.since_ms is None:
            self.uncovered.since_ms = decision.timestamp_ms

    async def _run(self) -> None:
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                while self._snapshots:
                    await self._take_over_snapshot(*self._snapshots.popleft())
                while self.position.offset < self._target and not self._snapshots and await self._take_over_some():
                    pass
                if self._snapshots:
                    self._news.set()
        except StorageFault as fault:
            self._on_fault(fault)
        except Exception as mistake:
            # An image that stands still while its node goes on would be believed.
            self._on_fault(StorageFault(f"Committed records cannot be taken over: {mistake!r}"))
            raise

    async def _take_over_some(self) -> bool:
        """Take over the next decision, or some; False if there is nothing to go on with."""
        offset = self.position.offset
        known = self._decided.get(offset)
        try:
            decisions = [known[0]] if known is not None else await self._log.decisions(offset, self._target)
        except (StorageFault, KafkaError):
            if self._snapshots:
                return True  # The log was emptied meanwhile, for a snapshot that has all of it.
            raise
        replayed = 0
        for decision in decisions:
            if decision.end_offset > self._target:
                break
            await self._take_over(decision)
            replayed += len(decision.records)
            if replayed >= _YIELD_RECORDS:
                replayed = 0
                await asyncio.sleep(0)
        return self.position.offset > offset

    async def _take_over(self, decision: Decision) -> None:
        async with self.turn:
            records = self.transaction.released(decision.records)
            for record in records:
                self.metadata.replay(record)
            self._advance(decision)
            fault = await self._tell(records) if records else None
        known = self._decided.pop(decision.base_offset, None)
        if known is not None and not known[1].done():
            if fault is None:
                known[1].set_result(None)
            else:
                known[1].set_exception(fault)
                known[1].exception()
        self._tell_waiting()
        self._on_applied()

    async def _take_over_snapshot(self, snapshot_id: OffsetAndEpoch, snapshot: Snapshot) -> None:
        async with self.turn:
            records = way_to(self.metadata, snapshot.records)
            for record in records:
                self.metadata.replay(record)
            self.position, self.timestamp_ms = snapshot_id, snapshot.timestamp_ms
            self.uncovered = Uncovered()
            self.transaction = MetadataTransaction()  # None is open where a snapshot ends.
            await self._tell(records)
        self._tell_waiting()

    async def _tell(self, records: Sequence[MetadataRecord]) -> KafkaError | None:
        """Let the node act on what was committed; an error for whoever decided it, if it cannot."""
        if self.on_commit is None:
            return None
        try:
            await self.on_commit(records)
        except StorageFault as fault:
            # Committed all the same: what could not be made now is made when there is room.
            self._unfinished += records
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault))
        except Exception as mistake:
            # The image must go on, whatever the node makes of it; a mistake of ours is told where it can be seen.
            logger.exception("commit_not_taken_over records=%d", len(records))
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(mistake))
        return None

    def _tell_waiting(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.position.offset:
            done = heappop(self._waiting)[2]
            if not done.done():
                done.set_result(None)
