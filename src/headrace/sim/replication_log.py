"""A replica's log and disk in a simulation: records in memory, of which those that were not flushed may be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headrace.storage.leader_epochs import LeaderEpochs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random


class Record(NamedTuple):
    """One record: who wrote it, and under which leader."""

    epoch: int
    producer: int
    sequence: int


class SimulatedLog:
    """What a replica of the partition holds, with the attributes of the real log."""

    def __init__(self) -> None:
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.generation = 0
        """Changes when a flush that is under way no longer says anything."""
        self._base = 0
        self._records: list[Record] = []
        self._epochs = LeaderEpochs([])
        self._offsets: dict[tuple[int, int], int] = {}
        self._sequences: dict[int, int] = {}

    def record(self, offset: int) -> Record:
        """The record at an offset."""
        return self._records[offset - self._base]

    def read(self, offset: int, end_offset: int) -> list[Record]:
        """The records between two offsets."""
        return self._records[offset - self._base : end_offset - self._base]

    def last_sequence(self, producer: int) -> int:
        """The sequence number a producer wrote last, -1 if it wrote nothing."""
        return self._sequences.get(producer, -1)

    def offset_of(self, producer: int, sequence: int) -> int | None:
        """Where a record is that a producer sends again."""
        return self._offsets.get((producer, sequence))

    # What the cores read

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The greatest known epoch not above the asked one, and where it ends."""
        return self._epochs.end_offset(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch that wrote an offset."""
        return self._epochs.epoch_at(offset)

    # What the owner does

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Let a leader epoch begin."""
        self._epochs.assign(epoch, start_offset)

    def append(self, record: Record) -> int:
        """Write a record at the end."""
        offset = self.log_end_offset
        self._records.append(record)
        self.log_end_offset = offset + 1
        if record.epoch > self._epochs.latest:
            self._epochs.assign(record.epoch, offset)
        self._offsets[record.producer, record.sequence] = offset
        self._sequences[record.producer] = record.sequence
        return offset

    def flushed(self, end_offset: int, generation: int) -> None:
        """A flush of everything up to an offset is done."""
        if generation == self.generation:
            self.recovery_point = max(self.recovery_point, end_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop everything from an offset on, and epochs that begin there."""
        while self.log_end_offset > max(offset, self._base):
            record = self._records.pop()
            self.log_end_offset -= 1
            del self._offsets[record.producer, record.sequence]
            self._sequences[record.producer] = record.sequence - 1
        self._epochs.truncate_from_end(self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.generation += 1

    def start_over(self, offset: int, history: Sequence[Record]) -> None:
        """Begin again, empty; the producers' state comes with the history up to there."""
        self._records.clear()
        self._base = self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self._epochs.clear()
        self._offsets = {(record.producer, record.sequence): at for at, record in enumerate(history)}
        self._sequences = {record.producer: record.sequence for record in history}
        self.generation += 1

    def advance_start(self, offset: int) -> None:
        """Let the log start later."""
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.recovery_point = max(self.recovery_point, offset)
            self._epochs.truncate_from_start(offset)

    def crash(self, chance: Random, *, loses_page_cache: bool) -> None:
        """The process is gone, or the power: then any part of what was not flushed is lost."""
        if loses_page_cache:
            self.truncate_to(chance.randint(self.recovery_point, self.log_end_offset))
        self.generation += 1
        self._recover()

    def _recover(self) -> None:
        """The epochs are found again from the records."""
        found: list[tuple[int, int]] = []
        for offset in range(self.log_start_offset, self.log_end_offset):
            epoch = self.record(offset).epoch
            if not found or found[-1][0] != epoch:
                found.append((epoch, offset))
        self._epochs = LeaderEpochs(found)


def spell(records: Iterable[Record]) -> str:
    """Records as a trace shows them."""
    return " ".join(f"{record.producer}:{record.sequence}@{record.epoch}" for record in records)
