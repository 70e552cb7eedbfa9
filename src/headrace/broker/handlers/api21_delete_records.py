"""DeleteRecords, key 21.

Versions: 0-2.
Behaviour: moves the start of a partition up to an offset, or with -1 to the high watermark; what lies before it cannot
be read any more and its segments go with the next retention run. The answer is sent when the new start is on disk, so a
crash does not bring the records back, and all live replicas have moved theirs; if that takes longer than the request
allows it is REQUEST_TIMED_OUT. It tells the lowest start of them all. A topic that is only compacted refuses
(POLICY_VIOLATION), as do the topics of coordinators (INVALID_TOPIC_EXCEPTION).
KIPs: 107.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.storage.log_dir import LogDir

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1
TIMEOUT_MS_MAX = 24 * 3600 * 1000


async def handle(call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Move the start of each partition, then make it last."""
    broker = call.broker
    moved: dict[tuple[str, int], Partition] = {}
    errors: dict[tuple[str, int], ErrorCode] = {}
    waiting: dict[tuple[str, int], asyncio.Future[KafkaError | None]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            try:
                moved[key] = _move_start(broker, *key, asked.offset, waiting)
            except KafkaError as error:
                errors[key] = error.code
    dirs = {key: broker.partitions.log_dir_of(partition) for key, partition in moved.items()}
    failed = await _write_down(broker, {id(log_dir): log_dir for log_dir in dirs.values()}.values())
    errors.update({key: ErrorCode.KAFKA_STORAGE_ERROR for key, log_dir in dirs.items() if log_dir in failed})
    errors.update(await _replicas_followed(waiting, request.timeout_ms))
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    _result(asked.partition_index, moved, errors, (topic.name, asked.partition_index))
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


async def _replicas_followed(
    waiting: dict[tuple[str, int], asyncio.Future[KafkaError | None]], timeout_ms: int
) -> dict[tuple[str, int], ErrorCode]:
    """Wait until the other replicas start later too; what went wrong, by partition."""
    if waiting:
        await asyncio.wait(waiting.values(), timeout=max(0, min(timeout_ms, TIMEOUT_MS_MAX)) / 1000)
    errors = {}
    for key, followed in waiting.items():
        if not followed.done():
            errors[key] = ErrorCode.REQUEST_TIMED_OUT
        elif (error := followed.result()) is not None:
            errors[key] = error.code
    return errors


def _move_start(
    broker: Broker,
    topic: str,
    index: int,
    offset: int,
    waiting: dict[tuple[str, int], asyncio.Future[KafkaError | None]],
) -> Partition:
    """Let one partition start later; in memory, for now. Where followers have to do the same that is in `waiting`."""
    partition = broker.partitions.require_led(topic, index)
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}")
    if partition.fault is not None:
        raise partition.fault.with_traceback(None)
    if not partition.config.cleanup_delete:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Records of partition {topic}-{index} can not be deleted due to the configured policy",
        )
    log = partition.log
    followed: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()

    def done(error: KafkaError | None) -> None:
        if not followed.done():
            followed.set_result(error)

    partition.delete_before(log.high_watermark if offset == HIGH_WATERMARK else offset, done)
    if not followed.done():
        waiting[topic, index] = followed
    return partition


async def _write_down(broker: Broker, log_dirs: Collection[LogDir]) -> list[LogDir]:
    """Write the log starts of these dirs to disk; gives those where that failed."""
    loop = asyncio.get_running_loop()
    failed: list[LogDir] = []
    for log_dir in log_dirs:
        try:
            await loop.run_in_executor(broker.readers, log_dir.write_checkpoints)
        except StorageFault:
            failed.append(log_dir)
    return failed


def _result(
    index: int,
    moved: dict[tuple[str, int], Partition],
    errors: dict[tuple[str, int], ErrorCode],
    key: tuple[str, int],
) -> DeleteRecordsPartitionResult:
    if key in errors:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=int(errors[key])
        )
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=moved[key].low_watermark)


API = Api(key=21, low=0, high=2, handle=handle)
