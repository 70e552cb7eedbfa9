"""Produce by hand (API key 0, versions 3-13): the request every record passes through.

The generic codec would build an object per partition and per topic; here the request becomes a flat list of positions,
and the batches stay where the socket put them. The usual answer is a few `struct` calls; an answer in an old encoding,
or one that names a new leader (KIP-951), is rare and goes through the generic codec.
"""

import struct
from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from headrace.model.errors import MalformedRequest
from headrace.wire.codec import encode_response
from headrace.wire.header import response_header
from headrace.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.wire.primitives import (
    BAD_BYTES,
    Budget,
    Buffer,
    read_compact_count,
    read_compact_nullable_string,
    read_count,
    read_nullable_string,
    read_string,
    read_uvarint,
    skip_tags,
    uuid_of,
    write_compact_count,
    write_compact_nullable_string,
)
from headrace.wire.topics import Topic, read_topic, topic_bytes

PRODUCE = 0
FLEXIBLE_FIRST = 9
TOPIC_ID_FIRST = 13
OBJECTS_MAX = 15_000
"""Topics and partitions of one request: what a megabyte, Kafka's max.request.size, holds of the smallest batches.

Each batch takes 14 µs of the event loop to check and append, which makes 0.2 s.
"""

ProducedPartition = tuple[Topic, int, int, int]
"""Topic, partition, and where its records start and end in the request; the start is -1 for null."""

PartitionResult = tuple[int, int, int, int, int, str | None]
"""Partition, error code, base offset, log append time, log start offset, error message."""

RecordErrors = Mapping[tuple[Topic, int], Sequence[tuple[int, str]]]
"""For a topic and partition: records by their place in the batch, and what is wrong with each."""


class ProduceCommand(Struct, frozen=True, gc=False):
    """A produce request, its partitions in the order they came."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[ProducedPartition]


class _ProduceBudget(Budget):
    """Less than for other requests, as every element is a batch."""

    objects = OBJECTS_MAX


_ACKS_TIMEOUT = struct.Struct(">hi")
_INDEX_LENGTH = struct.Struct(">ii")
_INDEX_COMPACT = struct.Struct(">iB")


def parse_produce(view: Buffer, position: int, version: int) -> ProduceCommand:
    """The produce request whose body starts at `position` and fills the rest of `view`."""
    if version >= TOPIC_ID_FIRST and (usual := _parse_usual(view, position)):
        return usual
    parse = _parse_flexible if version >= FLEXIBLE_FIRST else _parse_legacy
    try:
        command, end = parse(view, position, version)
    except BAD_BYTES as error:
        raise MalformedRequest(f"not a produce request: {error}") from error
    if end != len(view):
        raise MalformedRequest(f"{len(view) - end} bytes after the end of the produce request")
    return command


_USUAL = struct.Struct(">bhib16sbiBB")
_NO_TAGS = bytes(3)
"""How a request ends: no tags in the partition, the topic, the request."""


def _parse_usual(view: Buffer, at: int) -> ProduceCommand | None:
    """The request that nearly every one is: no transaction, one topic by its id, one batch of 127 bytes to 16 KiB.

    None if it is another, or bad: both is looked into by taking it apart piece by piece.
    """
    start = at + _USUAL.size
    if len(view) <= start:
        return None
    no_id, acks, timeout_ms, topics, topic, partitions, index, low, high = _USUAL.unpack_from(view, at)
    if no_id or topics != 2 or partitions != 2 or low < 0x80 or high >= 0x80:
        return None
    end = start + low - 0x81 + (high << 7)
    if view[end:] != _NO_TAGS:
        return None
    return ProduceCommand(None, acks, timeout_ms, [(uuid_of(topic), index, start, end)])


def _parse_flexible(view: Buffer, at: int, version: int) -> tuple[ProduceCommand, int]:
    budget = _ProduceBudget()
    by_id = version >= TOPIC_ID_FIRST
    transactional_id, at = read_compact_nullable_string(view, at) if view[at] else (None, at + 1)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(view, at)
    at += 6
    topics, at = (1, at + 1) if view[at] == 2 else read_compact_count(view, at, budget, 3)
    partitions: list[ProducedPartition] = []
    for _ in range(topics):
        topic, at = read_topic(view, at, by_id)
        # One partition is the usual case, and nothing to be on guard against.
        count, at = (1, at + 1) if view[at] == 2 else read_compact_count(view, at, budget, 6)
        for _ in range(count):
            index, size = _INDEX_COMPACT.unpack_from(view, at)
            at += 5
            if size > 0x7F:
                if (high := view[at]) < 0x80:
                    size += (high << 7) - 0x80
                    at += 1
                else:
                    size, at = read_uvarint(view, at - 1)
            if size:
                start, at = at, at + size - 1
                partitions.append((topic, index, start, at))
            else:
                partitions.append((topic, index, -1, -1))
            # Looking at the byte after the records also proves that they are all there.
            at = skip_tags(view, at, budget) if view[at] else at + 1
        at = skip_tags(view, at, budget) if view[at] else at + 1
    at = skip_tags(view, at, budget) if view[at] else at + 1
    return ProduceCommand(transactional_id, acks, timeout_ms, partitions), at


def _parse_legacy(view: Buffer, at: int, version: int) -> tuple[ProduceCommand, int]:
    budget = _ProduceBudget()
    transactional_id, at = read_nullable_string(view, at)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(view, at)
    topics, at = read_count(view, at + 6, budget, 6)
    partitions: list[ProducedPartition] = []
    for _ in range(topics):
        topic, at = read_string(view, at)
        count, at = read_count(view, at, budget, 8)
        for _ in range(count):
            index, size = _INDEX_LENGTH.unpack_from(view, at)
            at += 8
            if size < 0:
                partitions.append((topic, index, -1, -1))
                continue
            if size > len(view) - at:
                raise MalformedRequest(f"{size} bytes of records announced, {len(view) - at} left")
            partitions.append((topic, index, at, at + size))
            at += size
    return ProduceCommand(transactional_id, acks, timeout_ms, partitions), at


_FRAME_HEAD = struct.Struct(">iib")
_RESULT = struct.Struct(">ihqqqB")
_USUAL_RESULT = struct.Struct(">ihqqqBBB")
"""A result with no record errors, no message and no tags."""
_END = struct.Struct(">iB")


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[PartitionResult]]],
    throttle_ms: int = 0,
    *,
    leaders: Mapping[tuple[Topic, int], tuple[int, int]] | None = None,
    endpoints: Sequence[tuple[int, str, int, str | None]] = (),
    record_errors: RecordErrors | None = None,
) -> bytes:
    """A whole response, frame length and header included.

    `leaders` tells for partitions that moved the new leader's id and epoch, `endpoints` where these leaders are
    (id, host, port, rack); both are sent from version 10 on (KIP-951). `record_errors` tells which records of a batch
    were at fault, from version 8 on (KIP-467).
    """
    if version < FLEXIBLE_FIRST or leaders or endpoints or record_errors:
        message = ProduceResponse(
            responses=tuple(_topic_response(topic, rows, leaders or {}, record_errors or {}) for topic, rows in topics),
            throttle_time_ms=throttle_ms,
            node_endpoints=tuple(
                NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
                for node_id, host, port, rack in endpoints
            ),
        )
        return _encode_by_codec(version, correlation_id, message)
    return _encode_many(correlation_id, topics, throttle_ms)


# One topic and one partition: frame length, header, count of topics; then, after the topic, the count of partitions,
# the result, no record errors, no message, no tags twice, the throttle time, no tags.
_ONE_BY_ID = struct.Struct(">iibB16sBihqqqBBBBiB")
_ONE_BY_ID_BYTES = _ONE_BY_ID.size - 4
_ONE_HEAD = struct.Struct(">iibB")
_ONE_RESULT = struct.Struct(">BihqqqBBBBiB")
_ONE_REST = _ONE_HEAD.size - 4 + _ONE_RESULT.size


def encode_one_appended(version: int, correlation_id: int, topic: Topic, result: PartitionResult) -> bytes:
    """What `encode_produce_response` gives for one batch that was appended, in a flexible version. HOT."""
    index, _, base_offset, append_time_ms, start_offset, _ = result
    name = topic_bytes(topic)
    if version >= TOPIC_ID_FIRST:
        return _ONE_BY_ID.pack(
            _ONE_BY_ID_BYTES, correlation_id, 0, 2, name,
            2, index, 0, base_offset, append_time_ms, start_offset, 1, 0, 0, 0, 0, 0,
        )  # fmt: skip
    head = _ONE_HEAD.pack(len(name) + _ONE_REST, correlation_id, 0, 2)
    return b"".join(
        (head, name, _ONE_RESULT.pack(2, index, 0, base_offset, append_time_ms, start_offset, 1, 0, 0, 0, 0, 0))
    )


def _encode_many(
    correlation_id: int, topics: Sequence[tuple[Topic, Sequence[PartitionResult]]], throttle_ms: int
) -> bytes:
    out = bytearray(9)
    write_compact_count(out, len(topics))
    for topic, results in topics:
        out += topic_bytes(topic)
        write_compact_count(out, len(results))
        for index, error_code, base_offset, append_time_ms, start_offset, message in results:
            if message is None:
                out += _USUAL_RESULT.pack(index, error_code, base_offset, append_time_ms, start_offset, 1, 0, 0)
                continue
            out += _RESULT.pack(index, error_code, base_offset, append_time_ms, start_offset, 1)
            write_compact_nullable_string(out, message)
            out.append(0)
        out.append(0)
    out += _END.pack(throttle_ms, 0)
    _FRAME_HEAD.pack_into(out, 0, len(out) - 4, correlation_id, 0)
    return bytes(out)


def _encode_by_codec(version: int, correlation_id: int, message: ProduceResponse) -> bytes:
    body = encode_response(PRODUCE, version, message)
    head = response_header(PRODUCE, version, correlation_id)
    return struct.pack(">i", len(head) + len(body)) + head + body


def _topic_response(
    topic: Topic,
    results: Sequence[PartitionResult],
    leaders: Mapping[tuple[Topic, int], tuple[int, int]],
    record_errors: RecordErrors,
) -> TopicProduceResponse:
    partitions = []
    for index, error_code, base_offset, append_time_ms, start_offset, message in results:
        leader_id, leader_epoch = leaders.get((topic, index), (-1, -1))
        partitions.append(
            PartitionProduceResponse(
                index=index,
                error_code=error_code,
                base_offset=base_offset,
                log_append_time_ms=append_time_ms,
                log_start_offset=start_offset,
                record_errors=tuple(
                    BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=fault)
                    for place, fault in record_errors.get((topic, index), ())
                ),
                error_message=message,
                current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
            )
        )
    if isinstance(topic, UUID):
        return TopicProduceResponse(topic_id=topic, partition_responses=tuple(partitions))
    return TopicProduceResponse(name=topic, partition_responses=tuple(partitions))
