"""The leader of a partition: it counts its followers, keeps the in-sync replicas, and says what is safe.

Everything it is told is a call; what it decides is read off it afterwards:

    high_watermark   never goes back; the shell wakes whoever waits when it has moved
    take_request()   the AlterPartition to send, seldom any; one is under way at a time
    outcome(offset)  whether a produce that waits for an offset may be answered, and how

`now_ms` is a steady clock: lag is counted in it, nothing else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.replication.epochs import check_comparable, check_leader_epoch, diverging_epoch
from headrace.cores.replication.high_watermark import safe_offset
from headrace.cores.replication.isr import InSyncReplicas
from headrace.cores.replication.progress import FollowerProgress
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cores.replication.messages import (
        AlterAnswer,
        AlterPartition,
        BrokerStatus,
        EpochEnd,
        FetchPosition,
        PartitionRegistration,
        ReplicaLog,
        ReplicationSettings,
    )

_ANY_BROKER_EPOCH = -1


class NotAFollower(KafkaError):
    """Whoever fetches is no replica, or no longer the broker it was: a client may pose as one."""


class Leader:
    """This broker's part of a partition while it leads it."""

    __slots__ = (
        "_broker_epoch",
        "_broker_id",
        "_brokers",
        "_counted",
        "_flushes",
        "_is_under_min",
        "_log",
        "_outside",
        "_settings",
        "epoch_start_offset",
        "followers",
        "high_watermark",
        "isr",
        "leader_epoch",
        "replicas",
    )

    def __init__(
        self,
        log: ReplicaLog,
        partition: PartitionRegistration,
        *,
        broker_id: int,
        broker_epoch: int,
        brokers: Mapping[int, BrokerStatus],
        settings: ReplicationSettings,
        high_watermark: int,
        now_ms: int,
    ) -> None:
        """`brokers` is the shell's live view of the cluster; the high watermark is what was known before."""
        assert partition.leader == broker_id
        self._log = log
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._brokers = brokers
        self._settings = settings
        self._flushes = settings.flushes
        self.high_watermark = high_watermark
        self.leader_epoch = partition.leader_epoch
        self.epoch_start_offset = log.log_end_offset
        """The shell lets the epoch begin here in the log (`assign_epoch`) before anything is appended."""
        self.replicas = partition.replicas
        self.isr = InSyncReplicas(partition.isr, partition.partition_epoch)
        self.followers = {
            replica: FollowerProgress(replica, now_ms, in_sync=replica in self.isr.committed)
            for replica in partition.replicas
            if replica != broker_id
        }
        self._count()
        self._advance(now_ms)

    @property
    def partition_epoch(self) -> int:
        """The newest state of the partition we know to be committed."""
        return self.isr.partition_epoch

    @property
    def settings(self) -> ReplicationSettings:
        """The topic's settings; a change may let the high watermark move."""
        return self._settings

    def change_log(self, log: ReplicaLog) -> None:
        """Go on with a copy of the log in its place."""
        self._log = log

    def configure(self, settings: ReplicationSettings, now_ms: int) -> bool:
        """Take new settings; whether the high watermark moved."""
        self._settings = settings
        self._flushes = settings.flushes
        self._count()
        return self._advance(now_ms)

    # --- writing

    @property
    def min_isr(self) -> int:
        """How many replicas must be in sync; no more than there are."""
        return min(self._settings.min_insync_replicas, len(self.replicas))

    def check_enough_replicas(self) -> None:
        """Refuse a write that asks for acks=all while too few replicas are in sync; HOT."""
        if self._is_under_min:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The in-sync replicas {sorted(self.isr.committed)} are fewer than the {self.min_isr} asked for.",
            )

    def appended(self, now_ms: int) -> bool:
        """We appended to our log; whether the high watermark moved. HOT."""
        return not self._flushes and self._advance(now_ms)

    def flushed(self, now_ms: int) -> bool:
        """Our disk has more; whether the high watermark moved. HOT."""
        return self._flushes and self._advance(now_ms)

    def outcome(self, required_offset: int) -> ErrorCode | None:
        """What to answer to a produce whose records end before an offset; None while it has to wait."""
        if self.high_watermark < required_offset:
            return None
        if len(self.isr.maximal) < self.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    # --- followers

    def fetch(self, follower_id: int, asked: FetchPosition, *, broker_epoch: int, now_ms: int) -> EpochEnd | None:
        """Count what a follower has; where its log parts from ours, that is the answer and nothing is counted. HOT.

        Raises what the follower is to be told if it may not fetch: it speaks of another leader epoch, is no replica,
        or has been restarted since (KIP-903).
        """
        if asked.leader_epoch != self.leader_epoch:
            check_leader_epoch(asked.leader_epoch, self.leader_epoch)
        follower = self.followers.get(follower_id)
        if follower is None:
            # In this epoch, but a replica we have not heard of: our metadata may be behind, so it should try again.
            raise NotAFollower(ErrorCode.UNKNOWN_LEADER_EPOCH, f"Broker {follower_id} is not known as a replica.")
        status = self._brokers.get(follower_id)
        if status is not None and _ANY_BROKER_EPOCH != broker_epoch < status.broker_epoch:
            raise NotAFollower(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Broker {follower_id} has been restarted: its epoch is {status.broker_epoch}, not {broker_epoch}.",
            )
        log, offset = self._log, asked.offset
        end_offset = log.log_end_offset
        # A follower whose last record is of our epoch has it from us: then only its offset is to be looked at.
        if asked.last_fetched_epoch != self.leader_epoch or not log.log_start_offset <= offset <= end_offset:
            diverging = diverging_epoch(log, offset, asked.last_fetched_epoch)
            if diverging is not None:
                return diverging
            check_comparable(log, offset, asked.last_fetched_epoch)
        moved = follower.offset != offset
        follower.fetched(offset, asked.log_start_offset, broker_epoch, end_offset, now_ms)
        if follower_id not in self.isr.maximal:
            self._expand(follower)
        if moved:
            self._advance(now_ms)
        return None

    def is_eligible(self, follower: FollowerProgress) -> bool:
        """Whether a follower may join the ISR: alive, staying, and the same incarnation that fetched (KIP-903)."""
        status = self._brokers.get(follower.broker_id)
        return (
            status is not None
            and not status.fenced
            and not status.in_controlled_shutdown
            and follower.is_heard
            and follower.broker_epoch in {_ANY_BROKER_EPOCH, status.broker_epoch}
        )

    def low_watermark(self) -> int:
        """The highest log start offset that all live replicas have reached; what DeleteRecords waits for."""
        starts = [self._log.log_start_offset]
        for follower in self.followers.values():
            status = self._brokers.get(follower.broker_id)
            if status is not None and not status.fenced:
                starts.append(follower.log_start_offset)
        return min(starts)

    # --- the in-sync replicas

    def tick(self, now_ms: int) -> bool:
        """Ask to take out followers that have not kept pace; call it every half `replica.lag.time.max.ms`.

        Whether the high watermark moved: it may have waited for one outside the ISR that has stopped.
        """
        if self.isr.pending is None:
            lagging = self.lagging(now_ms)
            if lagging:
                self._propose(self.isr.committed - lagging)
        return self._advance(now_ms)

    def lagging(self, now_ms: int) -> set[int]:
        """Followers of the ISR that have not been level with us for longer than is allowed."""
        end_offset = self._log.log_end_offset
        lag_max_ms = self._settings.replica_lag_time_max_ms
        return {
            replica
            for replica in self.isr.committed
            if replica != self._broker_id
            and (
                (follower := self.followers.get(replica)) is None
                or not follower.is_caught_up(end_offset, now_ms, lag_max_ms)
            )
        }

    def take_request(self) -> AlterPartition | None:
        """The AlterPartition to send now, once; keep it to hand it back with its answer."""
        request, self.isr.outgoing = self.isr.outgoing, None
        return request

    def answered(self, request: AlterPartition, answer: AlterAnswer, now_ms: int) -> bool:
        """The controller answered (or the link did, with an error); whether the high watermark moved.

        The answer to a request that newer metadata has overtaken is dropped. One that should be sent again is there to
        be taken; when, is for the shell to say.
        """
        isr = self.isr
        if request is not isr.pending:
            return False
        if answer.error is not ErrorCode.NONE:
            isr.refused(answer.error)
        elif answer.leader_epoch != self.leader_epoch or not isr.accepted(answer):
            return False
        self._count()
        return self._advance(now_ms)

    def update(self, partition: PartitionRegistration, now_ms: int) -> bool:
        """Newer metadata that leaves us the leader; whether the high watermark moved.

        If the leader epoch is a new one, it begins at `epoch_start_offset`.
        """
        assert partition.leader == self._broker_id
        assert partition.leader_epoch >= self.leader_epoch
        assert partition.partition_epoch >= self.partition_epoch
        for follower in self.followers.values():
            if follower.broker_id in self.isr.committed.difference(partition.isr):
                follower.taken_out()
        self.replicas = partition.replicas
        self.followers = {
            replica: self.followers.get(replica) or FollowerProgress(replica, now_ms, in_sync=replica in partition.isr)
            for replica in partition.replicas
            if replica != self._broker_id
        }
        if partition.leader_epoch > self.leader_epoch:
            self.leader_epoch = partition.leader_epoch
            self.epoch_start_offset = self._log.log_end_offset
            for follower in self.followers.values():
                follower.lead_again(self.epoch_start_offset, now_ms, in_sync=follower.broker_id in partition.isr)
        self.isr.commit(partition.isr, partition.partition_epoch)
        self._count()
        return self._advance(now_ms)

    def _expand(self, follower: FollowerProgress) -> None:
        """Ask to take in a follower that has all that is committed, and all from before our epoch.

        What lies between our high watermark and the start of our epoch may be committed too: we do not know how far
        the leader before us got (KAFKA-7128).
        """
        if (
            self.isr.pending is None
            and follower.offset >= self.high_watermark
            and follower.offset >= self.epoch_start_offset
            and self.is_eligible(follower)
        ):
            self._propose(self.isr.committed | {follower.broker_id})

    def _propose(self, isr: frozenset[int]) -> None:
        self.isr.propose(
            [(replica, self._known_epoch(replica)) for replica in self.replicas if replica in isr], self.leader_epoch
        )
        self._count()

    def _known_epoch(self, replica: int) -> int:
        follower = self.followers.get(replica)
        return self._broker_epoch if follower is None else follower.known_broker_epoch

    # --- the high watermark

    def _count(self) -> None:
        """After a change of the ISR: work out what the hot calls would else have to, each time."""
        self._is_under_min = len(self.isr.committed) < self.min_isr
        maximal = self.isr.maximal
        self._counted = tuple(f for f in self.followers.values() if f.broker_id in maximal)
        self._outside = tuple(f for f in self.followers.values() if f.broker_id not in maximal)

    def _advance(self, now_ms: int) -> bool:
        """Raise the high watermark as far as is safe; HOT.

        Under the minimum of in-sync replicas it stays: what is committed must be on that many, so that those who left
        the ISR last can still be elected (KIP-966).
        """
        if self._is_under_min:
            return False
        log = self._log
        own_offset = log.recovery_point if self._flushes else log.log_end_offset
        if own_offset <= self.high_watermark:
            return False
        mark = safe_offset(own_offset, self._counted)
        if self._outside and mark > self.high_watermark:
            mark = safe_offset(mark, [f for f in self._outside if self._is_joining(f, now_ms)])
        if mark <= self.high_watermark:
            return False
        self.high_watermark = mark
        return True

    def _is_joining(self, follower: FollowerProgress, now_ms: int) -> bool:
        """Whether a follower outside the ISR keeps pace and may come in: then it is waited for, too.

        Else, where the leader alone is in sync, the high watermark would always be ahead of a follower that has just
        come level, and it could never join.
        """
        lag_max_ms = self._settings.replica_lag_time_max_ms
        return follower.is_caught_up(self._log.log_end_offset, now_ms, lag_max_ms) and self.is_eligible(follower)
