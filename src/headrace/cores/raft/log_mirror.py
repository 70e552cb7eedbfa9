"""What the core knows of the log: where it starts and ends, its epochs and snapshots; never the records themselves.

The mirror changes when the core decides an effect, not when the shell has carried it out: effects are carried out in
order, so the two agree again before the next input. Only flushing takes its time; `flushed_offset` says how far it got.
A flush that was under way when the log was truncated says nothing about what was appended since, therefore each
truncation begins a new `generation`, and a flush counts only in the generation it was asked for in.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.raft.voters import VoterHistory, VoterSet

if TYPE_CHECKING:
    from collections.abc import Iterable


class OffsetAndEpoch(Struct, frozen=True):
    """A point of the log: everything below the offset, the last of it written in the epoch."""

    offset: int
    epoch: int

    @property
    def rank(self) -> tuple[int, int]:
        """What is more up to date ranks higher: the epoch first, then the offset."""
        return self.epoch, self.offset


EMPTY = OffsetAndEpoch(0, 0)
"""The end of a log without records, and the id of the snapshot a directory is formatted with."""


class Divergence(Struct, frozen=True):
    """A fetching replica has something else: the largest epoch both may have, and where it ends here."""

    at: OffsetAndEpoch


class Behind(Struct, frozen=True):
    """A fetching replica needs something that only a snapshot has."""

    snapshot_id: OffsetAndEpoch


class LogMirror:
    """The outline of one replica's log."""

    __slots__ = (
        "_epoch_starts",
        "_epochs",
        "end_offset",
        "flushed_offset",
        "generation",
        "last_epoch",
        "snapshots",
        "start_offset",
        "voters",
    )

    def __init__(
        self,
        *,
        start_offset: int = 0,
        end_offset: int = 0,
        epochs: Iterable[tuple[int, int]] = (),
        snapshots: Iterable[OffsetAndEpoch] = (),
        voters: VoterHistory | None = None,
    ) -> None:
        """The log as found on disk, all of it flushed; `epochs` are epochs with their first offsets."""
        self.start_offset = start_offset
        self.end_offset = self.flushed_offset = end_offset
        self.generation = 0
        self._epochs: list[int] = []
        self._epoch_starts: list[int] = []
        for epoch, first in epochs:
            self._epochs.append(epoch)
            self._epoch_starts.append(first)
        self.snapshots = sorted(snapshots, key=lambda snapshot: snapshot.rank)
        self.voters = voters if voters is not None else VoterHistory()
        self.last_epoch = self._last_epoch()

    def _last_epoch(self) -> int:
        if self._epochs:
            return self._epochs[-1]
        first = self.snapshots[0] if self.snapshots else EMPTY
        return first.epoch if first.offset == self.start_offset else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the log ends, and the epoch of its last record."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def is_flushed(self) -> bool:
        """Whether everything is safe."""
        return self.flushed_offset >= self.end_offset

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        """The newest snapshot, if any; the one of formatting is not to be handed on."""
        return self.snapshots[-1] if self.snapshots and self.snapshots[-1] != EMPTY else None

    def epoch_before(self, offset: int) -> int | None:
        """The epoch of the record just below an offset; None if that is not in the log."""
        if offset == self.start_offset:
            return self.snapshots[0].epoch if self.snapshots and self.snapshots[0].offset == offset else 0
        if not self.start_offset < offset <= self.end_offset:
            return None
        return self._epochs[bisect_right(self._epoch_starts, offset - 1) - 1]

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The largest epoch up to the one asked for that is in the log, and where it ends."""
        index = bisect_right(self._epochs, epoch)
        if index == len(self._epochs):
            return OffsetAndEpoch(self.end_offset, self.last_epoch)
        if index == 0:  # Older than all of the log: what lies below it is the business of the snapshot at its start.
            first = self.snapshots[0] if self.snapshots else EMPTY
            return first if first.offset == self.start_offset else OffsetAndEpoch(self.start_offset, epoch)
        return OffsetAndEpoch(self._epoch_starts[index], self._epochs[index - 1])

    def validate(self, offset: int, epoch: int) -> Divergence | Behind | None:
        """Whether a replica whose log ends so can go on from there; None if it can (KIP-595, KIP-630)."""
        latest = self.latest_snapshot
        if latest is not None:
            # A replica with nothing is served best by a snapshot, even if the log would still have everything.
            first = self.snapshots[0]
            missing = offset < self.start_offset or (offset == self.start_offset and epoch != first.epoch)
            if offset == 0 or (self.start_offset > 0 and (missing or epoch < first.epoch)):
                return Behind(latest)
        if offset == 0 and self.start_offset == 0:
            return None
        end = self.end_offset_for_epoch(epoch)
        return Divergence(end) if end.epoch != epoch or end.offset < offset else None

    def truncation_point(self, diverging: OffsetAndEpoch) -> int:
        """How much of this log can be the same as one whose given epoch ends there."""
        if diverging.epoch == 0:
            return min(diverging.offset, self.end_offset)
        mine = self.end_offset_for_epoch(diverging.epoch)
        return min(mine.offset, diverging.offset) if mine.epoch == diverging.epoch else mine.offset

    def append(self, count: int, epoch: int) -> int:
        """Take down records at the end of the log; gives the first offset."""
        assert count > 0
        assert epoch >= self.last_epoch, "epochs never fall along a log"
        first = self.end_offset
        if not self._epochs or epoch > self._epochs[-1]:
            self._epochs.append(epoch)
            self._epoch_starts.append(first)
            self.last_epoch = epoch
        self.end_offset = first + count
        return first

    def flushed(self, offset: int, generation: int) -> bool:
        """Take down that the log is safe up to an offset; False if that is no news."""
        if generation != self.generation or offset <= self.flushed_offset:
            return False
        self.flushed_offset = min(offset, self.end_offset)
        return True

    def truncate_to(self, offset: int) -> None:
        """Forget the records from an offset on."""
        assert self.start_offset <= offset
        if offset >= self.end_offset:
            return
        self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        self.generation += 1
        while self._epoch_starts and self._epoch_starts[-1] >= offset:
            del self._epochs[-1], self._epoch_starts[-1]
        self.last_epoch = self._last_epoch()
        self.voters.truncate_to(offset)

    def add_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Take down a snapshot that was written here."""
        if snapshot_id not in self.snapshots:
            self.snapshots.append(snapshot_id)
            self.snapshots.sort(key=lambda snapshot: snapshot.rank)

    def raise_start(self, snapshot_id: OffsetAndEpoch) -> None:
        """Forget what a snapshot covers, and the older snapshots."""
        offset = snapshot_id.offset
        self.snapshots = [snapshot for snapshot in self.snapshots if snapshot.rank >= snapshot_id.rank]
        self.start_offset = offset
        self.flushed_offset = max(self.flushed_offset, offset)  # The snapshot is safe, whatever the log was.
        index = max(bisect_right(self._epoch_starts, offset) - 1, 0)
        if offset >= self.end_offset:
            self._epochs, self._epoch_starts = [], []
        elif self._epochs:
            self._epochs = self._epochs[index:]
            self._epoch_starts = [offset, *self._epoch_starts[index + 1 :]]
        self.last_epoch = self._last_epoch()
        self.voters.trim_before(offset)

    def reset_to(self, snapshot_id: OffsetAndEpoch, voters: VoterSet | None) -> None:
        """Start again, empty, behind a snapshot that came from the leader."""
        self.start_offset = self.end_offset = self.flushed_offset = snapshot_id.offset
        self.generation += 1
        self._epochs, self._epoch_starts = [], []
        self.snapshots = [snapshot_id]
        self.last_epoch = snapshot_id.epoch
        self.voters.reset(snapshot_id.offset, voters)
