"""A first look at JSON values by machine code: which of them can be parsed together, as one text.

Parsing many values in one go is fast but knows no borders: half an object in one value and the rest in the next would
become one row, and two objects in one value two, so that all rows behind are shifted. What passes here cannot do that:
a value that begins with `{`, ends with `}`, and in which no other `}` is followed by anything but `,`, `]` or `}`. In a
text of such values a row can only end where a value ends, because whatever follows a row must begin with `{`. So if the
parser is content and finds as many rows as there are values, row i is value i.
"""

from headrace.spark.compiled import (
    BYTES,
    READ_BYTES,
    READ_INT32,
    ByteArray,
    Int32Array,
    int64,
    kernel,
    part,
    uint8,
    uint64,
)

NULL, WHOLE, ODD, EMPTY, NOT_UTF8, TOO_DEEP = range(6)
"""What a value may be: null, fit to be parsed with others, to be parsed alone, or beyond parsing."""

DEPTH_MAX = 500
"""Brackets within brackets; beyond this a value is refused rather than followed."""

_SPACE, _TAB, _NEWLINE, _RETURN = 0x20, 0x09, 0x0A, 0x0D
_QUOTE, _BACKSLASH, _COMMA = 0x22, 0x5C, 0x2C
_OPEN_LIST, _CLOSE_LIST, _OPEN, _CLOSE = 0x5B, 0x5D, 0x7B, 0x7D


@part
def _is_space(byte: int) -> bool:
    """Whether JSON calls a byte whitespace."""
    return byte in (_SPACE, _NEWLINE, _RETURN, _TAB)


@part
def _tail_bytes(data: ByteArray, at: int, end: int) -> int:
    """How many bytes follow the first byte of the UTF-8 sequence at a place; -1 if it is none (RFC 3629, section 4)."""
    lead = data[at]
    if lead < 0x80:
        return int64(0)
    low, high, tail = 0x80, 0xBF, 1
    if lead < 0xC2 or lead > 0xF4:
        return int64(-1)
    if lead >= 0xF0:
        tail = 3
        low = 0x90 if lead == 0xF0 else 0x80
        high = 0x8F if lead == 0xF4 else 0xBF
    elif lead >= 0xE0:
        tail = 2
        low = 0xA0 if lead == 0xE0 else 0x80
        high = 0x9F if lead == 0xED else 0xBF
    if at + tail >= end or data[at + 1] < low or data[at + 1] > high:
        return int64(-1)
    for index in range(2, tail + 1):
        if data[at + index] & 0xC0 != 0x80:
            return int64(-1)
    return int64(tail)


@part
def _is_utf8(data: ByteArray, at: int, end: int) -> bool:
    """Whether bytes are text."""
    while at < end:
        tail = _tail_bytes(data, at, end)
        if tail < 0:
            return False
        at += tail + 1
    return True


@part
def _depth(data: ByteArray, at: int, end: int) -> int:
    """How deep brackets lie in brackets, those in strings not counted."""
    depth, deepest, in_string = 0, 0, False
    while at < end:
        byte = data[at]
        if in_string:
            if byte == _BACKSLASH:
                at += 1
            elif byte == _QUOTE:
                in_string = False
        elif byte == _QUOTE:
            in_string = True
        elif byte in (_OPEN, _OPEN_LIST):
            depth += 1
            deepest = max(deepest, depth)
        elif byte in (_CLOSE, _CLOSE_LIST):
            depth -= 1
        at += 1
    return deepest


@part
def _goes_on(data: ByteArray, at: int, last: int) -> bool:
    """Whether every `}` before the last byte is followed by what can only go on in the same object."""
    while at < last:
        if data[at] != _CLOSE:
            at += 1
            continue
        at += 1
        while _is_space(data[at]):
            at += 1
        if data[at] != _COMMA and data[at] != _CLOSE and data[at] != _CLOSE_LIST:
            return False
    return True


@part
def _look(data: ByteArray, begin: int, end: int) -> int:
    """What one value is."""
    while begin < end and _is_space(data[begin]):
        begin += 1
    while begin < end and _is_space(data[end - 1]):
        end -= 1
    if begin == end:
        return int64(EMPTY)
    bits, opening, closing, first = uint8(0), int64(0), int64(0), uint64(begin)
    for index in range(uint64(end - begin)):  # Unsigned and without a branch, so that it looks at many at once.
        byte = data[first + index]
        bits |= byte
        opening += int64(byte == _OPEN) + int64(byte == _OPEN_LIST)
        closing += int64(byte == _CLOSE)
    if bits >= 0x80 and not _is_utf8(data, begin, end):
        return int64(NOT_UTF8)
    if opening > DEPTH_MAX and _depth(data, begin, end) > DEPTH_MAX:
        return int64(TOO_DEEP)
    if data[begin] != _OPEN or data[end - 1] != _CLOSE:
        return int64(ODD)
    if closing > 1 and not _goes_on(data, begin, end - 1):
        return int64(ODD)
    return int64(WHOLE)


@kernel(READ_BYTES, READ_INT32, READ_BYTES, BYTES)
def screen(data: ByteArray, ends: Int32Array, validity: ByteArray, kinds: ByteArray) -> int:
    """Write what each value is; how many are WHOLE. No validity at all means that nothing is null."""
    whole = int64(0)
    for row in range(len(kinds)):
        if len(validity) > 0 and validity[row >> 3] >> (row & 7) & 1 == 0:
            kinds[row] = NULL
            continue
        kind = _look(data, int64(ends[row]), int64(ends[row + 1]))
        kinds[row] = kind
        whole += int64(kind == WHOLE)
    return whole
