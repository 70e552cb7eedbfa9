"""The replicas this broker holds: which logs there are, which of them it leads, and from whom it copies the others.

Everything follows from the metadata, partition by partition, in the order it was committed. The core
(cores/replication/replica.py) says what newer metadata makes of us; here the logs are made, the parts are given out to
the partitions, and followers are put to work.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.broker.partition import not_led_here
from headrace.broker.replica_directories import DirectoryReports
from headrace.broker.replica_fetchers import ReplicaFetchers
from headrace.broker.replica_isr import IsrChanges
from headrace.broker.replica_moves import ReplicaMoves
from headrace.broker.steady_clock import steady_ms
from headrace.cores.controller.partition_change import RECOVERING
from headrace.cores.replication.replica import Change, Replica
from headrace.model.errors import StorageFault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.cores.metadata import PartitionState
    from headrace.storage.log_dir import LogDir

logger = logging.getLogger(__name__)

Key = tuple["UUID", int]

TURN_PARTITIONS = 100
"""After so many partitions others get a turn of the loop: metadata may change thousands at once."""


class _Moves:
    """What one batch of metadata changed about who leads, by topic, for the coordinators."""

    def __init__(self) -> None:
        self.led: dict[str, list[int]] = {}
        self.resigned: dict[str, list[int]] = {}

    def lead(self, partition: Partition) -> None:
        """We lead it, in a new epoch."""
        self.led.setdefault(partition.topic, []).append(partition.index)

    def resign(self, partition: Partition) -> None:
        """We lead it no longer."""
        self.resigned.setdefault(partition.topic, []).append(partition.index)


class Replicas:
    """The replicas of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._fetchers = ReplicaFetchers(broker)
        self.isr_changes = IsrChanges(broker)
        self._directories = DirectoryReports(broker)
        self.moves = ReplicaMoves(broker, self._directories)
        self._has_taken_part = False
        self._is_stopped = False
        broker.membership.offline_log_dirs = self._lost_directories
        broker.partitions.offline = broker.store.offline
        broker.partitions.on_offline = self._on_offline

    # --- life

    def open(self) -> None:
        """Open every local log; blocking. The metadata must be today's: what it does not name is set aside."""
        self._broker.store.open_partitions(self._broker.metadata, self._broker.partitions)

    async def start(self) -> None:
        """Take up our part in every partition, and go on with moves between our log dirs."""
        await self.apply((), ())
        self.moves.go_on()

    def resign(self) -> None:
        """The broker stops: whoever waits for other replicas is told to look elsewhere."""
        self._is_stopped = True
        self._fetchers.stop()
        self.isr_changes.stop()
        self._directories.stop()
        for partition in self._broker.partitions:
            if partition.replicated is not None:
                partition.follow(partition.leader_epoch)

    async def tick(self) -> None:
        """Look for followers that do not keep pace."""
        for count, partition in enumerate(tuple(self._broker.partitions)):
            partition.tick()
            if count % TURN_PARTITIONS == TURN_PARTITIONS - 1:
                await asyncio.sleep(0)

    def _lost_directories(self) -> list[UUID]:
        """The failed log dirs, for the controller; the only broker there is keeps them to itself.

        Nobody could lead in its place, and with no leader at all readers would not get what can still be read.
        """
        has_others = bool(self._broker.metadata.brokers.keys() - {self._broker.node_id})
        return self._broker.store.offline_directories() if has_others else []

    def _on_offline(self, log_dir: LogDir) -> None:
        """A log dir failed: the controller hears of it at once, and nothing that is there is moved or copied any more.

        A replica that went on asking would look as if it were in sync to leaders of which it has everything, and they
        would wait for it with the next record.
        """
        self.moves.on_offline(log_dir)
        for partition in self._broker.partitions:
            if log_dir.logs.get(partition.log.name) is partition.log:
                self._fetchers.leave(partition)
        self._fetchers.settle()
        self._broker.membership.report()

    # --- following the metadata

    async def apply(self, changed: Collection[Key], deleted: Collection[UUID]) -> None:
        """Take over what was committed; StorageFault if some log could not be made, when all else is done."""
        for topic_id in deleted:
            await self._erase(self._broker.partitions.remove(topic_id))
        if self._is_stopped or not self._is_registered():
            return
        if not self._has_taken_part:
            self._has_taken_part = True
            changed = tuple(self._broker.metadata.index.replicas.get(self._broker.node_id, ()))
        fault = await self._make_logs(changed)
        moves = _Moves()
        gone = []
        for count, key in enumerate(changed):
            partition = self._broker.partitions.find(key)
            if partition is not None and not await self._update(partition, moves):
                gone.append(partition)
            if count % TURN_PARTITIONS == TURN_PARTITIONS - 1:
                await asyncio.sleep(0)
        for partition in gone:
            self._broker.partitions.let_go(partition, not_led_here())
        self._fetchers.settle()
        self._directories.settle()
        await self._erase(gone)
        await self._tell(moves)
        if fault is not None:
            raise fault

    def _is_registered(self) -> bool:
        """Whether the metadata knows this very process: what it said before may be about one that lost records."""
        known = self._broker.metadata.brokers.get(self._broker.node_id)
        return known is not None and known.broker_epoch == self._broker.broker_epoch

    async def _make_logs(self, changed: Iterable[Key]) -> StorageFault | None:
        """Make the logs of partitions that are new here."""
        broker = self._broker
        missing: dict[UUID, list[int]] = {}
        for topic_id, index in changed:
            state = broker.metadata.partition(topic_id, index)
            if (
                state is not None
                and broker.node_id in state.replicas
                and broker.partitions.find((topic_id, index)) is None
                and f"{broker.metadata.topics_by_id[topic_id].name}-{index}" not in broker.store.offline
            ):
                missing.setdefault(topic_id, []).append(index)
        fault = None
        for topic_id, indexes in missing.items():
            try:
                await broker.partitions.create(broker.metadata.topics_by_id[topic_id], sorted(indexes))
            except StorageFault as problem:
                fault = problem
        return fault

    async def _update(self, partition: Partition, moves: _Moves) -> bool:
        """Play the part that the metadata gives us in one partition; False if it is none."""
        await partition.settled()
        state = self._broker.metadata.partition(partition.topic_id, partition.index)
        if state is None or self._broker.node_id not in state.replicas:
            if partition.is_led:
                moves.resign(partition)
            return False
        replica = self._replica_of(partition)
        change = replica.update(state, steady_ms())
        if change in {Change.BECAME_LEADER, Change.NEW_EPOCH}:
            self._lead(partition)
            moves.lead(partition)
            if state.leader_recovery_state == RECOVERING:
                logger.warning(
                    "unclean_leader partition=%s-%d epoch=%d end_offset=%d lost=whatever_only_other_replicas_have",
                    partition.topic,
                    partition.index,
                    state.leader_epoch,
                    partition.log.log_end_offset,
                )
        elif change is Change.BECAME_FOLLOWER:
            if partition.is_led:
                moves.resign(partition)
            self._follow(partition, state)
        elif replica.leader is not None:
            partition.rejoin(replica.leader if replica.leader.followers else None)
        self._directories.compare(partition, state)
        return True

    def _replica_of(self, partition: Partition) -> Replica:
        """Our part in a partition, which knows how far everything is committed."""
        replica, log = partition.replica, partition.log
        if replica is None:
            replica = partition.replica = Replica(
                log,
                broker_id=self._broker.node_id,
                broker_epoch=self._broker.broker_epoch,
                brokers=self._broker.metadata.brokers,
                settings=self._broker.partitions.replication_settings(log.config),
                high_watermark=log.high_watermark,
            )
            partition.on_isr_change = self.isr_changes.want
        elif replica.role is not None:
            # A leader without followers raises its high watermark itself.
            replica.role.high_watermark = max(replica.role.high_watermark, log.high_watermark)
        return replica

    def _lead(self, partition: Partition) -> None:
        assert partition.replica is not None
        leader = partition.replica.leader
        assert leader is not None
        self._fetchers.leave(partition)
        partition.log.assign_epoch(leader.leader_epoch, leader.epoch_start_offset)
        partition.lead(leader.leader_epoch, leader if leader.followers else None)
        if partition.log.recovery_point < partition.log.log_end_offset:
            partition.flush()

    def _follow(self, partition: Partition, state: PartitionState) -> None:
        partition.log.forget_unwritten_epochs()
        partition.follow(state.leader_epoch)
        if state.leader >= 0 and not partition.is_broken:
            self._fetchers.follow(partition, state.leader)
        else:
            self._fetchers.leave(partition)

    async def _erase(self, gone: Collection[Partition]) -> None:
        """Have the logs of partitions that are served no more renamed now, and removed when nobody reads them."""
        if not gone:
            return
        broker = self._broker
        for partition in gone:
            self._fetchers.leave(partition)
            broker.resigned(partition.topic, [partition.index])
            await partition.settled()
            await self.moves.abandon(partition)
        self._fetchers.settle()
        deleted = await asyncio.get_running_loop().run_in_executor(broker.readers, broker.store.take_out, gone)
        for log, partition in zip(deleted, gone, strict=False):
            broker.housekeeping.remove_later(log, partition.config.file_delete_delay_ms)

    async def _tell(self, moves: _Moves) -> None:
        """Coordinators live where their partitions are led."""
        for topic, indexes in moves.resigned.items():
            self._broker.resigned(topic, indexes)
        for topic, indexes in moves.led.items():
            await self._broker.led(topic, indexes)
