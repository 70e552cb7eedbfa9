"""Machine code that finds records which came before, by what is remembered of the last ones of their partition.

What is remembered is 128 bits of a hash over key and value, and the offset at which they were last seen: in two tables,
the younger of which takes what comes. When it holds as many entries as the memory reaches back, the older one, all of
whose entries are further away than that by then, is emptied and becomes the younger.
"""

from headrace.spark.compiled import (
    BYTES,
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
    uint64,
)

HASH, OTHER_HASH, OFFSET, WIDTH = 0, 1, 2, 3
"""What a row of a table holds."""
EMPTY = -1
"""The offset of a row that holds nothing."""
WHICH, ENTRIES, STATE_WIDTH = 0, 1, 2
"""What is known of both tables: which is the younger, and how many entries that has."""

_FACTOR, _OTHER_FACTOR = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
_FINAL_FACTOR = 0xFF51AFD7ED558CCD
_WORD = 8


@part
def _stirred(one: int, other: int, word: int) -> tuple[int, int]:
    """Both hashes with eight more bytes in them."""
    one = (one ^ word) * uint64(_FACTOR)
    other = (other ^ word) * uint64(_OTHER_FACTOR)
    return one ^ one >> uint64(32), other ^ other >> uint64(29)


@part
def _with_cell(one: int, other: int, data: ByteArray, ends: Int32Array, valid: ByteArray, row: int) -> tuple[int, int]:
    """Both hashes with a cell in them; null and empty are not the same."""
    if len(valid) and not valid[row >> 3] >> (row & 7) & 1:
        return _stirred(one, other, uint64(0xFFFFFFFFFFFFFFFF))
    at, end = uint64(ends[row]), uint64(ends[row + 1])
    one, other = _stirred(one, other, end - at)
    while end - at >= uint64(_WORD):
        word = uint64(data[at])
        for index in range(1, _WORD):
            word |= uint64(data[at + uint64(index)]) << uint64(8 * index)
        one, other = _stirred(one, other, word)
        at += uint64(_WORD)
    if at < end:
        word, shift = uint64(0), uint64(0)
        while at < end:
            word |= uint64(data[at]) << shift
            shift += uint64(8)
            at += uint64(1)
        one, other = _stirred(one, other, word)
    return one, other


@part
def _row_of(table: Int64Array, one: int, other: int) -> int:
    """The row that holds these hashes, or the empty one that would."""
    mask = len(table) - 1
    row = one & mask
    while table[row, OFFSET] != EMPTY and (table[row, HASH] != one or table[row, OTHER_HASH] != other):
        row = (row + 1) & mask
    return row


@kernel(
    READ_BYTES, READ_INT32, READ_BYTES, READ_BYTES, READ_INT32, READ_BYTES, READ_INT64, int64,
    TABLE, TABLE, INT64, BYTES,
)  # fmt: skip
def mark_new(
    keys: ByteArray, key_ends: Int32Array, key_valid: ByteArray,
    values: ByteArray, value_ends: Int32Array, value_valid: ByteArray,
    offsets: Int64Array, within: int,
    first: Int64Array, second: Int64Array, state: Int64Array, is_new: ByteArray,
) -> int:  # fmt: skip
    """Mark the records that equal none of the `within` offsets before them, and remember all; how many are new."""
    found = int64(0)
    for row in range(len(offsets)):
        young, old = (first, second) if state[WHICH] == 0 else (second, first)
        one, other = _with_cell(uint64(0), uint64(0), keys, key_ends, key_valid, row)
        one, other = _with_cell(one, other, values, value_ends, value_valid, row)
        one = (one ^ other >> uint64(31)) * uint64(_FINAL_FACTOR)
        left, right = int64(one ^ one >> uint64(33)), int64(other)
        place = _row_of(young, left, right)
        before = young[place, OFFSET]
        if before == EMPTY:
            before = old[_row_of(old, left, right), OFFSET]
            young[place, HASH], young[place, OTHER_HASH] = left, right
            state[ENTRIES] += 1
        young[place, OFFSET] = offsets[row]
        is_new[row] = before == EMPTY or offsets[row] - before > within
        found += is_new[row]
        if state[ENTRIES] >= within:
            old[:, OFFSET] = EMPTY
            state[WHICH], state[ENTRIES] = 1 - state[WHICH], 0
    return found
