"""Markers: how the partitions of a transaction learn that it has ended.

`write_markers` serves both sides: the coordinator calls it for the partitions it leads itself of a transaction it has
decided, and WriteTxnMarkers for the coordinator of another broker. A marker counts when it is as safe as an
acknowledged record.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition

TopicPartition = tuple[str, int]

NOT_READY = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
"""What a group coordinator says that cannot take a marker yet; who sent the marker asks about partitions."""


class Marker(Struct, frozen=True, kw_only=True):
    """The end of one producer's transaction."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int


async def write_markers(
    broker: Broker, marker: Marker, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Write a marker to each partition and wait until it is safe; what became of each."""
    results: dict[TopicPartition, ErrorCode] = {}
    pending: list[tuple[TopicPartition, asyncio.Future[KafkaError | None]]] = []
    # All are appended before any is waited for: they share the flush, and nothing comes between them.
    for place in partitions:
        try:
            partition, end_offset = _append(broker, marker, place)
        except KafkaError as error:
            results[place] = ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in NOT_READY else error.code
            continue
        pending.append((place, _safety(partition, end_offset)))
    timeout_ms: int = broker.config["request.timeout.ms"]
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_ms / 1000):
            for _, safe in pending:
                await safe
    for place, safe in pending:
        results[place] = _told(safe)
    return results


def _told(safe: asyncio.Future[KafkaError | None]) -> ErrorCode:
    if not safe.done() or safe.cancelled():
        # The replicas took too long. The marker may be kept all the same, and then the next one changes nothing.
        return ErrorCode.REQUEST_TIMED_OUT
    problem = safe.result()
    if problem is None or problem.code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
        # That replicas have gone since changes nothing: what is committed was on enough of them.
        return ErrorCode.NONE
    return problem.code


def _append(broker: Broker, marker: Marker, place: TopicPartition) -> tuple[Partition, int]:
    """The partition and where its log ends with the marker."""
    topic, index = place
    partition = broker.partitions.require_led(topic, index)
    partition.check_enough_replicas()
    if topic == broker.groups.topic:
        # Its coordinator must see the marker in the order of the log: offsets count, or are forgotten, from here on.
        end_offset = broker.groups.shard_at(index).end_transaction(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
        return partition, end_offset
    appended = partition.append_end_marker(
        marker.producer_id,
        marker.producer_epoch,
        commit=marker.commit,
        coordinator_epoch=marker.coordinator_epoch,
        now_ms=broker.clock(),
        transaction_version=marker.transaction_version,
    )
    return partition, appended.end_offset


def _safety(partition: Partition, end_offset: int) -> asyncio.Future[KafkaError | None]:
    """Comes when everything below the offset is safe, or with the reason why it will not be."""
    safe: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()

    def settle(error: KafkaError | None) -> None:
        if not safe.done():
            safe.set_result(error)

    partition.when_safe(end_offset, settle)
    return safe
