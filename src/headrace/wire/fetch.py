"""Fetch by hand (API key 1, versions 4-18): the request every consumer and follower lives on.

A flexible request (12 and later) is read with `struct`; an older one through the generic codec. A response is a list
of buffers for one `writelines`: what we write ourselves, and between it the records as the log handed them out,
untouched and uncopied.
"""

import struct
from collections.abc import Sequence, Sized
from typing import Any

from msgspec import Struct

from headrace.model.errors import MalformedRequest
from headrace.wire.codec import decode_request
from headrace.wire.messages.fetch import FetchRequest
from headrace.wire.primitives import (
    BAD_BYTES,
    Budget,
    Buffer,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tag,
    read_uvarint,
    skip_tags,
    write_compact_count,
    write_compact_nullable_string,
    write_compact_string,
    write_count,
    write_string,
    write_tags,
    write_uvarint,
)
from headrace.wire.topics import Topic, read_topic, topic_bytes

FETCH = 1
LOG_START_FIRST = 5
SESSIONS_FIRST = 7
PREFERRED_REPLICA_FIRST = 11
FLEXIBLE_FIRST = 12
TOPIC_ID_FIRST = 13
REPLICA_STATE_FIRST = 15
ENDPOINTS_FIRST = 16

CLUSTER_ID_TAG = 0
REPLICA_STATE_TAG = 1


class FetchPartition(Struct, frozen=True, gc=False):
    """What is asked of one partition."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int


class FetchCommand(Struct, frozen=True, gc=False):
    """A fetch request; topics and partitions in the order they came."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[Topic, list[FetchPartition]]]
    forgotten: list[tuple[Topic, list[int]]]
    rack_id: str
    cluster_id: str | None
    replica_epoch: int


_REPLICA = struct.Struct(">i")
_FIXED = struct.Struct(">iiibii")
_PARTITION = struct.Struct(">iiqiqi")
_REPLICA_STATE = struct.Struct(">iq")


def parse_fetch(view: Buffer, position: int, version: int) -> FetchCommand:
    """The fetch request whose body starts at `position` and fills the rest of `view`."""
    if version < FLEXIBLE_FIRST:
        return _from_message(decode_request(FETCH, version, view, position))
    try:
        command, end = _parse_flexible(view, position, version)
    except BAD_BYTES as error:
        raise MalformedRequest(f"not a fetch request: {error}") from error
    if end != len(view):
        raise MalformedRequest(f"{len(view) - end} bytes after the end of the fetch request")
    return command


def _from_message(message: FetchRequest) -> FetchCommand:
    return FetchCommand(
        replica_id=message.replica_id,
        max_wait_ms=message.max_wait_ms,
        min_bytes=message.min_bytes,
        max_bytes=message.max_bytes,
        isolation_level=message.isolation_level,
        session_id=message.session_id,
        session_epoch=message.session_epoch,
        topics=[
            (
                topic.topic,
                [
                    FetchPartition(
                        each.partition,
                        each.current_leader_epoch,
                        each.fetch_offset,
                        each.last_fetched_epoch,
                        each.log_start_offset,
                        each.partition_max_bytes,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ],
        forgotten=[(topic.topic, list(topic.partitions)) for topic in message.forgotten_topics_data],
        rack_id=message.rack_id,
        cluster_id=message.cluster_id,
        replica_epoch=-1,
    )


def _parse_flexible(view: Buffer, at: int, version: int) -> tuple[FetchCommand, int]:
    budget = Budget()
    by_id = version >= TOPIC_ID_FIRST
    replica_id = replica_epoch = -1
    if version < REPLICA_STATE_FIRST:
        (replica_id,) = _REPLICA.unpack_from(view, at)
        at += 4
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = _FIXED.unpack_from(view, at)
    at += _FIXED.size
    topics, at = _read_topics(view, at, by_id, budget)
    # Almost always there is nothing forgotten, no rack and no tag: one byte each.
    forgotten, at = ([], at + 1) if view[at] == 1 else _read_forgotten(view, at, by_id, budget)
    rack_id, at = ("", at + 1) if view[at] == 1 else read_compact_string(view, at)
    cluster_id = None
    if view[at]:
        cluster_id, state, at = _read_tags(view, at, version, budget)
        if state is not None:
            replica_id, replica_epoch = state
    else:
        at += 1
    command = FetchCommand(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
        cluster_id,
        replica_epoch,
    )
    return command, at


def _read_topics(
    view: Buffer, at: int, by_id: bool, budget: Budget
) -> tuple[list[tuple[Topic, list[FetchPartition]]], int]:
    topics = []
    count, at = read_compact_count(view, at, budget, 3)
    for _ in range(count):
        topic, at = read_topic(view, at, by_id)
        partition_count, at = read_compact_count(view, at, budget, _PARTITION.size + 1)
        partitions = []
        for _ in range(partition_count):
            partitions.append(FetchPartition(*_PARTITION.unpack_from(view, at)))
            at += _PARTITION.size
            # The tags here are for tiered and directory bookkeeping between brokers, which nothing of ours reads.
            at = skip_tags(view, at, budget) if view[at] else at + 1
        topics.append((topic, partitions))
        at = skip_tags(view, at, budget) if view[at] else at + 1
    return topics, at


def _read_forgotten(view: Buffer, at: int, by_id: bool, budget: Budget) -> tuple[list[tuple[Topic, list[int]]], int]:
    forgotten = []
    count, at = read_compact_count(view, at, budget, 3)
    for _ in range(count):
        topic, at = read_topic(view, at, by_id)
        partition_count, at = read_compact_count(view, at, budget, 4)
        forgotten.append((topic, list(struct.unpack_from(f">{partition_count}i", view, at))))
        at = skip_tags(view, at + 4 * partition_count, budget)
    return forgotten, at


def _read_tags(view: Buffer, at: int, version: int, budget: Budget) -> tuple[str | None, tuple[int, int] | None, int]:
    """The cluster id and the replica's id and epoch (KIP-903), each if it is there."""
    cluster_id, replica_state = None, None
    count, at = read_uvarint(view, at)
    budget.take_tags(count)
    tag = -1
    for _ in range(count):
        tag, at, end = read_tag(view, at, tag)
        if tag == CLUSTER_ID_TAG:
            cluster_id, at = read_compact_nullable_string(view, at)
        elif tag == REPLICA_STATE_TAG and version >= REPLICA_STATE_FIRST:
            replica_id, replica_epoch = _REPLICA_STATE.unpack_from(view, at)
            replica_state = replica_id, replica_epoch
            at = skip_tags(view, at + _REPLICA_STATE.size, budget)
        else:
            at = end
        if at != end:
            raise MalformedRequest(f"tag {tag} is not as long as it says")
    return cluster_id, replica_state, at


class FetchedPartition(Struct, frozen=True, gc=False):
    """What is answered for one partition; `records` are whole batches, in buffers or whatever else is sent as it is."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None
    """Producer id and first offset of each aborted transaction; None for readers of uncommitted data."""
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None
    """Epoch and its end offset, for a follower that must truncate (KIP-595)."""
    current_leader: tuple[int, int] | None = None
    """Id and epoch of the leader, for a client that asked the wrong broker (KIP-951)."""
    records: Sequence[Sized] = ()


# The frame length, and the header with it, come first; the length is filled in when it is known.
_HEAD_FLEXIBLE = struct.Struct(">iibihi")
_HEAD_SESSIONS = struct.Struct(">iiihi")
_HEAD_OLDEST = struct.Struct(">iii")

_RESULT = struct.Struct(">ihqqq")
_RESULT_OLDEST = struct.Struct(">ihqq")
_RESULT_NONE_ABORTED = struct.Struct(">ihqqqBi")
_ABORTED = struct.Struct(">qq")
_DIVERGING = struct.Struct(">iqB")
_LEADER = struct.Struct(">iiB")
_INT32 = struct.Struct(">i")


def encode_fetch_response(
    version: int,
    correlation_id: int,
    *,
    throttle_ms: int,
    error_code: int,
    session_id: int,
    topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]],
    endpoints: Sequence[tuple[int, str, int, str | None]] = (),
) -> list[Any]:
    """A whole response in pieces to be sent one after another, frame length and header in the first.

    They are buffers, and whatever the partitions' `records` are.
    `endpoints` tell where the leaders named in partitions are (id, host, port, rack), from version 16 on (KIP-951).
    """
    if version >= FLEXIBLE_FIRST:
        head = _HEAD_FLEXIBLE.pack(0, correlation_id, 0, throttle_ms, error_code, session_id)
        first = bytearray(head)
        buffers = _encode_flexible(first, topics, endpoints if version >= ENDPOINTS_FIRST else ())
    else:
        if version >= SESSIONS_FIRST:
            head = _HEAD_SESSIONS.pack(0, correlation_id, throttle_ms, error_code, session_id)
        else:
            head = _HEAD_OLDEST.pack(0, correlation_id, throttle_ms)
        first = bytearray(head)
        buffers = _encode_legacy(first, topics, version)
    _INT32.pack_into(first, 0, sum(map(len, buffers)) - 4)
    return buffers


def _encode_flexible(
    out: bytearray,
    topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]],
    endpoints: Sequence[tuple[int, str, int, str | None]],
) -> list[Sized]:
    buffers: list[Sized] = [out]
    write_compact_count(out, len(topics))
    for topic, partitions in topics:
        out += topic_bytes(topic)
        write_compact_count(out, len(partitions))
        for each in partitions:
            _write_result(out, each)
            records = each.records
            write_uvarint(out, sum(map(len, records)) + 1)
            if records:
                buffers += records
                out = bytearray()
                buffers.append(out)
            if each.diverging_epoch is None and each.current_leader is None:
                out.append(0)
            else:
                _write_partition_tags(out, each)
        out.append(0)
    if endpoints:
        _write_endpoints(out, endpoints)
    else:
        out.append(0)
    return buffers


def _write_result(out: bytearray, each: FetchedPartition) -> None:
    fixed = (
        each.partition,
        each.error_code,
        each.high_watermark,
        each.last_stable_offset,
        each.log_start_offset,
    )
    aborted = each.aborted
    if aborted is None:
        out += _RESULT_NONE_ABORTED.pack(*fixed, 0, each.preferred_read_replica)
        return
    out += _RESULT.pack(*fixed)
    write_compact_count(out, len(aborted))
    for producer_id, first_offset in aborted:
        out += _ABORTED.pack(producer_id, first_offset)
        out.append(0)
    out += _INT32.pack(each.preferred_read_replica)


def _write_partition_tags(out: bytearray, each: FetchedPartition) -> None:
    tags = []
    if each.diverging_epoch is not None:
        tags.append((0, bytearray(_DIVERGING.pack(*each.diverging_epoch, 0))))
    if each.current_leader is not None:
        tags.append((1, bytearray(_LEADER.pack(*each.current_leader, 0))))
    write_tags(out, tags)


def _write_endpoints(out: bytearray, endpoints: Sequence[tuple[int, str, int, str | None]]) -> None:
    value = bytearray()
    write_compact_count(value, len(endpoints))
    for node_id, host, port, rack in endpoints:
        value += _INT32.pack(node_id)
        write_compact_string(value, host)
        value += _INT32.pack(port)
        write_compact_nullable_string(value, rack)
        value.append(0)
    write_tags(out, [(0, value)])


def _encode_legacy(
    out: bytearray, topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]], version: int
) -> list[Sized]:
    buffers: list[Sized] = [out]
    write_count(out, len(topics))
    for topic, partitions in topics:
        assert isinstance(topic, str), "versions before 13 know topics by name"
        write_string(out, topic)
        write_count(out, len(partitions))
        for each in partitions:
            _write_legacy_result(out, each, version)
            write_count(out, sum(map(len, each.records)))
            if each.records:
                buffers += each.records
                out = bytearray()
                buffers.append(out)
    return buffers


def _write_legacy_result(out: bytearray, each: FetchedPartition, version: int) -> None:
    fixed = (each.partition, each.error_code, each.high_watermark, each.last_stable_offset)
    if version >= LOG_START_FIRST:
        out += _RESULT.pack(*fixed, each.log_start_offset)
    else:
        out += _RESULT_OLDEST.pack(*fixed)
    aborted = each.aborted
    write_count(out, -1 if aborted is None else len(aborted))
    for producer_id, first_offset in aborted or ():
        out += _ABORTED.pack(producer_id, first_offset)
    if version >= PREFERRED_REPLICA_FIRST:
        out += _INT32.pack(each.preferred_read_replica)
