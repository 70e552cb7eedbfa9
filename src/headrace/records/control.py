"""Control records: what brokers write into a log for brokers and clients, and applications never see (KIP-98).

A control batch holds one record. Its key is a version and a type; the type says how to read the value.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from headrace.records.batch import BatchHeader, CorruptBatch, read_header
from headrace.records.build import NO_EPOCH, NewRecord, build_batch
from headrace.records.compression import Bytes
from headrace.records.walk import walk

_KEY = struct.Struct(">hh")
_END_MARKER = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """What a control record is for."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a transaction of one producer on this partition."""

    committed: bool
    coordinator_epoch: int
    timestamp_ms: int


class AbortedTransaction(NamedTuple):
    """One producer's aborted transaction: from its first record to its abort marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """Where the next transaction begins that is open at the marker; right behind the marker if none is."""


def build_end_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
) -> bytearray:
    """The control batch that ends a producer's transaction."""
    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    key, value = (_KEY.pack(_VERSION, kind), _END_MARKER.pack(_VERSION, marker.coordinator_epoch))
    return build_batch(
        [NewRecord(marker.timestamp_ms, key, value)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_end_marker(batch: Bytes, header: BatchHeader | None = None) -> EndTransactionMarker | None:
    """The marker in a control batch; None if it holds another kind of control record, or compaction emptied it."""
    header = read_header(batch) if header is None else header
    if not header.is_control or not header.record_count:
        return None
    record = next(walk(memoryview(batch)[: header.size]))
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptBatch("a control record's key holds no type")
    kind = _KEY.unpack_from(record.key)[1]
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _END_MARKER.size:
        raise CorruptBatch("an end of transaction marker holds no coordinator epoch")
    return EndTransactionMarker(kind == ControlType.COMMIT, _END_MARKER.unpack_from(record.value)[1], record.timestamp)
