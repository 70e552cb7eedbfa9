"""Record batches written by machine code, and the partitions that keys belong to.

The columns come from Arrow with their own offsets, so they are trusted; the room written into was measured before.
"""

from headrace.spark.compiled import (
    BYTES,
    INT32,
    INT64,
    READ_BYTES,
    READ_INT32,
    READ_INT64,
    TABLE,
    ByteArray,
    Int32Array,
    Int64Array,
    int64,
    kernel,
    part,
    uint8,
    uint64,
)

HEADER_BYTES = 61
FIRST, BATCH_BYTES, MAX_TIMESTAMP = range(3)
BATCH_WIDTH = 3
"""One row per batch to be: the row of its first record, its bytes with the header, its greatest timestamp."""

_MULTIPLIER, _SEED = 0x5BD1E995, 0x9747B28C


@part
def _varint_bytes(number: int) -> int:
    """How many bytes a zigzag number takes."""
    rest = uint64(number << 1) ^ uint64(number >> 63)
    size = int64(1)
    while rest > uint64(0x7F):
        rest >>= uint64(7)
        size += 1
    return size


@part
def _write_varint(number: int, out: ByteArray, at: int) -> int:
    """Write a zigzag number; the place behind it."""
    rest = uint64(number << 1) ^ uint64(number >> 63)
    while rest > uint64(0x7F):
        out[at] = uint8(rest & uint64(0x7F) | uint64(0x80))
        rest >>= uint64(7)
        at += 1
    out[at] = uint8(rest)
    return at + 1


@part
def _length(ends: Int32Array, valid: ByteArray, row: int) -> int:
    """The length of a cell, -1 for null. No validity at all means that nothing is null."""
    if len(valid) > 0 and valid[row] == 0:
        return int64(-1)
    return int64(ends[row + 1]) - int64(ends[row])


@part
def _cell_bytes(length: int) -> int:
    """The bytes of a cell with its length in front."""
    return _varint_bytes(length) + max(length, 0)


@part
def _write_cell(data: ByteArray, begin: int, length: int, out: ByteArray, at: int) -> int:
    """Write a cell with its length in front; the place behind it."""
    at = _write_varint(length, out, at)
    if length < 0:
        return at
    source, to = uint64(begin), uint64(at)
    for index in range(uint64(length)):  # Unsigned, so that no index counts from the end and many move at once.
        out[to + index] = data[source + index]
    return at + length


@kernel(READ_INT32, READ_INT32, READ_BYTES, READ_INT32, READ_BYTES, INT64)
def measure_headers(
    lists: Int32Array,
    key_ends: Int32Array,
    key_valid: ByteArray,
    value_ends: Int32Array,
    value_valid: ByteArray,
    sizes: Int64Array,
) -> int:
    """How many bytes each record's headers take, their number included; -1, or the row of one without a name."""
    for row in range(len(sizes)):
        first, last = int64(lists[row]), int64(lists[row + 1])
        size = _varint_bytes(last - first)
        for header in range(first, last):
            key_length = _length(key_ends, key_valid, header)
            if key_length < 0:
                return int64(row)
            size += _cell_bytes(key_length) + _cell_bytes(_length(value_ends, value_valid, header))
        sizes[row] = size
    return int64(-1)


@kernel(READ_INT32, READ_BYTES, READ_INT32, READ_BYTES, READ_INT64, READ_INT64, int64, INT32, TABLE)
def plan_batches(
    key_ends: Int32Array,
    key_valid: ByteArray,
    value_ends: Int32Array,
    value_valid: ByteArray,
    header_bytes: Int64Array,
    timestamps: Int64Array,
    max_bytes: int,
    sizes: Int32Array,
    batches: Int64Array,
) -> int:
    """Measure each record and say where batches of at most `max_bytes` begin; how many there are.

    A record that is larger by itself gets a batch by itself. No header bytes at all means that no record has headers.
    """
    count, batch, first = len(timestamps), int64(-1), int64(0)
    for row in range(count):
        rest = int64(1) + _cell_bytes(_length(key_ends, key_valid, row))
        rest += _cell_bytes(_length(value_ends, value_valid, row))
        rest += header_bytes[row] if len(header_bytes) > 0 else int64(1)
        body = rest + _varint_bytes(timestamps[row] - timestamps[first]) + _varint_bytes(row - first)
        if batch < 0 or batches[batch, BATCH_BYTES] + _varint_bytes(body) + body > max_bytes:
            first = int64(row)
            body = rest + int64(2)
            batch += 1
            batches[batch, FIRST] = first
            batches[batch, BATCH_BYTES] = HEADER_BYTES
            batches[batch, MAX_TIMESTAMP] = timestamps[row]
        sizes[row] = body
        batches[batch, BATCH_BYTES] += _varint_bytes(body) + body
        batches[batch, MAX_TIMESTAMP] = max(batches[batch, MAX_TIMESTAMP], timestamps[row])
    return batch + 1


@part
def _write_headers(
    lists: Int32Array,
    keys: ByteArray,
    key_ends: Int32Array,
    values: ByteArray,
    value_ends: Int32Array,
    value_valid: ByteArray,
    row: int,
    out: ByteArray,
    at: int,
) -> int:
    """Write a record's headers; the place behind them."""
    first, last = int64(lists[row]), int64(lists[row + 1])
    at = _write_varint(last - first, out, at)
    for header in range(first, last):
        begin = int64(key_ends[header])
        at = _write_cell(keys, begin, int64(key_ends[header + 1]) - begin, out, at)
        value_begin = int64(value_ends[header])
        at = _write_cell(values, value_begin, _length(value_ends, value_valid, header), out, at)
    return at


@kernel(
    *(READ_BYTES, READ_INT32, READ_BYTES, READ_BYTES, READ_INT32, READ_BYTES, READ_INT64, READ_INT32),
    *(READ_INT32, READ_BYTES, READ_INT32, READ_BYTES, READ_INT32, READ_BYTES),
    *(int64, int64, BYTES, int64),
)
def write_records(
    keys: ByteArray,
    key_ends: Int32Array,
    key_valid: ByteArray,
    values: ByteArray,
    value_ends: Int32Array,
    value_valid: ByteArray,
    timestamps: Int64Array,
    sizes: Int32Array,
    lists: Int32Array,
    header_keys: ByteArray,
    header_key_ends: Int32Array,
    header_values: ByteArray,
    header_value_ends: Int32Array,
    header_value_valid: ByteArray,
    first: int,
    last: int,
    out: ByteArray,
    at: int,
) -> int:
    """Write the records from row `first` to `last` as those of one batch; the place behind them."""
    for row in range(first, last):
        at = _write_varint(int64(sizes[row]), out, at)
        out[at] = 0
        at = _write_varint(timestamps[row] - timestamps[first], out, at + 1)
        at = _write_varint(int64(row - first), out, at)
        at = _write_cell(keys, int64(key_ends[row]), _length(key_ends, key_valid, row), out, at)
        at = _write_cell(values, int64(value_ends[row]), _length(value_ends, value_valid, row), out, at)
        if len(lists) > 0:
            at = _write_headers(
                lists, header_keys, header_key_ends, header_values, header_value_ends, header_value_valid, row, out, at
            )
        else:
            out[at] = 0
            at += 1
    return at


@part
def _murmur2(data: ByteArray, begin: int, length: int) -> int:
    """The hash that Java's producer takes of a key, as an unsigned number of 32 bits."""
    mask, factor = uint64(0xFFFFFFFF), uint64(_MULTIPLIER)
    mixed = uint64(_SEED) ^ uint64(length)
    at, end = uint64(begin), uint64(begin + length)
    while end - at >= uint64(4):
        word = uint64(data[at]) | uint64(data[at + uint64(1)]) << uint64(8)
        word |= uint64(data[at + uint64(2)]) << uint64(16)
        word |= uint64(data[at + uint64(3)]) << uint64(24)
        word = word * factor & mask
        word = (word ^ word >> uint64(24)) * factor & mask
        mixed = (mixed * factor & mask) ^ word
        at += uint64(4)
    if at < end:
        word, shift = uint64(0), uint64(0)
        while at < end:
            word |= uint64(data[at]) << shift
            shift += uint64(8)
            at += uint64(1)
        mixed = (mixed ^ word) * factor & mask
    mixed = (mixed ^ mixed >> uint64(13)) * factor & mask
    return int64(mixed ^ mixed >> uint64(15))


@kernel(READ_BYTES, READ_INT32, READ_BYTES, int64, int64, INT32)
def find_partitions(
    keys: ByteArray, ends: Int32Array, valid: ByteArray, count: int, sticky: int, out: Int32Array
) -> int:
    """The partition of each key, of `count`; `sticky` for those without one. How many those are."""
    nulls = int64(0)
    for row in range(len(out)):
        length = _length(ends, valid, row)
        if length < 0:
            out[row] = sticky
            nulls += 1
        else:
            out[row] = (_murmur2(keys, int64(ends[row]), length) & 0x7FFFFFFF) % count
    return nulls
