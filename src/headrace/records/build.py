"""Record batches made by us: for coordinators, tools, tests, and batches the broker has to write anew."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from crc32c import crc32c

from headrace.records.batch import (
    BEFORE_COVERED,
    CODEC_MASK,
    CONTROL,
    COVERED,
    COVERED_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    seal,
)
from headrace.records.compression import CODECS, Bytes, compress
from headrace.records.walk import RecordSpan

NO_EPOCH = -1
_SHORT = 64
"""Numbers below this one are a varint of one byte."""
_SHORT_FRAME_BYTES = 6
"""What such a record has besides its key and value: attributes, two deltas, two lengths, the number of headers."""


_LENGTHS = [
    bytes((size << 1,) if size < _SHORT else (size << 1 & 0x7F | 0x80, size >> 6))
    for size in range(2 * _SHORT + _SHORT_FRAME_BYTES)
]
"""The length of such a record as a varint, by that length."""


_FRONTS_KEPT = 10_000
_FRONT_KEY_BYTES_MAX = 256
"""No peer may fill our memory with long names."""
_NO_HEADER = bytes(HEADER_BYTES)
_NO_HEADERS = b"\0"

_new_header = tuple.__new__


class NewRecord(NamedTuple):
    """A record still to be written."""

    timestamp: int
    key: Bytes | None = None
    value: Bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    codec: str = "none",
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_EPOCH,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """One batch with these records at consecutive offsets; with `log_append_time_ms` that is everyone's timestamp."""
    assert records, "a new batch has at least one record"
    base_timestamp = records[0].timestamp
    payload = bytearray()
    for offset_delta, record in enumerate(records):
        payload += encode_record(record, timestamp_delta=record.timestamp - base_timestamp, offset_delta=offset_delta)
    flags = (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=CODECS[codec] | flags | (0 if log_append_time_ms is None else LOG_APPEND_TIME),
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(r.timestamp for r in records) if log_append_time_ms is None else log_append_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return assemble(header, payload, level)


def build_entries(
    entries: Iterable[tuple[Bytes, Bytes | None]],
    timestamp: int,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    transactional: bool = False,
) -> tuple[bytearray, BatchHeader]:
    """One batch of keys and values with one timestamp and nothing else, as a coordinator writes them; HOT."""
    parts: list[Bytes] = [_NO_HEADER]
    count = 0
    for key, value in entries:
        if value is None or len(key) > _FRONT_KEY_BYTES_MAX:
            parts.append(encode_record(NewRecord(timestamp, key, value), timestamp_delta=0, offset_delta=count))
        else:
            parts += (_front(bytes(key), len(value), count), value, _NO_HEADERS)
        count += 1
    batch = bytearray().join(parts)
    assert count, "a new batch has at least one record"
    attributes = TRANSACTIONAL if transactional else 0
    covered = (attributes, count - 1, timestamp, timestamp, producer_id, producer_epoch, NO_SEQUENCE, count)
    COVERED.pack_into(batch, COVERED_AT, *covered)
    with memoryview(batch) as view:
        crc = crc32c(view[COVERED_AT:])
    place = (0, len(batch) - LENGTH_OVERHEAD, NO_EPOCH, MAGIC, crc)
    BEFORE_COVERED.pack_into(batch, 0, *place)
    return batch, _new_header(BatchHeader, place + covered)


@lru_cache(maxsize=_FRONTS_KEPT)
def _front(key: bytes, value_size: int, offset_delta: int) -> bytes:
    """What stands before a record's value, with no delta of time; a coordinator writes the same again and again."""
    body = bytearray(2)
    write_varint(body, offset_delta)
    _write_bytes(body, key)
    write_varint(body, value_size)
    front = bytearray()
    write_varint(front, len(body) + value_size + len(_NO_HEADERS))
    return bytes(front + body)


def assemble(header: BatchHeader, payload: Bytes, level: int | None = None) -> bytearray:
    """The batch of this header and these still uncompressed records; its length and CRC are worked out here."""
    body = compress(header.attributes & CODEC_MASK, payload, level)
    batch = bytearray(HEADER_BYTES + len(body))
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - LENGTH_OVERHEAD))
    batch[HEADER_BYTES:] = body
    seal(batch)
    return batch


def encode_record(record: NewRecord, *, timestamp_delta: int, offset_delta: int) -> bytearray:
    """One record as it lies in a batch, its length in front."""
    key, value = record.key, record.value
    if (
        key is not None
        and value is not None
        and not record.headers
        and 0 <= timestamp_delta < _SHORT
        and offset_delta < _SHORT
        and len(key) < _SHORT
        and len(value) < _SHORT
    ):
        return _encode_short(key, value, timestamp_delta, offset_delta)
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        _write_bytes(body, name.encode())
        _write_bytes(body, value)
    encoded = bytearray()
    _write_bytes(encoded, body)
    return encoded


def _encode_short(key: Bytes, value: Bytes, timestamp_delta: int, offset_delta: int) -> bytearray:
    """A record whose numbers fit into one byte each, as most of a coordinator's do: a third of the price."""
    encoded = bytearray(_LENGTHS[len(key) + len(value) + _SHORT_FRAME_BYTES])
    encoded += bytes((0, timestamp_delta << 1, offset_delta << 1, len(key) << 1))
    encoded += key
    encoded.append(len(value) << 1)
    encoded += value
    encoded.append(0)
    return encoded


def move_timestamp(payload: Bytes, span: RecordSpan, *, timestamp_delta: int) -> bytearray:
    """The record at `span` with another timestamp delta, for a batch that gets another base timestamp."""
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    body += payload[span.timestamp_end : span.end]
    encoded = bytearray()
    _write_bytes(encoded, body)
    return encoded


def write_varint(out: bytearray, value: int) -> None:
    """Append `value` as a zigzag varint; up to 64 bits."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def _write_bytes(out: bytearray, data: Bytes | None) -> None:
    if data is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(data))
        out += data
