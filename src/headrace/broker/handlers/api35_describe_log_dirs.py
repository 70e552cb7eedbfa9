"""DescribeLogDirs, key 35.

Versions: 1-5.
Behaviour: for each log dir its path, the room on its volume, and the partitions in it with their size on disk; all of
them, or those that are asked for. A dir that is offline is told as KAFKA_STORAGE_ERROR without its partitions.
Replicas count whoever leads them. One that is on its way to another dir is told in both, in the new one as a future
replica with the number of offsets it lacks.
Deviations: no dir is cordoned.
KIPs: 113, 827 room on the volume (v4), 1066 cordoned dirs (v5).
"""

from __future__ import annotations

import asyncio
import os.path
from collections import defaultdict
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.model.errors import ErrorCode, StorageFault
from headrace.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.broker.partition import Partition
    from headrace.storage.files import Space
    from headrace.storage.log import Log
    from headrace.storage.log_dir import LogDir


async def handle(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe every log dir."""
    broker = call.broker
    loop = asyncio.get_running_loop()
    log_dirs = broker.store.log_dirs
    # A volume that hangs (a network mount) must not hang the loop.
    rooms = await loop.run_in_executor(broker.readers, lambda: [_space(log_dir) for log_dir in log_dirs])
    asked = _asked(request)
    wanted = [one for one in broker.partitions if asked is None or (one.topic, one.index) in asked]
    described = [_described(log_dir, room, wanted) for log_dir, room in zip(log_dirs, rooms, strict=True)]
    return DescribeLogDirsResponse(results=(*described, *map(_offline, broker.store.failed_dirs)))


def _asked(request: DescribeLogDirsRequest) -> set[tuple[str, int]] | None:
    """The partitions that are asked for, None for all."""
    if request.topics is None:
        return None
    return {(topic.topic, index) for topic in request.topics for index in topic.partitions}


def _space(log_dir: LogDir) -> Space | None:
    """The room on a dir's volume; None where the disk does not answer any more."""
    try:
        return log_dir.space() if log_dir.online else None
    except StorageFault:
        return None


def _described(log_dir: LogDir, room: Space | None, wanted: Sequence[Partition]) -> DescribeLogDirsResult:
    path = os.path.abspath(log_dir.path)  # noqa: PTH100 - as written in the settings, links and all
    if room is None or not log_dir.online:
        return _offline(path)
    here = [partition for partition in wanted if log_dir.logs.get(partition.log.name) is partition.log]
    rows = [(partition, _row(partition)) for partition in here]
    rows += [
        (partition, _future_row(partition, log_dir.futures[partition.log.name]))
        for partition in wanted
        if partition.log.name in log_dir.futures
    ]
    return DescribeLogDirsResult(log_dir=path, topics=_topics(rows), total_bytes=room.total, usable_bytes=room.usable)


def _offline(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=path)


def _row(partition: Partition) -> DescribeLogDirsPartition:
    log = partition.log
    return DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=log.size_bytes,
        offset_lag=max(log.high_watermark - log.log_end_offset, 0),
    )


def _future_row(partition: Partition, log: Log) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=log.size_bytes,
        offset_lag=partition.log.log_end_offset - log.log_end_offset,
        is_future_key=True,
    )


def _topics(rows: Iterable[tuple[Partition, DescribeLogDirsPartition]]) -> tuple[DescribeLogDirsTopic, ...]:
    by_topic: defaultdict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for partition, row in rows:
        by_topic[partition.topic].append(row)
    return tuple(DescribeLogDirsTopic(name=name, partitions=tuple(told)) for name, told in by_topic.items())


API = Api(key=35, low=1, high=5, handle=handle)
