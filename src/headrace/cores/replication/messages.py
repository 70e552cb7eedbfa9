"""What goes in and out of the two state machines, and what they want to know of the log, the cluster and the topic."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from headrace.model.errors import ErrorCode

NO_LEADER = -1
NO_EPOCH = -1
"""An epoch that is not known, or not asked to be checked."""


class ReplicaLog(Protocol):
    """What is read of the partition's log; only its owner changes it."""

    @property
    def log_start_offset(self) -> int:
        """The first offset there is."""

    @property
    def log_end_offset(self) -> int:
        """The next offset to be written."""

    @property
    def recovery_point(self) -> int:
        """Everything below is on the disk."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The greatest known epoch not above the asked one, and where it ends; (-1, -1) if that cannot be told."""

    def epoch_at(self, offset: int) -> int:
        """The leader epoch that wrote an offset, -1 if unknown."""


class PartitionRegistration(Protocol):
    """A partition as the cluster's metadata has it."""

    @property
    def replicas(self) -> tuple[int, ...]:
        """The brokers that hold it; the first should lead."""

    @property
    def isr(self) -> tuple[int, ...]:
        """Those of them that hold all that is committed."""

    @property
    def leader(self) -> int:
        """Who leads, -1 for nobody."""

    @property
    def leader_epoch(self) -> int:
        """Rises with every election."""

    @property
    def partition_epoch(self) -> int:
        """Rises with every change."""


class BrokerStatus(Protocol):
    """A broker as the cluster's metadata has it."""

    @property
    def broker_epoch(self) -> int:
        """Rises with every registration, so with every start of the broker."""

    @property
    def fenced(self) -> bool:
        """Whether the controller has not heard of it for too long."""

    @property
    def in_controlled_shutdown(self) -> bool:
        """Whether it is about to leave."""


class ReplicationSettings(Struct, frozen=True, kw_only=True):
    """The settings a partition is replicated by."""

    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = 30_000
    flushes: bool = True
    """Whether only what is on a replica's disk counts (`flush.on.acks.all`)."""


class EpochEnd(Struct, frozen=True):
    """Where a leader epoch ends in the leader's log; tells a follower where it parted from it."""

    epoch: int
    end_offset: int


class FetchPosition(Struct, frozen=True, kw_only=True):
    """What a follower asks for; its offset says how far it has everything."""

    leader_epoch: int
    """The epoch of the leader it means to ask."""
    offset: int
    last_fetched_epoch: int = NO_EPOCH
    """The epoch of its last record: by this the leader finds out whether the two logs agree."""
    log_start_offset: int = 0


class FetchAnswer(Struct, frozen=True, kw_only=True):
    """What a leader says to a fetch, its records aside."""

    error: ErrorCode = ErrorCode.NONE
    diverging: EpochEnd | None = None
    high_watermark: int = -1
    log_start_offset: int = -1


class LeaderRange(Struct, frozen=True, kw_only=True):
    """Which offsets a leader has, as ListOffsets told for `earliest` and `latest`."""

    start_offset: int
    end_offset: int
    end_epoch: int = NO_EPOCH
    """The epoch that came with the latest offset."""


class AlterPartition(Struct, frozen=True, kw_only=True):
    """The in-sync replicas a leader wants, to be committed by the controller if nothing has changed meanwhile."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """Broker ids with the broker epoch each was last heard with (KIP-903); -1 if it was not heard yet."""

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The in-sync replicas without their broker epochs."""
        return tuple(broker_id for broker_id, _ in self.isr)


class AlterAnswer(Struct, frozen=True, kw_only=True):
    """What the controller said to an AlterPartition."""

    error: ErrorCode = ErrorCode.NONE
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
