"""Arrow columns become record batches, ready for a Produce request, without an object per record."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.model.errors import HeadraceError
from headrace.records.batch import (
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    seal,
)
from headrace.records.build import NO_EPOCH, assemble
from headrace.records.compression import LZ4
from headrace.spark import encode_kernels as kernels
from headrace.spark.compiled import ByteArray, Int32Array, Int64Array, reading

SEQUENCE_COUNT = 2**31
"""Sequence numbers wrap to 0 behind 2**31 - 1."""

_LEVELS = {LZ4: 1}
"""Java's producer takes lz4's fast way by default, whatever number that level has."""

EncodedBatch = bytes | bytearray | memoryview
Timestamps: TypeAlias = Any
"""One for all rows, a numpy array, or an Arrow array of whole numbers."""


class BadHeaders(HeadraceError):
    """Headers that no record can have; the message is one sentence."""


class _Column(NamedTuple):
    """A column of byte strings as the kernels read it: bytes, offsets, and a byte per cell that is 0 for null."""

    data: ByteArray
    ends: Int32Array
    valid: ByteArray


class _Headers(NamedTuple):
    """The headers of all records, and how many bytes each record's take; everything empty if there are none."""

    lists: Int32Array
    keys: _Column
    values: _Column
    sizes: Int64Array


class _Stamp(NamedTuple):
    """What all batches of a call have in common."""

    producer_id: int
    producer_epoch: int
    attributes: int


_NO_BYTES: ByteArray = reading(np.zeros(0, np.uint8))
_NO_INT32: Int32Array = reading(np.zeros(0, np.int32))
_NO_INT64: Int64Array = reading(np.zeros(0, np.int64))
_NO_HEADERS = _Headers(
    _NO_INT32, _Column(_NO_BYTES, _NO_INT32, _NO_BYTES), _Column(_NO_BYTES, _NO_INT32, _NO_BYTES), _NO_INT64
)


def encode(
    keys: pa.Array | None,
    values: pa.Array,
    headers: pa.Array | None,
    timestamps_ms: Timestamps,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    codec: int = 0,
    max_bytes: int,
) -> list[tuple[EncodedBatch, int]]:
    """Batches of at most `max_bytes` before compression, each with its number of records, in the order of the rows.

    A record that is larger than that by itself gets a batch by itself: whether it is too large, the broker says.
    """
    count = len(values)
    if not count:
        return []
    key_column, value_column = _column(keys, count), _column(values, count)
    timestamps, header_columns = _timestamps(timestamps_ms, count), _header_columns(headers)
    sizes, batches = np.empty(count, np.int32), np.empty((count, kernels.BATCH_WIDTH), np.int64)
    batch_count = kernels.plan_batches(
        *(key_column.ends, key_column.valid, value_column.ends, value_column.valid),
        *(header_columns.sizes, timestamps, max_bytes, sizes, batches),
    )
    stamp = _Stamp(producer_id, producer_epoch, codec | (TRANSACTIONAL if transactional else 0))
    rows = batches[:batch_count].tolist()
    lasts = [row[kernels.FIRST] for row in rows[1:]] + [count]
    out, at, encoded = np.empty(sum(row[kernels.BATCH_BYTES] for row in rows), np.uint8), 0, []
    for (first, size, max_ms), last in zip(rows, lasts, strict=True):
        kernels.write_records(
            *(*key_column, *value_column, timestamps, reading(sizes)),
            *(header_columns.lists, *header_columns.keys[:2], *header_columns.values),
            *(first, last, out, at + HEADER_BYTES),
        )
        sequence = base_sequence if base_sequence < 0 else (base_sequence + first) % SEQUENCE_COUNT
        header = _header(stamp, size, last - first, int(timestamps[first]), max_ms, sequence)
        encoded.append((_finish(header, out.data[at : at + size], codec), last - first))
        at += size
    return encoded


def partitions_of(keys: pa.Array, count: int, *, sticky: int = 0) -> npt.NDArray[np.int32]:
    """The partition that Java's default partitioner gives each key, of `count`; `sticky` for null keys."""
    assert count > 0, "a topic has partitions"
    out = np.empty(len(keys), np.int32)
    kernels.find_partitions(*_column(keys, len(keys)), count, sticky, out)
    return out


def _header(stamp: _Stamp, size: int, count: int, base_ms: int, max_ms: int, base_sequence: int) -> BatchHeader:
    """The header of a batch of `size` bytes, whose place in the log the broker fills in."""
    return BatchHeader(
        base_offset=0,
        batch_length=size - LENGTH_OVERHEAD,
        leader_epoch=NO_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=stamp.attributes,
        last_offset_delta=count - 1,
        base_timestamp=base_ms,
        max_timestamp=max_ms,
        producer_id=stamp.producer_id,
        producer_epoch=stamp.producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )


def _finish(header: BatchHeader, batch: memoryview, codec: int) -> EncodedBatch:
    """Put the header in front of the records, compress those if need be, and seal it with the CRC."""
    if codec:
        return assemble(header, batch[HEADER_BYTES:], _LEVELS.get(codec))
    HEADER.pack_into(batch, 0, *header)
    seal(batch)
    return batch


def _column(array: pa.Array | None, count: int) -> _Column:
    """An array of bytes or text, or the absence of one, as the kernels read it."""
    if array is None or pa.types.is_null(array.type):
        return _Column(_NO_BYTES, reading(np.zeros(count + 1, np.int32)), reading(np.zeros(count, np.uint8)))
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not (pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        array = array.cast(pa.binary())
    assert len(array) == count, "all columns have the same rows"
    _, ends, data = array.buffers()
    return _Column(
        _NO_BYTES if data is None else reading(np.frombuffer(data, np.uint8)),
        _ends(ends, array.offset, count),
        reading(array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)) if array.null_count else _NO_BYTES,
    )


def _ends(buffer: pa.Buffer | None, offset: int, count: int) -> Int32Array:
    """The offsets of an array that begins at `offset` of its buffers; an empty one may have none."""
    if buffer is None or not buffer.size:
        return reading(np.zeros(count + 1, np.int32))
    return reading(np.frombuffer(buffer, np.int32)[offset : offset + count + 1])


def _timestamps(timestamps_ms: Timestamps, count: int) -> Int64Array:
    """One timestamp per row, whatever form they come in."""
    if isinstance(timestamps_ms, int):
        return reading(np.full(count, timestamps_ms, np.int64))
    if isinstance(timestamps_ms, np.ndarray):
        return reading(np.ascontiguousarray(timestamps_ms, np.int64))
    return reading(timestamps_ms.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))


def _header_columns(headers: pa.Array | None) -> _Headers:
    """The headers of all rows; a null list is an empty one. BadHeaders if a header has no name."""
    if headers is None or headers.null_count == len(headers):
        return _NO_HEADERS
    if isinstance(headers, pa.ChunkedArray):
        headers = headers.combine_chunks()
    if headers.null_count:
        headers = headers.fill_null(pa.scalar([], headers.type))
    parts = headers.values
    keys, values = _column(parts.field(0), len(parts)), _column(parts.field(1), len(parts))
    lists, sizes = _ends(headers.buffers()[1], headers.offset, len(headers)), np.empty(len(headers), np.int64)
    nameless = kernels.measure_headers(lists, keys.ends, keys.valid, values.ends, values.valid, sizes)
    if nameless >= 0:
        raise BadHeaders(f"A header of row {nameless} has no name.")
    return _Headers(lists, keys, values, reading(sizes))
