"""A partition on brokers 1, 2 and 3 as broker 1 sees it."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from headrace.cores.replication.leader import Leader
from headrace.cores.replication.messages import FetchPosition, ReplicationSettings
from headrace.sim.replication_log import Record, SimulatedLog

LAG_MS = 1000


def status(broker_epoch=10, *, fenced=False, in_controlled_shutdown=False):
    """A broker as the metadata has it."""
    return SimpleNamespace(broker_epoch=broker_epoch, fenced=fenced, in_controlled_shutdown=in_controlled_shutdown)


def registration(*, leader=1, leader_epoch=5, partition_epoch=7, isr=(1, 2, 3), replicas=(1, 2, 3)):
    """The partition as the metadata has it."""
    return SimpleNamespace(
        leader=leader, leader_epoch=leader_epoch, partition_epoch=partition_epoch, isr=isr, replicas=replicas
    )


def log_of(*epochs, flushed=None):
    """A log with one record for each epoch given, all or so many of them flushed."""
    log = SimulatedLog()
    for sequence, epoch in enumerate(epochs):
        log.append(Record(epoch, 0, sequence))
    log.recovery_point = len(epochs) if flushed is None else flushed
    return log


@dataclass
class Scene:
    """Broker 1 leads, 2 and 3 follow."""

    log: SimulatedLog
    leader: Leader
    brokers: dict
    now_ms: int = 0
    sequence: int = field(default=1000)

    def append(self, count=1, *, flush=True):
        """Append records as the leader, and flush them."""
        for _ in range(count):
            self.sequence += 1
            self.log.append(Record(self.leader.leader_epoch, 0, self.sequence))
        self.leader.appended(self.now_ms)
        if flush:
            self.log.recovery_point = self.log.log_end_offset
            self.leader.flushed(self.now_ms)

    def fetch(self, follower, offset, *, epoch=None, last_epoch=-1, broker_epoch=10, log_start_offset=0):
        """A follower says how far it is."""
        position = FetchPosition(
            leader_epoch=self.leader.leader_epoch if epoch is None else epoch,
            offset=offset,
            last_fetched_epoch=last_epoch,
            log_start_offset=log_start_offset,
        )
        return self.leader.fetch(follower, position, broker_epoch=broker_epoch, now_ms=self.now_ms)

    @property
    def mark(self):
        """The high watermark."""
        return self.leader.high_watermark


@pytest.fixture
def lead():
    """Make a scene; the log has a record of each epoch given."""

    def make(*epochs, flushed=None, high_watermark=0, now_ms=0, min_isr=1, flushes=True, **partition):
        log = log_of(*epochs, flushed=flushed)
        brokers = {broker_id: status() for broker_id in (1, 2, 3)}
        leader = Leader(
            log,
            registration(**partition),
            broker_id=1,
            broker_epoch=10,
            brokers=brokers,
            settings=ReplicationSettings(min_insync_replicas=min_isr, replica_lag_time_max_ms=LAG_MS, flushes=flushes),
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        log.assign_epoch(leader.leader_epoch, leader.epoch_start_offset)
        return Scene(log, leader, brokers, now_ms)

    return make


@pytest.fixture(name="registration")
def registration_fixture():
    """The partition as the metadata has it, made by its parts."""
    return registration


@pytest.fixture(name="status")
def status_fixture():
    """A broker as the metadata has it, made by its parts."""
    return status


@pytest.fixture(name="log_of")
def log_of_fixture():
    """A log with one record for each epoch given."""
    return log_of
