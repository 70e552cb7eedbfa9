"""The header of a record batch (magic 2, KIP-98): read it, check it, patch it, all on the bytes as they are.

A batch is 61 bytes of header and then its records, which may be compressed as a whole. The broker looks at the header
and hands the rest on untouched. Base offset, length, leader epoch and magic lie before the CRC's reach, so a leader
gives a batch its place in the log without reading the records again.

     0 base offset      i64      12 leader epoch i32     21 attributes        i16     43 producer id    i64
     8 batch length     i32      16 magic        i8      23 last offset delta i32     51 producer epoch i16
                                 17 CRC-32C      u32     27 base timestamp    i64     53 base sequence  i32
                                    (of byte 21 on)      35 max timestamp     i64     57 record count   i32

Attributes: bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 base timestamp is a delete horizon (KIP-534).
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from headrace.model.errors import HeadraceError

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
BEFORE_COVERED = struct.Struct(">qiibI")
COVERED = struct.Struct(">hiqqqhii")
"""The header in two parts: up to the CRC, and what this covers."""
COVERED_AT = BEFORE_COVERED.size
LENGTH_OVERHEAD = 12
"""Bytes of a batch that its own length field does not count: the base offset and the length itself."""
MAGIC = 2
MAGIC_AT = 16
RECORD_BYTES_MIN = 7
"""A record with null key and value and no headers: seven varints and flags of one byte each."""

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1

_SEQUENCE_COUNT = 2**31
_OFFSET_MAX = 2**63 - 1
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_BATCH_LENGTH_MIN = HEADER_BYTES - LENGTH_OVERHEAD

PLACE = struct.Struct(">qii")
"""How a batch begins: base offset, length and leader epoch, all outside the CRC; where the length is known, a leader
fills in its part with one write.
"""
_OFFSET = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_OFFSET_AND_LENGTH = struct.Struct(">qi")


class CorruptBatch(HeadraceError):
    """Bytes that claim to be a record batch and are none; the reason is the message."""


class BatchHeader(NamedTuple):
    """The thirteen fields of a batch header, as they lie in the bytes."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        """The offset of the batch's last record, even if compaction took that record away."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset right behind the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size(self) -> int:
        """All bytes of the batch."""
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def codec(self) -> int:
        """The compression codec's number."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether max_timestamp, set by the broker, is every record's timestamp."""
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a control record, which applications never see."""
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on the cleaner may drop this batch's tombstones, once it has set that (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, which wraps to 0 after 2**31 - 1; -1 if there are none."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_COUNT


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`, believed as it is; CorruptBatch if the bytes end before it does."""
    try:
        return BatchHeader._make(HEADER.unpack_from(buffer, position))
    except struct.error:
        raise CorruptBatch(f"a batch header needs {HEADER_BYTES} bytes, {len(buffer) - position} are there") from None


def check_batch(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header of a whole and unharmed batch at `position`; CorruptBatch says what is wrong with it otherwise.

    Compaction leaves batches with gaps or no records at all, so fewer records than offsets are not a fault here.
    """
    header = read_header(buffer, position)
    fault = header_fault(header)
    if fault is not None:
        raise CorruptBatch(fault)
    end = position + header.size
    if end > len(buffer):
        raise CorruptBatch(f"the batch has {header.size} bytes, {len(buffer) - position} are there")
    if crc32c(memoryview(buffer)[position + _ATTRIBUTES_AT : end]) != header.crc:
        raise CorruptBatch(f"the CRC of the batch at offset {header.base_offset} does not match its bytes")
    return header


def header_fault(header: BatchHeader) -> str | None:
    """What no honest header can say, or None; bounds every number before anything is computed or allocated from it."""
    if header.magic != MAGIC:
        return f"magic {header.magic} is not {MAGIC}"
    if header.batch_length < _BATCH_LENGTH_MIN:
        return f"batch length {header.batch_length} is below {_BATCH_LENGTH_MIN}"
    delta, count = header.last_offset_delta, header.record_count
    if delta < 0 or not 0 <= header.base_offset <= _OFFSET_MAX - delta:
        return f"base offset {header.base_offset} with last offset delta {delta} is out of bounds"
    if not 0 <= count <= delta + 1:
        return f"record count {count} does not fit last offset delta {delta}"
    if not header.codec and count * RECORD_BYTES_MIN > header.size - HEADER_BYTES:
        return f"{count} records do not fit into {header.size - HEADER_BYTES} bytes"
    return None


def patch_offsets(buffer: memoryview | bytearray, position: int, *, base_offset: int, leader_epoch: int) -> None:
    """Give the batch its place in the log; both fields lie outside the CRC."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LENGTH_OVERHEAD, leader_epoch)


def patch_append_time(buffer: memoryview | bytearray, position: int, *, timestamp_ms: int) -> None:
    """Give every record of the batch the broker's time, and the batch the CRC that goes with it."""
    attributes: int = _ATTRIBUTES.unpack_from(buffer, position + _ATTRIBUTES_AT)[0]
    _ATTRIBUTES.pack_into(buffer, position + _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _OFFSET.pack_into(buffer, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    seal(buffer, position)


def seal(buffer: memoryview | bytearray, position: int = 0) -> None:
    """Write the CRC that fits the batch's bytes as they are now."""
    batch_length: int = _INT32.unpack_from(buffer, position + 8)[0]
    covered = memoryview(buffer)[position + _ATTRIBUTES_AT : position + batch_length + LENGTH_OVERHEAD]
    _CRC.pack_into(buffer, position + _CRC_AT, crc32c(covered))


def split_batches(buffer: bytes | bytearray | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Positions and headers of the complete batches in `buffer`; a partial one at the end is left out.

    Nothing but the length is checked: CorruptBatch on one with which there is no going on.
    """
    position, total = 0, len(buffer)
    while total - position >= HEADER_BYTES:
        _, batch_length = _OFFSET_AND_LENGTH.unpack_from(buffer, position)
        if batch_length < _BATCH_LENGTH_MIN:
            raise CorruptBatch(f"batch length {batch_length} at byte {position} is below {_BATCH_LENGTH_MIN}")
        end = position + batch_length + LENGTH_OVERHEAD
        if end > total:
            return
        yield position, read_header(buffer, position)
        position = end
