"""A disk under a replica of the quorum: what was not flushed may be lost, wholly or in part; what was flushed stays."""

from __future__ import annotations

import random

from msgspec import Struct

from headrace.cores.raft.log_mirror import LogMirror, OffsetAndEpoch
from headrace.cores.raft.messages import Batch
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.voters import VoterHistory, VoterSet


class Entry(Struct, frozen=True):
    """One record of the log."""

    epoch: int
    value: int
    voters: VoterSet | None = None


class Snapshot(Struct, frozen=True):
    """The state after some records, and the voters they leave."""

    state: int
    voters: VoterSet | None

    def pieces(self) -> tuple[object, ...]:
        """The content, in parts that can be sent one by one."""
        return (self.state, self.voters, "end")


class QuorumDisk:
    """What one replica has written."""

    def __init__(self, static: VoterSet | None, formatted: VoterSet | None) -> None:
        self._static = static
        self._formatted = formatted
        self.state = QuorumState()
        self.start = 0
        self.entries: list[Entry] = []
        self.flushed = 0
        self.generation = 0
        """Counts truncations: a flush that began before one is worth nothing."""
        self.snapshots: dict[OffsetAndEpoch, Snapshot] = {}
        self.unfinished: tuple[OffsetAndEpoch, tuple[object, ...]] | None = None
        self._undo: list[Entry] | None = None
        """What was flushed before the first truncation since the last flush: a crash may bring it back."""

    @property
    def end(self) -> int:
        """Where the log ends."""
        return self.start + len(self.entries)

    def entry(self, offset: int) -> Entry:
        """The record at an offset that is in the log."""
        return self.entries[offset - self.start]

    def has_flushed(self, offset: int, epoch: int) -> bool:
        """Whether everything below an offset is safe, the last of it of that epoch."""
        if offset > self.start:
            return offset <= self.flushed and self.entry(offset - 1).epoch == epoch
        return any(snapshot_id.offset >= offset for snapshot_id in self.snapshots) or offset == 0

    # Writing

    def append(self, entries: list[Entry]) -> None:
        """Write at the end, into the page cache."""
        self.entries += entries

    def truncate(self, offset: int) -> None:
        """Cut the log off."""
        if offset < self.flushed:
            if self._undo is None:
                self._undo = self.entries[: self.flushed - self.start]
            self.flushed = offset
        del self.entries[offset - self.start :]
        self.generation += 1

    def flush(self, offset: int, generation: int) -> None:
        """Make the log safe up to an offset."""
        if generation == self.generation:
            self.flushed = max(self.flushed, min(offset, self.end))
            self._undo = None

    def raise_start(self, snapshot_id: OffsetAndEpoch) -> None:
        """Delete what a snapshot covers."""
        drop = snapshot_id.offset - self.start
        del self.entries[:drop]
        if self._undo is not None:
            self._undo = self._undo[drop:] or None
        self.start = snapshot_id.offset
        self.flushed = max(self.flushed, self.start)
        self.snapshots = {one: kept for one, kept in self.snapshots.items() if one.rank >= snapshot_id.rank}

    def keep_piece(self, snapshot_id: OffsetAndEpoch, position: int, data: tuple[object, ...]) -> None:
        """Keep a piece of a leader's snapshot."""
        before = self.unfinished[1] if position and self.unfinished is not None else ()
        self.unfinished = (snapshot_id, (*before, *data))

    def finish_snapshot(self) -> Snapshot:
        """Make the snapshot whose pieces came safe; the log is as it was."""
        assert self.unfinished is not None
        snapshot_id, (state, voters, end) = self.unfinished
        assert end == "end"
        assert isinstance(state, int)
        assert voters is None or isinstance(voters, VoterSet)
        self.unfinished = None
        self.snapshots[snapshot_id] = Snapshot(state, voters)
        return self.snapshots[snapshot_id]

    def start_behind(self, snapshot_id: OffsetAndEpoch) -> None:
        """Empty the log and let it start behind a snapshot."""
        self.entries = []
        self.start = self.flushed = snapshot_id.offset
        self.generation += 1
        self._undo = None
        self.snapshots = {snapshot_id: self.snapshots[snapshot_id]}

    # Reading

    def read(self, offset: int, most: int) -> tuple[Batch, ...]:
        """Some records from an offset on; a batch has one epoch, and a voter set only at its end."""
        batches = []
        entries = self.entries[offset - self.start : offset - self.start + most]
        first = 0
        for index, entry in enumerate(entries):
            following = entries[index + 1] if index + 1 < len(entries) else None
            if following is None or following.epoch != entry.epoch or entry.voters is not None:
                run = entries[first : index + 1]
                batches.append(Batch(offset + first, len(run), entry.epoch, entry.voters, run))
                first = index + 1
        return tuple(batches)

    # Crashing

    def crash(self, chance: random.Random) -> None:
        """Lose the page cache: of what was not flushed a part may be there, from the front."""
        if self._undo is not None and chance.random() < 0.5:
            self.entries = self._undo
        else:
            keep = chance.randint(self.flushed, self.end) if chance.random() < 0.5 else self.flushed
            del self.entries[keep - self.start :]
        self._undo = None
        self.unfinished = None

    def open(self) -> LogMirror:
        """What a replica finds when it starts; all of it is flushed then."""
        latest = max(self.snapshots, key=lambda snapshot: snapshot.rank, default=None)
        last_epoch = self.entries[-1].epoch if self.entries else 0
        if latest is not None and latest.offset != self.start and latest.rank > (last_epoch, self.end):
            self.start_behind(latest)
        self.flushed = self.end
        self.generation = 0
        epochs: list[tuple[int, int]] = []
        voters = [(-1, self._formatted)] if self._formatted is not None else []
        first = self.snapshots.get(
            next((one for one in self.snapshots if one.offset == self.start), OffsetAndEpoch(0, 0))
        )
        if first is not None:
            voters = [(self.start - 1, first.voters)] if first.voters is not None else []
        for offset, entry in enumerate(self.entries, self.start):
            if not epochs or entry.epoch != epochs[-1][0]:
                epochs.append((entry.epoch, offset))
            if entry.voters is not None:
                voters.append((offset, entry.voters))
        return LogMirror(
            start_offset=self.start,
            end_offset=self.end,
            epochs=epochs,
            snapshots=self.snapshots,
            voters=VoterHistory(self._static, voters),
        )
