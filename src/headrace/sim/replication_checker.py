"""What must hold in every simulated run of replication, checked as it happens.

committed        a record below a leader's high watermark never changes and is never lost
acknowledged     what a producer was told is safe is committed, once
in sync          who could be elected (ISR, ELR) has all that is committed: on its disk, where the topic flushes
high watermark   never goes back while a broker keeps its part, and no follower truncates below its own
one leader       in an epoch one broker writes, in one life of it
log matching     two logs that have a record of an epoch at an offset are equal up to it
consumers        see committed records only
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.replication.leader import Leader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.sim.replication_broker import SimulatedBroker
    from headrace.sim.replication_controller import SimulatedController
    from headrace.sim.replication_log import Record


class Checker:
    """Knows what is committed, and fails when somebody disagrees."""

    def __init__(
        self,
        fail: Callable[[str, str], None],
        controller: SimulatedController,
        brokers: dict[int, SimulatedBroker],
        *,
        flushes: bool,
    ) -> None:
        self._fail = fail
        self._controller = controller
        self._brokers = brokers
        self._flushes = flushes
        self._is_dirty = False
        self._partition_epoch = -1
        self._compared = dict.fromkeys(brokers, 0)
        self._matched = dict.fromkeys(brokers, 0)
        self._marks: dict[int, tuple[object, int]] = {}
        self._writers: dict[int, tuple[int, int]] = {}
        self._written: dict[tuple[int, int], tuple[Record, int]] = {}
        self._seen: set[tuple[int, int]] = set()
        self.committed: list[Record] = []
        self.acknowledgements = 0

    # --- what brokers tell

    def touch(self, broker: SimulatedBroker) -> None:
        """A broker's high watermark may have moved."""
        replica = broker.replica
        if replica is None:
            return
        mark = replica.high_watermark
        life, before = self._marks.get(broker.broker_id, (None, 0))
        if life is replica and mark < before:
            self._fail("high watermark", f"{broker.broker_id} went back from {before} to {mark}")
        if mark > broker.log.log_end_offset:
            self._fail("high watermark", f"{broker.broker_id} has {mark}, beyond its end {broker.log.log_end_offset}")
        self._marks[broker.broker_id] = replica, mark
        if mark > self._compared[broker.broker_id]:
            self._compare(broker, mark)

    def _compare(self, broker: SimulatedBroker, mark: int) -> None:
        """What lies below a high watermark is committed, and the same everywhere."""
        committed = self.committed
        is_leader = broker.replica is not None and isinstance(broker.replica.role, Leader)
        for offset in range(max(self._compared[broker.broker_id], broker.log.log_start_offset), mark):
            record = broker.log.record(offset)
            if offset < len(committed):
                if committed[offset] != record:
                    self._fail("committed", f"{broker.broker_id} has {record} at {offset}, not {committed[offset]}")
            elif not is_leader or offset > len(committed):
                self._fail("high watermark", f"{broker.broker_id} has {mark}, but {len(committed)} are committed")
            else:
                if record[1:] in self._seen:
                    self._fail("acknowledged", f"{record} is there twice, again at {offset}")
                self._seen.add((record.producer, record.sequence))
                committed.append(record)
        self._compared[broker.broker_id] = mark
        self._is_dirty = True

    def cut(self, broker: SimulatedBroker) -> None:
        """A broker's log became shorter."""
        end_offset = broker.log.log_end_offset
        self._compared[broker.broker_id] = min(self._compared[broker.broker_id], end_offset)
        self._matched[broker.broker_id] = min(self._matched[broker.broker_id], end_offset)
        self._is_dirty = True

    def lost_high_watermark(self, broker: SimulatedBroker, mark: int) -> None:
        """A follower says that it truncates below its high watermark, unless that is -1."""
        if mark >= 0:
            self._fail("high watermark", f"{broker.broker_id} truncates below {mark}")

    def written(self, broker: SimulatedBroker, record: Record) -> None:
        """A broker is about to append a record."""
        log = broker.log
        offset = log.log_end_offset
        previous = log.record(offset - 1).epoch if offset > log.log_start_offset else -1
        known, known_previous = self._written.setdefault((offset, record.epoch), (record, previous))
        if known != record or (known_previous != previous and -1 not in {known_previous, previous}):
            self._fail("log matching", f"{broker.broker_id} writes {record} at {offset}, but there is {known}")
        if broker.replica is not None and isinstance(broker.replica.role, Leader):
            life = broker.broker_id, broker.incarnation
            if self._writers.setdefault(record.epoch, life) != life:
                self._fail("one leader", f"{life} and {self._writers[record.epoch]} write in epoch {record.epoch}")

    def acknowledged(self, offset: int, producer: int, sequence: int) -> None:
        """A broker told a producer that a record is safe."""
        self.acknowledgements += 1
        if offset >= len(self.committed) or self.committed[offset][1:] != (producer, sequence):
            self._fail("acknowledged", f"{producer}:{sequence} at {offset} is not committed")

    def consumed(self, broker_id: int, offset: int, records: Sequence[Record]) -> None:
        """A consumer got records."""
        if list(records) != self.committed[offset : offset + len(records)]:
            self._fail("consumers", f"{broker_id} gave {records} at {offset}, which are not committed")

    # --- after every event

    def check(self) -> None:
        """Whoever could be elected has everything."""
        partition = self._controller.partition
        if not self._is_dirty and partition.partition_epoch == self._partition_epoch:
            return
        self._is_dirty = False
        self._partition_epoch = partition.partition_epoch
        if not {*partition.isr, *partition.elr} <= set(partition.replicas):
            self._fail("in sync", f"{partition.isr} or {partition.elr} are not all replicas")
        for broker_id in (*partition.isr, *partition.elr):
            self._check_has_all(self._brokers[broker_id])

    def _check_has_all(self, broker: SimulatedBroker) -> None:
        if broker.has_lost_data and not self._flushes:
            # It will be taken out as soon as it is back; without flushing this much is promised, and no more.
            return
        count = len(self.committed)
        log = broker.log
        safe = log.recovery_point if self._flushes else log.log_end_offset
        if safe < count:
            self._fail("in sync", f"{broker.broker_id} has {safe} of {count} committed records safe")
        for offset in range(max(self._matched[broker.broker_id], log.log_start_offset), count):
            if log.record(offset) != self.committed[offset]:
                self._fail(
                    "in sync", f"{broker.broker_id} has {log.record(offset)} at {offset}, which is not committed"
                )
        self._matched[broker.broker_id] = count

    # --- at the end

    def unfinished(self) -> str:
        """What is still missing for all replicas to be equal and in sync; empty if nothing is."""
        partition = self._controller.partition
        if len(partition.isr) != len(partition.replicas):
            return f"isr {partition.isr}"
        count = len(self.committed)
        start_offset = self._brokers[partition.leader].log.log_start_offset
        for broker in self._brokers.values():
            mark = -1 if broker.replica is None else broker.replica.high_watermark
            # A leader that was elected before it heard of a deletion starts lower than those who did.
            if (broker.log.log_end_offset, mark) != (count, count) or broker.log.log_start_offset < start_offset:
                return f"{broker.broker_id} has {broker.log.log_end_offset} with high watermark {mark}, not {count}"
        return ""
