"""The records inside a batch, one after the other, each byte distrusted.

A record is: length, attributes (i8, unused), timestamp delta, offset delta, key, value, headers; lengths and deltas are
zigzag varints, -1 is a null. The CRC only proves that the bytes are those the producer meant, not that it meant well,
so every number is checked against the bytes that are left before it is used, and a fault is a CorruptBatch.

Two walks, because a Python object per record is dear:
    skim    where each record's parts lie, as plain numbers; for the cleaner, lookups and deep checks
    walk    whole Record values; for tools, coordinators and tests
(A third, over nothing but the lengths, is in chain.py; it is cheap enough for every produce.)
"""

from collections.abc import Iterator
from typing import NamedTuple

from headrace.records.batch import HEADER_BYTES, RECORD_BYTES_MIN, BatchHeader, CorruptBatch, read_header
from headrace.records.compression import Bytes, decompress

MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024
"""The cap of a caller that has no topic's setting at hand."""

_INT32_VARINT_BYTES = 5
INT64_VARINT_BYTES = 10
_TIMESTAMP_MIN, _TIMESTAMP_MAX = -(2**63), 2**63 - 1
_HEADER_BYTES_MIN = 2

_new_span = tuple.__new__
"""Makes a RecordSpan without the detour over its own constructor, which takes twice as long."""


class Record(NamedTuple):
    """One record with its own offset and timestamp; key and value are views into the batch's (decompressed) bytes."""

    offset: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None
    headers: tuple[tuple[str, bytes | None], ...]


class RecordSpan(NamedTuple):
    """Where one record and its parts lie in the payload; a length of -1 is a null."""

    start: int
    end: int
    timestamp_delta: int
    offset_delta: int
    timestamp_end: int
    """Behind the timestamp delta, at the offset delta."""
    key: int
    key_length: int
    value_length: int
    headers: int
    """At the number of headers, right behind the value."""


def payload_of(batch: Bytes, header: BatchHeader, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Bytes:
    """The records' bytes of the whole batch at the start of `batch`, decompressed if need be."""
    return decompress(header.codec, memoryview(batch)[HEADER_BYTES : header.size], max_bytes)


def walk(batch: Bytes, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """The records of the whole batch at the start of `batch`, decompressed up to `max_bytes`."""
    header = read_header(batch)
    return walk_payload(payload_of(batch, header, max_bytes), header)


def walk_payload(payload: Bytes, header: BatchHeader) -> Iterator[Record]:
    """The records of an already decompressed payload."""
    view = memoryview(payload)
    for span in skim(payload, header):
        key = None if span.key_length < 0 else view[span.key : span.key + span.key_length]
        value = None if span.value_length < 0 else view[span.headers - span.value_length : span.headers]
        headers = tuple(_headers(view, span.headers, span.end)) if view[span.headers] else ()
        timestamp = record_timestamp(header, span.timestamp_delta)
        yield Record(header.base_offset + span.offset_delta, timestamp, key, value, headers)


def record_timestamp(header: BatchHeader, timestamp_delta: int) -> int:
    """A record's timestamp: the broker's where the batch says LogAppendTime, else its own."""
    return header.max_timestamp if header.is_log_append_time else header.base_timestamp + timestamp_delta


def skim(payload: Bytes, header: BatchHeader) -> Iterator[RecordSpan]:
    """Where each record lies; CorruptBatch at the first one that does not fit, or if bytes are left behind the last."""
    position, total, base_timestamp = 0, len(payload), header.base_timestamp
    for _ in range(header.record_count):
        span = read_span(payload, position, total)
        if not 0 <= span.offset_delta <= header.last_offset_delta:
            raise CorruptBatch(f"offset delta {span.offset_delta} lies outside the batch")
        if not _TIMESTAMP_MIN <= base_timestamp + span.timestamp_delta <= _TIMESTAMP_MAX:
            raise CorruptBatch(f"timestamp delta {span.timestamp_delta} leads beyond 64 bits")
        yield span
        position = span.end
    if position != total:
        raise CorruptBatch(f"{total - position} bytes are left behind the last of {header.record_count} records")


def read_span(payload: Bytes, start: int, total: int) -> RecordSpan:
    """The record at `start`, its headers checked too, all within `total`; CorruptBatch if it is none.

    Most numbers take one byte, and a call costs more than reading one, so that case is written out here.
    """
    try:
        length, position = read_varint(payload, start)
        end = position + length
        if length < RECORD_BYTES_MIN - 1 or end > total:
            raise CorruptBatch(f"a record claims {length} bytes, {total - position} are left")
        timestamp_delta, timestamp_end = read_varint(payload, position + 1, INT64_VARINT_BYTES)
        byte = payload[timestamp_end]
        if byte < 0x80:
            offset_delta, position = byte >> 1 ^ -(byte & 1), timestamp_end + 1
        else:
            offset_delta, position = read_varint(payload, timestamp_end)
        byte = payload[position]
        if byte < 0x80:
            key_length, key = byte >> 1 ^ -(byte & 1), position + 1
        else:
            key_length, key = read_varint(payload, position)
        value_length, headers = read_varint(payload, key + key_length if key_length > 0 else key)
        if value_length > 0:
            headers += value_length
        if key_length < -1 or value_length < -1 or headers >= end:
            raise CorruptBatch("a record's key or value does not fit into it")
        if payload[headers]:
            for _ in _headers(payload, headers, end):
                pass
        elif headers + 1 != end:
            raise CorruptBatch("a record is longer than its parts")
    except IndexError:
        raise CorruptBatch("a record ends inside one of its numbers") from None
    parts = (start, end, timestamp_delta, offset_delta, timestamp_end, key, key_length, value_length, headers)
    return _new_span(RecordSpan, parts)


def read_varint(payload: Bytes, position: int, bytes_max: int = _INT32_VARINT_BYTES) -> tuple[int, int]:
    """The zigzag varint at `position` and the position behind it; IndexError where the payload ends."""
    value = payload[position]
    if value < 0x80:
        return value >> 1 ^ -(value & 1), position + 1
    byte = payload[position + 1]
    value += (byte << 7) - 0x80
    if byte < 0x80:
        return value >> 1 ^ -(value & 1), position + 2
    for index in range(2, bytes_max):
        byte = payload[position + index]
        value += byte - 1 << 7 * index
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), position + index + 1
    raise CorruptBatch(f"a number has more than {bytes_max} bytes")


def _headers(payload: Bytes, position: int, end: int) -> Iterator[tuple[str, bytes | None]]:
    """The headers of a record that ends at `end`, no more and no less."""
    count, position = read_varint(payload, position)
    if not 0 <= count * _HEADER_BYTES_MIN <= end - position:
        raise CorruptBatch(f"{count} headers do not fit into {end - position} bytes")
    for _ in range(count):
        key_length, key = read_varint(payload, position)
        value_length, value = read_varint(payload, key + max(key_length, 0))
        position = value + max(value_length, 0)
        if key_length < 0 or value_length < -1 or position > end:
            raise CorruptBatch("a header does not fit into its record")
        name = bytes(payload[key : key + key_length]).decode("utf-8", "replace")
        yield name, None if value_length < 0 else bytes(payload[value:position])
    if position != end:
        raise CorruptBatch("a record is longer than its parts")
