"""A Produce request in pieces, so that batches go from where they were made to the socket without a copy.

Only the encoding of today's brokers (versions 9-11) is written by hand; others get what the codec makes.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence

from headrace.spark.outbox import Batch
from headrace.wire.codec import encode_request
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.primitives import (
    write_compact_count,
    write_compact_nullable_string,
    write_compact_string,
    write_uvarint,
)

PRODUCE = 0
FLEXIBLE_FIRST = 9
LAST = 11
"""From 12 on a Produce adds partitions to transactions by itself (KIP-890), which not every broker does."""

_ACKS_TIMEOUT = struct.Struct(">hi")
_INDEX = struct.Struct(">i")
_NO_TAGS = 0

Piece = bytes | bytearray | memoryview


def produce_pieces(
    batches: Sequence[Batch], *, version: int, transactional_id: str | None, acks: int, timeout_ms: int
) -> list[Piece]:
    """The body of a request with these batches, at most one of each partition."""
    topics: defaultdict[str, list[Batch]] = defaultdict(list)
    for batch in batches:
        topics[batch.place[0]].append(batch)
    if version < FLEXIBLE_FIRST:
        return [encode_request(PRODUCE, version, _message(topics, transactional_id, acks, timeout_ms))]
    pieces: list[Piece] = []
    out = bytearray()
    write_compact_nullable_string(out, transactional_id)
    out += _ACKS_TIMEOUT.pack(acks, timeout_ms)
    write_compact_count(out, len(topics))
    for name, ours in topics.items():
        write_compact_string(out, name)
        write_compact_count(out, len(ours))
        for batch in ours:
            out += _INDEX.pack(batch.place[1])
            write_uvarint(out, len(batch.data) + 1)
            pieces += (out, batch.data)
            out = bytearray([_NO_TAGS])
        out.append(_NO_TAGS)
    out.append(_NO_TAGS)
    pieces.append(out)
    return pieces


def _message(
    topics: dict[str, list[Batch]], transactional_id: str | None, acks: int, timeout_ms: int
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            TopicProduceData(
                name=name,
                partition_data=tuple(
                    PartitionProduceData(index=batch.place[1], records=memoryview(batch.data)) for batch in ours
                ),
            )
            for name, ours in topics.items()
        ),
    )
