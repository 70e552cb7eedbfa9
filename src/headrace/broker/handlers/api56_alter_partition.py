"""AlterPartition, key 56.

Versions: 2-3.
Behaviour: the leader of a partition asks for other in-sync replicas; the answer has the partition as it is then. Wrong
epochs, replicas that do not serve or are other processes than the leader took them for are refused one by one.
KIPs: 497, 704 recovery state, 841, 903 the replicas' epochs (v3).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.controller import AlteredPartition, IsrChange, alter_partitions
from headrace.cores.controller.replicas import UNTOLD_EPOCH
from headrace.model.errors import KafkaError
from headrace.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

_EPOCHS_FIRST = 3


async def handle(call: Call, request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Change in-sync replicas."""
    wanted = [
        IsrChange(
            topic_id=topic.topic_id,
            partition=one.partition_index,
            leader_epoch=one.leader_epoch,
            partition_epoch=one.partition_epoch,
            isr=_isr(one, call.version),
            leader_recovery_state=one.leader_recovery_state,
        )
        for topic in request.topics
        for one in topic.partitions
    ]
    controller = call.broker.controller
    command = partial(
        alter_partitions,
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        wanted=wanted,
        policy=controller.policy,
    )
    try:
        altered = await controller.run(command)
    except KafkaError as error:
        return _refused(request, error)
    return AlterPartitionResponse(topics=_topics(altered))


def _isr(one: RequestPartitionData, version: int) -> Sequence[tuple[int, int]]:
    if version >= _EPOCHS_FIRST:
        return [(broker.broker_id, broker.broker_epoch) for broker in one.new_isr_with_epochs]
    return [(broker_id, UNTOLD_EPOCH) for broker_id in one.new_isr]


def _topics(altered: Iterable[AlteredPartition]) -> tuple[ResponseTopicData, ...]:
    topics: dict[UUID, list[ResponsePartitionData]] = {}
    for one in altered:
        topics.setdefault(one.topic_id, []).append(_partition(one))
    return tuple(
        ResponseTopicData(topic_id=topic_id, partitions=tuple(partitions)) for topic_id, partitions in topics.items()
    )


def _partition(one: AlteredPartition) -> ResponsePartitionData:
    state = one.state
    if state is None:
        return ResponsePartitionData(partition_index=one.partition, error_code=int(one.error))
    return ResponsePartitionData(
        partition_index=one.partition,
        error_code=int(one.error),
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=state.leader_recovery_state,
        partition_epoch=state.partition_epoch,
    )


def _refused(_: AlterPartitionRequest, error: KafkaError) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=int(error.code))


API = Api(key=56, low=2, high=3, handle=handle, controller=True, refuse=_refused)
