"""AlterReplicaLogDirs, key 34.

Versions: 1-2.
Behaviour: begins to move this broker's replicas to other log dirs of its own; DescribeLogDirs tells how far they are.
A replica that is there already stays, one that is on its way elsewhere turns round. A replica that is not here yet is
REPLICA_NOT_AVAILABLE, and will be made in that dir when it comes; a dir that the settings do not name is
LOG_DIR_NOT_FOUND, one that failed KAFKA_STORAGE_ERROR, as is any move while some dir of this broker has failed.
KIPs: 113, 858 the controller is told where replicas are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.model.errors import KafkaError
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


async def handle(call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Begin every move that can be, and say of each whether it was."""
    wanted = {
        (topic.name, index): wanted_dir.path
        for wanted_dir in request.dirs
        for topic in wanted_dir.topics
        for index in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, index), path in wanted.items():
        code = await _begin(call.broker, topic, index, path)
        results.setdefault(topic, []).append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(rows)) for name, rows in results.items()
        )
    )


async def _begin(broker: Broker, topic: str, index: int, path: str) -> int:
    try:
        await broker.replicas.moves.move(topic, index, path)
    except KafkaError as error:
        return int(error.code)
    return 0


API = Api(key=34, low=1, high=2, handle=handle)
