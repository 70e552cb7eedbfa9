"""Telling the controller in which log dir a replica is (KIP-858), where a broker has several.

When a log dir fails the controller must know which replicas are gone with it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.broker.partitions import assigned_directory
from headrace.model.errors import KafkaError
from headrace.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)

if TYPE_CHECKING:
    from uuid import UUID

    from headrace.broker.broker import Broker
    from headrace.broker.held_partition import HeldPartition
    from headrace.cores.metadata import PartitionState

logger = logging.getLogger(__name__)

ASSIGN_REPLICAS_TO_DIRS = 73
RETRY_S = 0.5
ASSIGNMENTS_MAX = 2250
"""How many partitions one request may speak of, by Kafka's limit."""


class DirectoryReports:
    """What the controller does not know yet of where our replicas are."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._unknown: dict[tuple[UUID, int], UUID] = {}
        self._promised: dict[tuple[UUID, int], UUID] = {}
        """Where replicas will be that are about to move; the controller is told before they do."""
        self._task: asyncio.Task[None] | None = None

    def compare(self, partition: HeldPartition, state: PartitionState) -> None:
        """Note a replica that is in another dir than the metadata says."""
        if len(self._broker.store.log_dirs) == 1:
            return
        log_dir = self._broker.partitions.log_dir_of(partition)
        actual = log_dir.meta.directory_id if log_dir.meta is not None and log_dir.online else None
        key = (partition.topic_id, partition.index)
        actual = self._promised.get(key, actual)
        if actual is None or assigned_directory(state, self._broker.node_id) in {None, actual}:
            self._unknown.pop(key, None)
        else:
            self._unknown[key] = actual

    def promise(self, partition: HeldPartition, directory: UUID) -> None:
        """A replica is about to move to a dir: tell that it is there, until it is or `forget` takes it back."""
        self._promised[partition.topic_id, partition.index] = directory
        self._review(partition)

    def forget(self, partition: HeldPartition) -> None:
        """Tell where a replica is, rather than where it should have moved to."""
        if self._promised.pop((partition.topic_id, partition.index), None) is not None:
            self._review(partition)

    def _review(self, partition: HeldPartition) -> None:
        state = self._broker.metadata.partition(partition.topic_id, partition.index)
        if state is not None:
            self.compare(partition, state)
            self.settle()

    def settle(self) -> None:
        """After all changes that came together: tell what there is to tell."""
        if self._unknown and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._tell(), name="assign-directories")

    def stop(self) -> None:
        """Tell nothing more."""
        if self._task is not None:
            self._task.cancel()

    async def _tell(self) -> None:
        """Tell until the metadata has it: that is when `compare` takes a replica out."""
        while self._unknown:
            try:
                response = await self._broker.control.ask(ASSIGN_REPLICAS_TO_DIRS, self._request())
                if response.error_code:
                    logger.info("directories_refused code=%d", response.error_code)
            except KafkaError as error:
                logger.info("directories_not_told reason=%s", error)
            await asyncio.sleep(RETRY_S)
        self._task = None

    def _request(self) -> AssignReplicasToDirsRequest:
        by_directory: dict[UUID, dict[UUID, list[int]]] = {}
        for (topic_id, index), directory in list(self._unknown.items())[:ASSIGNMENTS_MAX]:
            by_directory.setdefault(directory, {}).setdefault(topic_id, []).append(index)
        return AssignReplicasToDirsRequest(
            broker_id=self._broker.node_id,
            broker_epoch=self._broker.broker_epoch,
            directories=tuple(
                RequestDirectoryData(
                    id=directory,
                    topics=tuple(
                        RequestTopicData(
                            topic_id=topic_id,
                            partitions=tuple(RequestPartitionData(partition_index=index) for index in indexes),
                        )
                        for topic_id, indexes in topics.items()
                    ),
                )
                for directory, topics in by_directory.items()
            ),
        )
