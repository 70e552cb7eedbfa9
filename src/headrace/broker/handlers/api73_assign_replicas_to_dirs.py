"""AssignReplicasToDirs, key 73.

Versions: 0.
Behaviour: a broker with several log dirs tells in which of them it keeps which replica, so that it is known what a dir
that fails takes with it.
KIPs: 858.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.controller import DirectoryAssignment, assign_replicas_to_dirs
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


async def handle(call: Call, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    """Note where replicas are."""
    controller = call.broker.controller
    command = partial(
        assign_replicas_to_dirs,
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        wanted=[
            DirectoryAssignment(directory=directory.id, topic_id=topic.topic_id, partition=one.partition_index)
            for directory in request.directories
            for topic in directory.topics
            for one in topic.partitions
        ],
        policy=controller.policy,
    )
    try:
        codes = await controller.run(command)
    except KafkaError as error:
        return _refused(request, error)
    return AssignReplicasToDirsResponse(directories=_directories(request, iter(codes)))


def _directories(request: AssignReplicasToDirsRequest, codes: Iterator[ErrorCode]) -> tuple[ResponseDirectoryData, ...]:
    """The request's own shape, with a code at each leaf."""
    return tuple(
        ResponseDirectoryData(
            id=directory.id,
            topics=tuple(
                ResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        ResponsePartitionData(partition_index=one.partition_index, error_code=int(next(codes)))
                        for one in topic.partitions
                    ),
                )
                for topic in directory.topics
            ),
        )
        for directory in request.directories
    )


def _refused(_: AssignReplicasToDirsRequest, error: KafkaError) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=int(error.code))


API = Api(key=73, low=0, high=0, handle=handle, controller=True, refuse=_refused)
