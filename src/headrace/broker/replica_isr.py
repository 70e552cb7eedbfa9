"""Changes of in-sync replicas, gathered and put to the controller (AlterPartition, KIP-497).

One request is under way at a time, so that none overtakes the one before; what comes up meanwhile goes with the next.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.cores.replication.messages import AlterAnswer
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)

if TYPE_CHECKING:
    from uuid import UUID

    from headrace.broker.broker import Broker
    from headrace.broker.led_partition import LedPartition
    from headrace.cores.replication.messages import AlterPartition
    from headrace.wire.messages.alter_partition import AlterPartitionResponse

logger = logging.getLogger(__name__)

ALTER_PARTITION = 56
PURPOSE = "replicas"
BACKOFF_S = 0.05
"""A pause after a refusal, so that leader and controller, each waiting for the other's news, do not ask in circles."""


class IsrChanges:
    """What this broker's leaders want changed."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[tuple[UUID, int], tuple[LedPartition, AlterPartition]] = {}
        self._task: asyncio.Task[None] | None = None
        self.shrinks = 0
        """How often replicas were taken out of the in-sync ones."""
        self.expands = 0
        """How often some came back."""

    def want(self, partition: LedPartition, request: AlterPartition) -> None:
        """Ask the controller for another ISR; one that the same partition asked for before is overtaken."""
        self._waiting[partition.topic_id, partition.index] = (partition, request)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="alter-partition")

    def stop(self) -> None:
        """Ask for nothing more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, {}
            answers = await self._ask(asked)
            if any(answer.error is not ErrorCode.NONE for answer in answers.values()):
                await asyncio.sleep(BACKOFF_S)
            for key, (partition, request) in asked.items():
                answer = answers.get(key, AlterAnswer(error=ErrorCode.UNKNOWN_SERVER_ERROR))
                logger.info(
                    "isr_change partition=%s-%d isr=%s outcome=%s",
                    partition.topic,
                    partition.index,
                    ",".join(map(str, request.broker_ids)),
                    answer.error.name,
                )
                self._count(partition, request, answer)
                partition.isr_answered(request, answer)
        self._task = None

    def _count(self, partition: LedPartition, request: AlterPartition, answer: AlterAnswer) -> None:
        if answer.error is ErrorCode.NONE and partition.replicated is not None:
            before, after = len(partition.replicated.isr.committed), len(request.broker_ids)
            self.shrinks += after < before
            self.expands += after > before

    async def _ask(
        self, asked: dict[tuple[UUID, int], tuple[LedPartition, AlterPartition]]
    ) -> dict[tuple[UUID, int], AlterAnswer]:
        """The controller's answers; where there is none, an error that makes the leader ask again."""
        request = _request(self._broker, {key: change for key, (_, change) in asked.items()})
        try:
            response = await self._broker.control.ask(ALTER_PARTITION, request, purpose=PURPOSE)
        except KafkaError as error:
            return dict.fromkeys(asked, AlterAnswer(error=error.code))
        if response.error_code:
            return dict.fromkeys(asked, AlterAnswer(error=_code(response.error_code)))
        return _answers(response)


def _request(broker: Broker, changes: dict[tuple[UUID, int], AlterPartition]) -> AlterPartitionRequest:
    by_topic: dict[UUID, list[RequestPartitionData]] = {}
    for (topic_id, index), change in changes.items():
        by_topic.setdefault(topic_id, []).append(
            RequestPartitionData(
                partition_index=index,
                leader_epoch=change.leader_epoch,
                partition_epoch=change.partition_epoch,
                new_isr_with_epochs=tuple(
                    BrokerState(broker_id=broker_id, broker_epoch=epoch) for broker_id, epoch in change.isr
                ),
            )
        )
    return AlterPartitionRequest(
        broker_id=broker.node_id,
        broker_epoch=broker.broker_epoch,
        topics=tuple(RequestTopicData(topic_id=topic, partitions=tuple(rows)) for topic, rows in by_topic.items()),
    )


def _answers(response: AlterPartitionResponse) -> dict[tuple[UUID, int], AlterAnswer]:
    return {
        (topic.topic_id, told.partition_index): AlterAnswer(
            error=_code(told.error_code),
            leader_epoch=told.leader_epoch,
            partition_epoch=told.partition_epoch,
            isr=tuple(told.isr),
        )
        for topic in response.topics
        for told in topic.partitions
    }


def _code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
