"""Fetch (1) of the metadata log, and FetchSnapshot (59), as the core and the wire have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.coordination.quorum.control_batches import voters_in
from headrace.coordination.quorum.wire_terms import (
    ALL_OF_IT,
    METADATA_TOPIC_ID,
    PARTITION,
    directory_on_wire,
    error_code,
    leader_endpoints,
    leader_nodes,
    only_partition,
    replica_key,
)
from headrace.cores.metadata import METADATA_TOPIC
from headrace.cores.raft import messages as core
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.records.batch import CorruptBatch, check_batch, split_batches
from headrace.wire.messages import fetch, fetch_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC_IDS_FIRST = 13
"""Versions of Fetch from this on know topics by id."""

# Fetch


def fetch_request_to_wire(request: core.FetchRequest, max_bytes: int) -> fetch.FetchRequest:
    """What a follower or an observer sends."""
    partition = fetch.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=request.epoch,
        fetch_offset=request.fetch_offset,
        last_fetched_epoch=request.last_epoch,
        partition_max_bytes=max_bytes,
        replica_directory_id=directory_on_wire(request.replica),
        high_watermark=request.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=request.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=request.replica.id),
        max_wait_ms=request.max_wait_ms,
        min_bytes=0,
        max_bytes=max_bytes,
        topics=(fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, topic=METADATA_TOPIC, partitions=(partition,)),),
    )


def fetch_request_from_wire(message: fetch.FetchRequest, version: int) -> core.FetchRequest | None:
    """What a replica asks; None if it is about something else than the metadata."""
    if version >= TOPIC_IDS_FIRST:
        asked = only_partition(message.topics, lambda topic: topic.topic_id, METADATA_TOPIC_ID)
    else:
        asked = only_partition(message.topics, lambda topic: topic.topic)
    if asked is None or asked.partition != PARTITION:
        return None
    # Which field has the replica depends on the version; the other one has the default.
    replica_id = max(message.replica_state.replica_id, message.replica_id)
    return core.FetchRequest(
        cluster_id=message.cluster_id,
        replica=replica_key(replica_id, asked.replica_directory_id),
        epoch=asked.current_leader_epoch,
        fetch_offset=asked.fetch_offset,
        last_epoch=asked.last_fetched_epoch,
        max_wait_ms=message.max_wait_ms,
        high_watermark=asked.high_watermark,
    )


def fetch_response_to_wire(response: core.FetchResponse, listener: str) -> fetch.FetchResponse:
    """What a leader answers; the records of its batches as they lie in the log."""
    if response.error in ALL_OF_IT:
        return fetch.FetchResponse(error_code=int(response.error))
    partition = fetch.PartitionData(
        partition_index=PARTITION,
        error_code=int(response.error),
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        diverging_epoch=_diverging_on_wire(response.diverging),
        current_leader=fetch.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.epoch),
        snapshot_id=_snapshot_id_on_wire(response.snapshot_id),
        aborted_transactions=None,
        records=b"".join(batch.records for batch in response.batches),
    )
    return fetch.FetchResponse(
        responses=(
            fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, topic=METADATA_TOPIC, partitions=(partition,)),
        ),
        node_endpoints=leader_nodes(response.leader_id, response.endpoints, listener, fetch.NodeEndpoint),
    )


def _diverging_on_wire(diverging: OffsetAndEpoch | None) -> fetch.EpochEndOffset:
    if diverging is None:
        return fetch.EpochEndOffset()
    return fetch.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)


def _snapshot_id_on_wire(snapshot_id: OffsetAndEpoch | None) -> fetch.SnapshotId:
    if snapshot_id is None:
        return fetch.SnapshotId()
    return fetch.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch)


def fetch_response_from_wire(message: fetch.FetchResponse, listener: str) -> core.FetchResponse | None:
    """What a leader answered; None if it makes no sense, damaged records included."""
    if message.error_code:
        return core.FetchResponse(error=error_code(message.error_code))
    told = only_partition(message.responses, lambda topic: topic.topic_id, METADATA_TOPIC_ID)
    if told is None:
        return None
    leader = told.current_leader
    try:
        batches = read_batches(told.records or b"")
    except CorruptBatch:
        return None
    diverging, snapshot_id = told.diverging_epoch, told.snapshot_id
    return core.FetchResponse(
        error=error_code(told.error_code),
        leader_id=leader.leader_id,
        epoch=leader.leader_epoch,
        endpoints=leader_endpoints(message.node_endpoints, leader.leader_id, listener),
        high_watermark=told.high_watermark,
        log_start_offset=told.log_start_offset,
        diverging=OffsetAndEpoch(diverging.end_offset, diverging.epoch) if diverging.epoch >= 0 else None,
        snapshot_id=OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch) if snapshot_id.epoch >= 0 else None,
        batches=tuple(batches),
    )


def read_batches(records: bytes | memoryview) -> Sequence[core.Batch]:
    """The whole batches in what a fetch brought, checked; a partial one at the end is left out."""
    view = memoryview(records)
    batches = []
    for position, _ in split_batches(view):
        header = check_batch(view, position)
        batch = view[position : position + header.size]
        voters = voters_in(batch) if header.is_control else None
        count = header.last_offset_delta + 1
        batches.append(core.Batch(header.base_offset, count, header.leader_epoch, voters, batch))
    return batches


# FetchSnapshot


def snapshot_request_to_wire(request: core.FetchSnapshotRequest) -> fetch_snapshot.FetchSnapshotRequest:
    """What a follower sends that is behind the leader's log."""
    partition = fetch_snapshot.RequestPartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=request.epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=request.snapshot_id.offset, epoch=request.snapshot_id.epoch),
        position=request.position,
        replica_directory_id=directory_on_wire(request.replica),
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=request.cluster_id,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=(fetch_snapshot.RequestTopicSnapshot(name=METADATA_TOPIC, partitions=(partition,)),),
    )


def snapshot_request_from_wire(message: fetch_snapshot.FetchSnapshotRequest) -> core.FetchSnapshotRequest | None:
    """Which piece is asked for; None if it is of something else than the metadata."""
    asked = only_partition(message.topics, lambda topic: topic.name)
    if asked is None or asked.partition != PARTITION:
        return None
    return core.FetchSnapshotRequest(
        cluster_id=message.cluster_id,
        replica=replica_key(message.replica_id, asked.replica_directory_id),
        epoch=asked.current_leader_epoch,
        snapshot_id=OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch),
        position=asked.position,
        max_bytes=message.max_bytes,
    )


def snapshot_response_to_wire(
    response: core.FetchSnapshotResponse, listener: str
) -> fetch_snapshot.FetchSnapshotResponse:
    """A piece of a snapshot."""
    if response.error in ALL_OF_IT:
        return fetch_snapshot.FetchSnapshotResponse(error_code=int(response.error))
    found = response.snapshot_id
    assert isinstance(response.data, bytes | memoryview)
    partition = fetch_snapshot.ResponsePartitionSnapshot(
        index=PARTITION,
        error_code=int(response.error),
        snapshot_id=fetch_snapshot.SnapshotId(
            end_offset=found.offset if found is not None else 0, epoch=found.epoch if found is not None else 0
        ),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.epoch),
        size=response.size,
        position=response.position,
        unaligned_records=response.data,
    )
    return fetch_snapshot.FetchSnapshotResponse(
        topics=(fetch_snapshot.ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=(partition,)),),
        node_endpoints=leader_nodes(response.leader_id, response.endpoints, listener, fetch_snapshot.NodeEndpoint),
    )


def snapshot_response_from_wire(
    message: fetch_snapshot.FetchSnapshotResponse, listener: str
) -> core.FetchSnapshotResponse | None:
    """A piece of a snapshot; None if the answer makes no sense."""
    if message.error_code:
        return core.FetchSnapshotResponse(error=error_code(message.error_code))
    told = only_partition(message.topics, lambda topic: topic.name)
    if told is None:
        return None
    leader = told.current_leader
    return core.FetchSnapshotResponse(
        error=error_code(told.error_code),
        leader_id=leader.leader_id,
        epoch=leader.leader_epoch,
        endpoints=leader_endpoints(message.node_endpoints, leader.leader_id, listener),
        snapshot_id=OffsetAndEpoch(told.snapshot_id.end_offset, told.snapshot_id.epoch),
        size=told.size,
        position=told.position,
        data=told.unaligned_records,
    )
