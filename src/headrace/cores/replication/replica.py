"""One partition as this broker holds it: leader or follower, by the newest metadata it has seen.

The shell acts on what `update` says:

    BECAME_LEADER    let the epoch begin in the log (`assign_epoch` at the leader's epoch start offset), and flush
    NEW_EPOCH        the same: we lead on, in a new epoch
    BECAME_FOLLOWER  tell everyone who waits NOT_LEADER_OR_FOLLOWER, drop epochs that begin at the log end (they wrote
                     nothing, and would claim what the leader sends), and fetch from the leader, if there is one
    UPDATED          nothing to do but to look at the high watermark
    IGNORED          it was older than what we know

A broker that was restarted may act on metadata only once it has seen its own registration there: what comes before may
still name it the leader of an epoch in which it wrote records that it has lost.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from headrace.cores.replication.follower import Follower
from headrace.cores.replication.leader import Leader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cores.replication.messages import (
        BrokerStatus,
        PartitionRegistration,
        ReplicaLog,
        ReplicationSettings,
    )


class Change(Enum):
    """What newer metadata made of us."""

    BECAME_LEADER = "became leader"
    NEW_EPOCH = "new epoch"
    BECAME_FOLLOWER = "became follower"
    UPDATED = "updated"
    IGNORED = "ignored"


class Replica:
    """A partition's log and the part this broker has in it."""

    __slots__ = ("_broker_epoch", "_broker_id", "_brokers", "_high_watermark", "_log", "_settings", "role")

    def __init__(
        self,
        log: ReplicaLog,
        *,
        broker_id: int,
        broker_epoch: int,
        brokers: Mapping[int, BrokerStatus],
        settings: ReplicationSettings,
        high_watermark: int,
    ) -> None:
        """`high_watermark` is the checkpointed one; it is kept within the log."""
        self._log = log
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._brokers = brokers
        self._settings = settings
        self._high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        self.role: Leader | Follower | None = None

    @property
    def high_watermark(self) -> int:
        """How far this broker knows everything to be committed."""
        return self._high_watermark if self.role is None else self.role.high_watermark

    @property
    def leader(self) -> Leader | None:
        """Our part as the leader, if we are."""
        return self.role if isinstance(self.role, Leader) else None

    @property
    def follower(self) -> Follower | None:
        """Our part as a follower, if we are."""
        return self.role if isinstance(self.role, Follower) else None

    def configure(self, settings: ReplicationSettings, now_ms: int) -> None:
        """Take new settings of the topic."""
        self._settings = settings
        match self.role:
            case Leader() as leader:
                leader.configure(settings, now_ms)
            case Follower() as follower:
                follower.configure(settings)

    def change_log(self, log: ReplicaLog) -> None:
        """Go on with a copy of the log in its place."""
        self._log = log
        if self.role is not None:
            self.role.change_log(log)

    def update(self, partition: PartitionRegistration, now_ms: int) -> Change:
        """Take over the partition's state from the metadata; an older one than we know is ignored.

        The answer to an AlterPartition may have told us of a state before the metadata does.
        """
        match self.role:
            case Leader() as leader if partition.partition_epoch < leader.partition_epoch:
                return Change.IGNORED
            case Leader() as leader if partition.leader == self._broker_id:
                old_epoch = leader.leader_epoch
                leader.update(partition, now_ms)
                return Change.UPDATED if leader.leader_epoch == old_epoch else Change.NEW_EPOCH
            case Follower() as follower if partition.leader_epoch < follower.leader_epoch:
                return Change.IGNORED
            case Follower() as follower if (partition.leader, partition.leader_epoch) == (
                follower.leader,
                follower.leader_epoch,
            ):
                return Change.UPDATED
        return self._take_role(partition, now_ms)

    def _take_role(self, partition: PartitionRegistration, now_ms: int) -> Change:
        mark = self.high_watermark
        if partition.leader != self._broker_id:
            self.role = Follower(self._log, partition, settings=self._settings, high_watermark=mark)
            return Change.BECAME_FOLLOWER
        self.role = Leader(
            self._log,
            partition,
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch,
            brokers=self._brokers,
            settings=self._settings,
            high_watermark=mark,
            now_ms=now_ms,
        )
        return Change.BECAME_LEADER
