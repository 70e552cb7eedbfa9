"""Writing snapshots of what is committed, from time to time, and letting go of what they cover."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.coordination.quorum.applier import Uncovered
from headrace.coordination.quorum.snapshot_policy import KeptSnapshot, SnapshotPolicy, keep_from
from headrace.cores.controller.snapshot import snapshot_records
from headrace.cores.raft.inputs import CleanBefore, SnapshotWritten
from headrace.cores.raft.log_mirror import EMPTY, OffsetAndEpoch
from headrace.model.errors import StorageFault

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from headrace.coordination.quorum.applier import Applier
    from headrace.coordination.quorum.metadata_log import MetadataLog
    from headrace.coordination.quorum.snapshot_file import SnapshotFiles
    from headrace.cores.raft.voters import VoterSet

logger = logging.getLogger(__name__)


class Snapshotting:
    """When to write, and what then may go."""

    def __init__(
        self,
        *,
        applier: Applier,
        log: MetadataLog,
        snapshots: SnapshotFiles,
        policy: SnapshotPolicy,
        executor: Executor,
        clock: Callable[[], int],
        voters_at: Callable[[int], VoterSet | None],
        feed: Callable[..., None],
    ) -> None:
        self._applier = applier
        self._log = log
        self._snapshots = snapshots
        self._policy = policy
        self._executor = executor
        self._clock = clock
        self._voters_at = voters_at
        self._feed = feed
        self._writing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def consider(self) -> None:
        """Write one if it is due, in the background; if it will be due by time, look again then."""
        uncovered, now_ms = self._applier.uncovered, self._clock()
        if self._writing is not None or uncovered.since_ms is None or self._applier.transaction.is_open:
            return
        if self._policy.is_due(bytes_since=uncovered.size, oldest_ms=uncovered.since_ms, now_ms=now_ms):
            self._writing = asyncio.get_running_loop().create_task(self._write_in_background())
        elif self._timer is None and self._policy.interval_ms > 0:
            delay_s = (uncovered.since_ms + self._policy.interval_ms - now_ms) / 1000
            self._timer = asyncio.get_running_loop().call_later(max(delay_s, 0.001), self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self.consider()

    async def _write_in_background(self) -> None:
        try:
            await self.write()
        except StorageFault as fault:
            # The log has everything still; when there is more to say it is tried again.
            logger.error("metadata_snapshot_failed reason=%s", fault)  # noqa: TRY400
            self._applier.uncovered = Uncovered()
        finally:
            self._writing = None

    async def write(self) -> OffsetAndEpoch | None:
        """Write a snapshot of the image as it is now; None if there is nothing to write, or half a transaction."""
        loop = asyncio.get_running_loop()
        applier = self._applier
        async with applier.turn:
            if applier.transaction.is_open:
                return None
            snapshot_id, timestamp_ms = applier.position, applier.timestamp_ms
            if snapshot_id == EMPTY or snapshot_id in await loop.run_in_executor(self._executor, self._snapshots.ids):
                return None
            # The image stands still as long as the turn is ours, so a thread may look at it.
            records = await loop.run_in_executor(self._executor, lambda: list(snapshot_records(applier.metadata)))
            applier.uncovered = Uncovered()
        voters = self._voters_at(snapshot_id.offset)
        size = await loop.run_in_executor(
            self._executor,
            lambda: self._snapshots.write(
                snapshot_id, records, timestamp_ms=timestamp_ms, voters=voters, now_ms=self._clock()
            ),
        )
        logger.info(
            "metadata_snapshot_written offset=%d epoch=%d bytes=%d", snapshot_id.offset, snapshot_id.epoch, size
        )
        self._feed(SnapshotWritten(snapshot_id))
        await self._clean()
        return snapshot_id

    async def _clean(self) -> None:
        kept = await asyncio.get_running_loop().run_in_executor(self._executor, self._kept)
        oldest = keep_from(kept, log_bytes=self._log.size_bytes, policy=self._policy, now_ms=self._clock())
        if oldest is not None:
            self._feed(CleanBefore(oldest))

    def _kept(self) -> list[KeptSnapshot]:
        heads = [(one, self._snapshots.head(one)) for one in self._snapshots.ids() if one != EMPTY]
        return [KeptSnapshot(one, head.size, head.timestamp_ms) for one, head in heads]

    def stop(self) -> None:
        """Write nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            self._writing.cancel()
