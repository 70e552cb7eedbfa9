"""Record batches read by machine code, each byte distrusted: no length is followed before it is checked.

The CRC only proves that the bytes are those the producer meant, not that it meant well. Nothing here is checked by
numba, so every read is preceded by a comparison with the end of what may be read. Faults are negative results.

Layouts: records/batch.py has the header's, records/walk.py the record's.
"""

from headrace.spark.compiled import (
    BYTES,
    INT32,
    INT64,
    READ_BYTES,
    READ_TABLE,
    TABLE,
    ByteArray,
    Int32Array,
    Int64Array,
    int8,
    int64,
    kernel,
    part,
    uint8,
    uint64,
)

BASE_OFFSET, LAST_DELTA, ATTRIBUTES, BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID, COUNT = range(7)
POSITION, END, CRC, TAKEN, PAYLOAD, PAYLOAD_END = range(7, 13)
TABLE_WIDTH = 13
"""One row per batch: what its header says, where it lies, whether its records are taken and where those lie."""

CUT, CORRUPT, OLD = 0, 1, 2
"""Why looking for batches ended: bytes that are no whole batch, a header that cannot be, a format before KIP-98."""

ROWS, KEY_BYTES, VALUE_BYTES, KEY_NULLS, VALUE_NULLS, HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = range(8)
CURSOR_WIDTH = 8
"""How far the columns are filled."""

WANT_OFFSET, WANT_TIMESTAMP, WANT_TYPE, WANT_KEY, WANT_VALUE, WANT_HEADERS = 1, 2, 4, 8, 16, 32

HEADER_BYTES = 61
LENGTH_OVERHEAD = 12
RECORD_BYTES_MIN = 7
LOG_APPEND_TIME = 0x08
INT32_VARINT_BYTES, INT64_VARINT_BYTES = 5, 10


@part
def _int32(data: ByteArray, at: int) -> int:
    """The big-endian number of four bytes at a place that is known to exist."""
    high = int64(int8(data[at]))
    return high << 24 | int64(data[at + 1]) << 16 | int64(data[at + 2]) << 8 | int64(data[at + 3])


@part
def _int64(data: ByteArray, at: int) -> int:
    """The big-endian number of eight bytes at a place that is known to exist."""
    return _int32(data, at) << 32 | (_int32(data, at + 4) & 0xFFFFFFFF)


@part
def _varint(data: ByteArray, at: int, end: int, bytes_max: int) -> tuple[int, int]:
    """The zigzag number at a place and the place behind it, which is -1 if the number does not end in time."""
    value = uint64(0)
    for index in range(bytes_max):
        if at + index >= end:
            break
        byte = data[at + index]
        if index == INT64_VARINT_BYTES - 1 and byte > 1:
            break  # The tenth byte has the last of 64 bits.
        value |= uint64(byte & 0x7F) << uint64(7 * index)
        if byte < 0x80:
            return int64(value >> uint64(1)) ^ -int64(value & uint64(1)), at + index + 1
    return int64(0), int64(-1)


@part
def _bytes_at(data: ByteArray, at: int, end: int) -> tuple[int, int, int]:
    """Where the byte string at a place begins, its length (-1 for null), and the place behind it (-1 for a fault)."""
    length, begin = _varint(data, at, end, INT32_VARINT_BYTES)
    if begin < 0 or length < -1 or length > end - begin:
        return int64(0), int64(-1), int64(-1)
    return begin, length, begin + max(length, 0)


@part
def _header_is_sound(data: ByteArray, at: int, length: int) -> bool:
    """Whether the numbers of a header fit together, so that they can be reckoned with; as in records/batch.py."""
    base_offset, last_delta, count = _int64(data, at), _int32(data, at + 23), _int32(data, at + 57)
    if last_delta < 0 or base_offset < 0 or base_offset > 0x7FFFFFFFFFFFFFFF - last_delta - 1:
        return False
    if count < 0 or count > last_delta + 1:
        return False
    compressed = data[at + 22] & 7
    return compressed != 0 or count * RECORD_BYTES_MIN <= length + LENGTH_OVERHEAD - HEADER_BYTES


@part
def _describe(data: ByteArray, at: int, length: int, table: Int64Array, row: int) -> None:
    """Write one batch's row of the table."""
    table[row, BASE_OFFSET] = _int64(data, at)
    table[row, LAST_DELTA] = _int32(data, at + 23)
    table[row, ATTRIBUTES] = int64(data[at + 21]) << 8 | int64(data[at + 22])
    table[row, BASE_TIMESTAMP] = _int64(data, at + 27)
    table[row, MAX_TIMESTAMP] = _int64(data, at + 35)
    table[row, PRODUCER_ID] = _int64(data, at + 43)
    table[row, COUNT] = _int32(data, at + 57)
    table[row, POSITION] = at
    table[row, END] = at + length + LENGTH_OVERHEAD
    table[row, CRC] = _int32(data, at + 17) & 0xFFFFFFFF
    table[row, TAKEN] = 0
    table[row, PAYLOAD] = at + HEADER_BYTES
    table[row, PAYLOAD_END] = at + length + LENGTH_OVERHEAD


@kernel(READ_BYTES, TABLE, INT64)
def find_batches(data: ByteArray, table: Int64Array, ending: Int64Array) -> int:
    """Fill the table with the whole batches at the beginning of the data; say how many, and why there are no more."""
    total, at, row = len(data), 0, 0
    ending[0] = CUT
    while total - at >= 17:
        length = _int32(data, at + 8)
        if data[at + 16] < 2:
            ending[0] = OLD
            break
        if length < HEADER_BYTES - LENGTH_OVERHEAD or data[at + 16] != 2:
            ending[0] = CORRUPT
            break
        if length > total - at - LENGTH_OVERHEAD:
            break
        if not _header_is_sound(data, at, length):
            ending[0] = CORRUPT
            break
        _describe(data, at, length, table, row)
        at += length + LENGTH_OVERHEAD
        row += 1
    ending[1] = at
    return row


@part
def _headers_at(data: ByteArray, at: int, end: int) -> tuple[int, int, int]:
    """How many headers a record has and the bytes of their keys and values; -1 headers if they do not fill it."""
    count, at = _varint(data, at, end, INT32_VARINT_BYTES)
    key_bytes = value_bytes = int64(0)
    if at < 0 or count < 0:
        return int64(-1), key_bytes, value_bytes
    for _ in range(count):
        _, key_length, at = _bytes_at(data, at, end)
        if at < 0 or key_length < 0:
            return int64(-1), key_bytes, value_bytes
        _, value_length, at = _bytes_at(data, at, end)
        if at < 0:
            return int64(-1), key_bytes, value_bytes
        key_bytes += key_length
        value_bytes += max(value_length, 0)
    return count if at == end else int64(-1), key_bytes, value_bytes


@part
def _record_at(data: ByteArray, at: int, limit: int) -> tuple[int, int, int, int, int, int, int, int]:
    """A record's end (-1 for a fault), its deltas, where key, value and headers begin, and the lengths of the two."""
    fault = int64(-1)
    length, at = _varint(data, at, limit, INT32_VARINT_BYTES)
    if at < 0 or length < RECORD_BYTES_MIN - 1 or length > limit - at:
        return fault, fault, fault, fault, fault, fault, fault, fault
    end = at + length
    delta_ms, at = _varint(data, at + 1, end, INT64_VARINT_BYTES)
    if at < 0:
        return fault, fault, fault, fault, fault, fault, fault, fault
    delta, at = _varint(data, at, end, INT32_VARINT_BYTES)
    if at < 0:
        return fault, fault, fault, fault, fault, fault, fault, fault
    key, key_length, at = _bytes_at(data, at, end)
    if at < 0:
        return fault, fault, fault, fault, fault, fault, fault, fault
    value, value_length, at = _bytes_at(data, at, end)
    if at < 0 or at >= end:
        return fault, fault, fault, fault, fault, fault, fault, fault
    return end, delta_ms, delta, key, key_length, value, value_length, at


@part
def _sum_overflows(left: int, right: int) -> bool:
    """Whether two numbers of 64 bits have a sum that needs more."""
    total = left + right
    return (left ^ total) & (right ^ total) < 0


@part
def _put(
    source: ByteArray, at: int, length: int, data: ByteArray, ends: Int32Array, validity: ByteArray, row: int
) -> int:
    """Append one cell to a column of byte strings; 1 if it is null."""
    filled = int64(ends[row])
    if length < 0:
        ends[row + 1] = filled
        return int64(1)
    begin, to = uint64(at), uint64(filled)
    for index in range(uint64(length)):  # Unsigned, so that no index counts from the end and many move at once.
        data[to + index] = source[begin + index]
    ends[row + 1] = filled + length
    validity[row >> 3] |= uint8(1 << (row & 7))
    return int64(0)


@kernel(
    *(READ_BYTES, READ_TABLE, *[int64] * 5, INT64, INT64, INT32),
    *(BYTES, INT32, BYTES, BYTES, INT32, BYTES, INT64, TABLE),
)
def read_records(  # noqa: C901  (one pass over the bytes; apart, it would be two)
    data: ByteArray,
    table: Int64Array,
    first: int,
    last: int,
    start: int,
    stop: int,
    want: int,
    offsets: Int64Array,
    timestamps: Int64Array,
    timestamp_types: Int32Array,
    keys: ByteArray,
    key_ends: Int32Array,
    key_validity: ByteArray,
    values: ByteArray,
    value_ends: Int32Array,
    value_validity: ByteArray,
    cursor: Int64Array,
    headers: Int64Array,
) -> int:
    """Append the records of the taken batches from row `first` to `last`; -1, or the row of a batch that is corrupt.

    Only offsets from `start` up to `stop` count. The columns wanted have room for all records of the batches.
    """
    row = cursor[ROWS]
    for batch in range(first, last):
        if table[batch, TAKEN] == 0:
            continue
        at, limit, last_delta = table[batch, PAYLOAD], table[batch, PAYLOAD_END], table[batch, LAST_DELTA]
        base_offset, base_ms = table[batch, BASE_OFFSET], table[batch, BASE_TIMESTAMP]
        appended = int64((table[batch, ATTRIBUTES] & LOG_APPEND_TIME) != 0)
        for _ in range(table[batch, COUNT]):
            at, delta_ms, delta, key, key_length, value, value_length, header = _record_at(data, at, limit)
            if at < 0 or delta < 0 or delta > last_delta or _sum_overflows(base_ms, delta_ms):
                return int64(batch)
            header_count, header_key_bytes, header_value_bytes = _headers_at(data, header, at)
            if header_count < 0:
                return int64(batch)
            if base_offset + delta < start or base_offset + delta >= stop:
                continue
            if want & WANT_OFFSET:
                offsets[row] = base_offset + delta
            if want & WANT_TIMESTAMP:
                timestamps[row] = table[batch, MAX_TIMESTAMP] if appended else base_ms + delta_ms
            if want & WANT_TYPE:
                timestamp_types[row] = appended
            if want & WANT_KEY:
                cursor[KEY_NULLS] += _put(data, key, key_length, keys, key_ends, key_validity, row)
            if want & WANT_VALUE:
                cursor[VALUE_NULLS] += _put(data, value, value_length, values, value_ends, value_validity, row)
            if want & WANT_HEADERS:
                headers[row, 0], headers[row, 1] = header, at
                cursor[HEADERS] += header_count
                cursor[HEADER_KEY_BYTES] += header_key_bytes
                cursor[HEADER_VALUE_BYTES] += header_value_bytes
            row += 1
        if at != limit:
            return int64(batch)
    cursor[ROWS] = row
    return int64(-1)


@kernel(READ_BYTES, READ_TABLE, int64, int64, INT32, BYTES, INT32, BYTES, BYTES, INT32, BYTES)
def copy_headers(
    data: ByteArray,
    places: Int64Array,
    first: int,
    last: int,
    lists: Int32Array,
    keys: ByteArray,
    key_ends: Int32Array,
    key_validity: ByteArray,
    values: ByteArray,
    value_ends: Int32Array,
    value_validity: ByteArray,
) -> int:
    """Append the headers of the records from row `first` to `last`, which are known to be sound; their null values."""
    nulls = int64(0)
    for row in range(first, last):
        filled = int64(lists[row])
        end = places[row, 1]
        count, at = _varint(data, places[row, 0], end, INT32_VARINT_BYTES)
        for _ in range(count):
            key, key_length, at = _bytes_at(data, at, end)
            value, value_length, at = _bytes_at(data, at, end)
            _put(data, key, key_length, keys, key_ends, key_validity, filled)
            nulls += _put(data, value, value_length, values, value_ends, value_validity, filled)
            filled += 1
        lists[row + 1] = filled
    return nulls
