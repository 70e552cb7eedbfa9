"""The share partitions led here, each read from the share coordinator when it is first asked for."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.broker import share_persister
from headrace.broker.share_partition_leader import SharePartitionLeader
from headrace.broker.share_persister import told_to_consumers
from headrace.broker.share_settings import EARLIEST, offset_reset, reads_committed
from headrace.cores.share_partition import StateWrite
from headrace.cores.share_state import NO_OFFSET
from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.duration import duration_ms
from headrace.settings.group import BY_DURATION

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.cores.share_state import SharePartitionId

logger = logging.getLogger(__name__)


class SharePartitions:
    """Leaders by share partition."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._leaders: dict[SharePartitionId, SharePartitionLeader] = {}
        self._loading: dict[SharePartitionId, asyncio.Task[SharePartitionLeader]] = {}

    def find(self, share_id: SharePartitionId) -> SharePartitionLeader | None:
        """A share partition that is being served; None if nobody reads it, or its topic has gone."""
        leader = self._leaders.get(share_id)
        if leader is None:
            return None
        if self._broker.partitions.find(share_id[1:]) is not leader.partition or not leader.is_current:
            self._drop(leader)
            return None
        return leader

    def missing(self, share_id: SharePartitionId) -> KafkaError:
        """Why a share partition is not being served here."""
        try:
            self._require(share_id)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                return error
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The share partition is not read by anybody.")

    async def lead(self, share_id: SharePartitionId) -> SharePartitionLeader:
        """The leader of a share partition, with its state read if need be; KafkaError if there can be none."""
        leader = self.find(share_id)
        if leader is not None:
            return leader
        partition = self._require(share_id)
        loading = self._loading.get(share_id)
        if loading is None:
            loading = asyncio.get_running_loop().create_task(self._load(share_id, partition))
            self._loading[share_id] = loading
            loading.add_done_callback(lambda _: self._loading.pop(share_id, None))
        # Somebody who goes away must not take the load from those who wait for it too.
        return await asyncio.shield(loading)

    def _require(self, share_id: SharePartitionId) -> Partition:
        _, topic_id, index = share_id
        partition = self._broker.partitions.find((topic_id, index))
        if partition is not None and partition.is_led:
            return partition
        if self._broker.metadata.partition(topic_id, index) is not None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "The share partition is led elsewhere.")
        code = (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic_id in self._broker.metadata.topics_by_id
            else ErrorCode.UNKNOWN_TOPIC_ID
        )
        raise KafkaError(code, "This server does not host this topic-partition.")

    async def _load(self, share_id: SharePartitionId, partition: Partition) -> SharePartitionLeader:
        try:
            state = await share_persister.read(self._broker, share_id, partition.leader_epoch)
            is_new = state.start_offset == NO_OFFSET
            start_offset = await self._first_offset(share_id[0], partition) if is_new else state.start_offset
            leader = SharePartitionLeader(self._broker, partition, share_id, state, start_offset, self._drop)
            if is_new:
                # Kafka keeps the first offset to itself until something is acknowledged; written down at once, a
                # restart in between does not skip the records that came meanwhile.
                await leader.write_down(
                    StateWrite(number=None, start_offset=start_offset, delivery_complete_count=0, batches=())
                )
        except KafkaError as error:
            raise told_to_consumers(error) from error
        # The partition may have moved while its state was read.
        leader.check_current()
        leader.follow_log_start()
        self._leaders[share_id] = leader
        return leader

    async def _first_offset(self, group_id: str, partition: Partition) -> int:
        """Where a group that never read a partition begins, by its settings."""
        log = partition.log
        strategy = offset_reset(self._broker, group_id)
        if strategy == EARLIEST:
            return log.log_start_offset
        latest = partition.last_stable_offset if reads_committed(self._broker, group_id) else log.high_watermark
        if strategy.startswith(BY_DURATION):
            try:
                since_ms = self._broker.clock() - duration_ms(strategy.removeprefix(BY_DURATION))
            except ValueError as fault:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"share.auto.offset.reset: {fault}") from None
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._broker.readers, log.offset_for_timestamp, max(since_ms, 0))
            if found is not None:
                return min(found[1], latest)
        return latest

    def _drop(self, leader: SharePartitionLeader) -> None:
        """Forget what is known here; who asks next reads it again."""
        if self._leaders.get(leader.share_id) is leader:
            logger.info("share_partition_dropped partition=%s", leader.share_id)
            del self._leaders[leader.share_id]
        leader.close()

    def drop(self, share_id: SharePartitionId) -> None:
        """Forget one share partition, for its state was set anew."""
        leader = self._leaders.get(share_id)
        if leader is not None:
            self._drop(leader)

    def drop_all(self) -> None:
        """Forget all share partitions, for the broker stops; who waits for their records looks again."""
        for leader in tuple(self._leaders.values()):
            self._drop(leader)

    def drop_group(self, group_id: str) -> None:
        """Forget the share partitions of a group that nobody reads any more."""
        for leader in [leader for share_id, leader in self._leaders.items() if share_id[0] == group_id]:
            self._drop(leader)
