"""Flat JSON objects read into columns by machine code.

What is simple is read here: whole numbers of up to 18 digits, numbers whose value is exact in a DOUBLE, strings, true,
false and null, in objects whose fields come once. Texts and the other numbers are left where they lie and only their
places are written down. Everything that is not wanted is checked all the same. Whatever is odd in any way, good JSON or
not, is left to json_records.py: a value is never judged here.
"""

import numpy as np

from headrace.spark.compiled import (
    BYTE_TABLE,
    BYTES,
    FLOAT_TABLE,
    INT32,
    READ_BYTES,
    READ_INT32,
    READ_INT64,
    TABLE,
    ByteArray,
    FloatArray,
    Int32Array,
    Int64Array,
    float64,
    int64,
    kernel,
    part,
    uint64,
)

BOOLEAN, INTEGER, FLOATING, TEXT = range(4)
"""What a field is read as."""
ABSENT, PRESENT, ESCAPED, INEXACT, NULL = range(5)
"""What was found of a field in a row: PRESENT and ready, a text with escapes, a number to be converted with care."""
NULL_VALUE, READ, ODD = range(3)
"""What became of a value."""
KEYS_REMEMBERED = 64
"""Objects of a topic mostly have the same fields in the same order: the keys of the last one are tried first."""
DEPTH_MAX = 63

_EXACT_DIGITS, _EXACT_MAX, _EXACT_POWER = 18, 1 << 53, 22
_POWERS = tuple(10.0**power for power in range(_EXACT_POWER + 1))

_SPACE, _TAB, _NEWLINE, _RETURN = 0x20, 0x09, 0x0A, 0x0D
_QUOTE, _BACKSLASH, _SLASH, _COMMA, _COLON = 0x22, 0x5C, 0x2F, 0x2C, 0x3A
_OPEN_LIST, _CLOSE_LIST, _OPEN, _CLOSE = 0x5B, 0x5D, 0x7B, 0x7D
_ZERO, _NINE, _MINUS, _PLUS, _DOT = 0x30, 0x39, 0x2D, 0x2B, 0x2E
_A, _B, _E, _F, _L, _N, _R, _S, _T, _U = (ord(letter) for letter in "abeflnrstu")
_LARGE_E = 0x45
_SHORT_ESCAPES = np.full(256, -1, np.int64)
_SHORT_ESCAPES[[ord(letter) for letter in '"\\/bfnrt']] = [ord(character) for character in '"\\/\b\f\n\r\t']


@part
def _skip_space(data: ByteArray, at: int, end: int) -> int:
    """The next place that is not whitespace, or the end."""
    while at < end and data[at] <= _SPACE:
        byte = data[at]
        if byte not in (_SPACE, _NEWLINE, _RETURN, _TAB):
            break
        at += 1
    return at


@part
def _is_at(data: ByteArray, at: int, end: int, byte: int) -> bool:
    """Whether a byte stands at a place."""
    return at < end and data[at] == byte


@part
def _hex(data: ByteArray, at: int, end: int) -> int:
    """The number of the four hexadecimal digits at a place; -1 if they are not there."""
    if end - at < 4:
        return int64(-1)
    number = int64(0)
    for index in range(4):
        byte = int64(data[at + index])
        if byte >= _ZERO and byte <= _NINE:
            digit = byte - _ZERO
        elif (byte | 0x20) >= _A and (byte | 0x20) <= _F:
            digit = (byte | 0x20) - _A + 10
        else:
            return int64(-1)
        number = number << 4 | digit
    return number


@part
def _escape(data: ByteArray, at: int, end: int) -> tuple[int, int]:
    """The character of the escape whose backslash is at a place, and the place behind it, which is -1 for a fault."""
    fault = int64(-1)
    if end - at < 2:
        return fault, fault
    byte = int64(data[at + 1])
    if byte == _U:
        high = _hex(data, at + 2, end)
        if high < 0xD800 or high > 0xDFFF:
            return high, fault if high < 0 else at + 6
        if high > 0xDBFF or not (_is_at(data, at + 6, end, _BACKSLASH) and _is_at(data, at + 7, end, _U)):
            return fault, fault
        low = _hex(data, at + 8, end)
        if low < 0xDC00 or low > 0xDFFF:
            return fault, fault
        return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), at + 12
    character = _SHORT_ESCAPES[byte]
    return character, fault if character < 0 else at + 2


# Stands in json_kernels too: numba keeps a compiled kernel until its own file changes, whatever it has inlined.
@part
def _tail_bytes(data: ByteArray, at: int, end: int) -> int:
    """How many bytes follow the first byte of the UTF-8 sequence at a place; -1 if it is none (RFC 3629, section 4)."""
    lead = data[at]
    if lead < 0x80:
        return int64(0)
    if lead < 0xC2 or lead > 0xF4:
        return int64(-1)
    low, high, tail = 0x80, 0xBF, 1
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
def _string(data: ByteArray, at: int, end: int) -> tuple[int, bool]:
    """Where the string ends whose first character is at a place, and whether it has escapes; -1 if it is odd."""
    escaped = False
    while at < end:
        byte = data[at]
        if byte == _QUOTE:
            return at, escaped
        if byte == _BACKSLASH:
            escaped = True
            _, at = _escape(data, at, end)
            if at < 0:
                return int64(-1), escaped
        elif byte >= 0x80:
            tail = _tail_bytes(data, at, end)
            if tail < 0:
                return int64(-1), escaped
            at += tail + 1
        elif byte < 0x20:
            return int64(-1), escaped
        else:
            at += 1
    return int64(-1), escaped


@part
def _digits_end(data: ByteArray, at: int, end: int) -> int:
    """The place behind the digits at a place; -1 if there is none."""
    first = at
    while at < end and data[at] >= _ZERO and data[at] <= _NINE:
        at += 1
    return at if at > first else int64(-1)


@part
def _number_end(data: ByteArray, at: int, end: int) -> tuple[int, bool]:
    """The place behind the number at a place, and whether it is a whole one; -1 if it is none (RFC 8259, section 6)."""
    if _is_at(data, at, end, _MINUS):
        at += 1
    leading_zero = _is_at(data, at, end, _ZERO)
    first = at
    at = _digits_end(data, at, end)
    if at < 0 or (leading_zero and at - first > 1):
        return int64(-1), False
    whole = True
    if _is_at(data, at, end, _DOT):
        whole = False
        at = _digits_end(data, at + 1, end)
        if at < 0:
            return int64(-1), False
    if at < end and (data[at] == _E or data[at] == _LARGE_E):
        whole = False
        at += 1
        if at < end and (data[at] == _MINUS or data[at] == _PLUS):
            at += 1
        at = _digits_end(data, at, end)
    return at, whole


@part
def _literal_end(data: ByteArray, at: int, end: int) -> int:
    """The place behind true, false or null; -1 if it is none of them."""
    if end - at >= 4:
        first, second, third, fourth = data[at], data[at + 1], data[at + 2], data[at + 3]
        if first == _T and second == _R and third == _U and fourth == _E:
            return at + 4
        if first == _N and second == _U and third == _L and fourth == _L:
            return at + 4
        if first == _F and second == _A and third == _L and fourth == _S and _is_at(data, at + 4, end, _E):
            return at + 5
    return int64(-1)


@part
def _scalar_end(data: ByteArray, at: int, end: int) -> int:
    """The place behind a string, number or literal; -1 if it is odd."""
    if data[at] == _QUOTE:
        close, _ = _string(data, at + 1, end)
        return close if close < 0 else close + 1
    if data[at] == _MINUS or (data[at] >= _ZERO and data[at] <= _NINE):
        behind, _ = _number_end(data, at, end)
        return behind
    return _literal_end(data, at, end)


@part
def _key_end(data: ByteArray, at: int, end: int) -> int:
    """The place of the value whose key comes next; -1 if it is odd."""
    at = _skip_space(data, at, end)
    if not _is_at(data, at, end, _QUOTE):
        return int64(-1)
    close, _ = _string(data, at + 1, end)
    if close < 0:
        return int64(-1)
    at = _skip_space(data, close + 1, end)
    return at + 1 if _is_at(data, at, end, _COLON) else int64(-1)


@part
def _close_all(data: ByteArray, at: int, end: int, stack: int, depth: int) -> tuple[int, int, int]:
    """Behind a value: close what ends here and stand before the next value; the place is -1 if it is odd."""
    while depth > 0:
        at = _skip_space(data, at, end)
        if at >= end:
            return int64(-1), stack, depth
        is_object = stack & 1
        if data[at] == _COMMA:
            at += 1
            if is_object:
                at = _key_end(data, at, end)
            return at, stack, depth
        if data[at] != (_CLOSE if is_object else _CLOSE_LIST):
            return int64(-1), stack, depth
        stack >>= 1
        depth -= 1
        at += 1
    return at, stack, depth


@part
def _value_end(data: ByteArray, at: int, end: int) -> int:
    """The place behind the value at a place, whatever it is; -1 if it is odd. One number holds the open brackets."""
    stack, depth = int64(0), int64(0)
    while True:
        at = _skip_space(data, at, end)
        if at >= end:
            return int64(-1)
        byte = data[at]
        if byte in (_OPEN, _OPEN_LIST):
            inside = _skip_space(data, at + 1, end)
            if _is_at(data, inside, end, _CLOSE if byte == _OPEN else _CLOSE_LIST):
                at = inside + 1
            else:
                if depth == DEPTH_MAX - 1:
                    return int64(-1)
                stack = stack << 1 | int64(byte == _OPEN)
                depth += 1
                at = _key_end(data, inside, end) if byte == _OPEN else inside
                if at < 0:
                    return int64(-1)
                continue
        else:
            at = _scalar_end(data, at, end)
            if at < 0:
                return int64(-1)
        at, stack, depth = _close_all(data, at, end, stack, depth)
        if at < 0 or depth == 0:
            return at


@part
def _whole_number(data: ByteArray, at: int, end: int) -> int:
    """The number whose digits, no more than 18, and sign fill the bytes from a place to the end."""
    negative = data[at] == _MINUS
    number = int64(0)
    for index in range(at + int64(negative), end):
        number = number * 10 + int64(data[index]) - _ZERO
    return -number if negative else number


@part
def _exact(data: ByteArray, at: int, end: int) -> tuple[float, bool]:
    """The number in the bytes from a place to the end, and whether it is exact.

    A mantissa below 2**53 and a power of ten up to 10**22 are exact as doubles, so their product is rounded only once.
    """
    negative = data[at] == _MINUS
    at += int64(negative)
    mantissa, digits, power, behind_dot = int64(0), int64(0), int64(0), False
    while at < end and (data[at] == _DOT or (data[at] >= _ZERO and data[at] <= _NINE)):
        if data[at] == _DOT:
            behind_dot = True
        else:
            digits += 1
            if digits > _EXACT_DIGITS:
                return 0.0, False
            mantissa = mantissa * 10 + int64(data[at]) - _ZERO
            power -= int64(behind_dot)
        at += 1
    if at < end or mantissa > _EXACT_MAX or power < -_EXACT_POWER:
        return 0.0, False
    number = float64(mantissa) / _POWERS[-power]
    return -number if negative else number, True


@part
def _find(data: ByteArray, at: int, end: int, names: ByteArray, name_ends: Int32Array) -> int:
    """Which field a key names; -1 if none that is wanted."""
    for field in range(len(name_ends) - 1):
        first, last = int64(name_ends[field]), int64(name_ends[field + 1])
        if last - first != end - at:
            continue
        same = True
        for index in range(last - first):
            if names[first + index] != data[at + index]:
                same = False
                break
        if same:
            return int64(field)
    return int64(-1)


@part
def _key(
    data: ByteArray, at: int, end: int, names: ByteArray, name_ends: Int32Array, seen: Int64Array, turn: int
) -> tuple[int, int]:
    """The field of the key whose first character is at a place, and the place of its closing quote, -1 if it is odd."""
    if turn < KEYS_REMEMBERED:
        length, before = seen[turn, 1], seen[turn, 0]
        if length >= 0 and _is_at(data, at + length, end, _QUOTE):
            same = True
            for index in range(length):
                if data[at + index] != data[before + index]:
                    same = False
                    break
            if same:
                return seen[turn, 2], at + length
    close, escaped = _string(data, at, end)
    if close < 0 or escaped:
        return int64(-1), int64(-1)
    field = _find(data, at, close, names, name_ends)
    if turn < KEYS_REMEMBERED:
        seen[turn, 0], seen[turn, 1], seen[turn, 2] = at, close - at, field
    return field, close


@part
def _take_number(
    data: ByteArray, at: int, end: int, kind: int, limit: int, field: int, row: int,
    numbers: Int64Array, floats: FloatArray, found: ByteArray,
) -> int:  # fmt: skip
    """Write down a number; the place behind it, -1 if it is odd."""
    behind, whole = _number_end(data, at, end)
    if behind < 0:
        return behind
    if kind == INTEGER:
        if not whole or behind - at > _EXACT_DIGITS:
            return int64(-1)
        number = _whole_number(data, at, behind)
        if number > limit or number < -limit - 1:
            return int64(-1)
        numbers[field, row] = number
        found[field, row] = PRESENT
        return behind
    exact_number, exact = _exact(data, at, behind)
    if exact:
        floats[field, row] = exact_number
        found[field, row] = PRESENT
    else:
        numbers[field, row] = at << 32 | (behind - at)
        found[field, row] = INEXACT
    return behind


@part
def _take(
    data: ByteArray, at: int, end: int, kind: int, limit: int, field: int, row: int,
    numbers: Int64Array, floats: FloatArray, found: ByteArray,
) -> int:  # fmt: skip
    """Write down a wanted field's value; the place behind it, -1 if it is odd, or comes for the second time."""
    if at >= end or found[field, row] != ABSENT:
        return int64(-1)
    byte = data[at]
    if byte == _N:
        found[field, row] = NULL
        return _literal_end(data, at, end)
    if kind == TEXT:
        if byte != _QUOTE:
            return int64(-1)
        close, escaped = _string(data, at + 1, end)
        if close < 0:
            return close
        numbers[field, row] = (at + 1) << 32 | (close - at - 1)
        found[field, row] = ESCAPED if escaped else PRESENT
        return close + 1
    if kind == BOOLEAN:
        if byte not in (_T, _F):
            return int64(-1)
        numbers[field, row] = int64(byte == _T)
        found[field, row] = PRESENT
        return _literal_end(data, at, end)
    return _take_number(data, at, end, kind, limit, field, row, numbers, floats, found)


@part
def _object(
    data: ByteArray, at: int, end: int, names: ByteArray, name_ends: Int32Array, kinds: Int64Array, limits: Int64Array,
    seen: Int64Array, row: int, numbers: Int64Array, floats: FloatArray, found: ByteArray,
) -> bool:  # fmt: skip
    """Read one object; whether there was nothing odd about it."""
    at = _skip_space(data, at, end)
    if not _is_at(data, at, end, _OPEN):
        return False
    at = _skip_space(data, at + 1, end)
    if _is_at(data, at, end, _CLOSE):
        return _skip_space(data, at + 1, end) == end
    turn = int64(0)
    while _is_at(data, at, end, _QUOTE):
        field, at = _key(data, at + 1, end, names, name_ends, seen, turn)
        if at < 0:
            return False
        at = _skip_space(data, at + 1, end)
        if not _is_at(data, at, end, _COLON):
            return False
        at = _skip_space(data, at + 1, end)
        if field < 0:
            at = _value_end(data, at, end)
        else:
            at = _take(data, at, end, kinds[field], limits[field], field, row, numbers, floats, found)
        if at < 0:
            return False
        at = _skip_space(data, at, end)
        if _is_at(data, at, end, _CLOSE):
            return _skip_space(data, at + 1, end) == end
        if not _is_at(data, at, end, _COMMA):
            return False
        at = _skip_space(data, at + 1, end)
        turn += 1
    return False


@kernel(
    *(READ_BYTES, READ_INT32, READ_BYTES, READ_BYTES, READ_INT32, READ_INT64, READ_INT64),
    *(TABLE, TABLE, FLOAT_TABLE, BYTE_TABLE, BYTES),
)
def read_objects(
    data: ByteArray, ends: Int32Array, validity: ByteArray,
    names: ByteArray, name_ends: Int32Array, kinds: Int64Array, limits: Int64Array,
    seen: Int64Array, numbers: Int64Array, floats: FloatArray, found: ByteArray, outcome: ByteArray,
) -> int:  # fmt: skip
    """Read each value's fields, one line of the tables per field; how many values are ODD.

    `floats` is the memory of `numbers` seen as doubles. A text's number is its place, and its length in the lower half.
    """
    odd = int64(0)
    for row in range(len(outcome)):
        if len(validity) > 0 and validity[row >> 3] >> (row & 7) & 1 == 0:
            outcome[row] = NULL_VALUE
            continue
        outcome[row] = READ
        begin, end = int64(ends[row]), int64(ends[row + 1])
        if not _object(data, begin, end, names, name_ends, kinds, limits, seen, row, numbers, floats, found):
            outcome[row] = ODD
            odd += 1
            for field in range(len(kinds)):
                found[field, row] = ABSENT
    return odd


@part
def _write_utf8(character: int, out: ByteArray, at: int) -> int:
    """Write a character; the place behind it."""
    if character < 0x80:
        out[at] = character
        return at + 1
    if character < 0x800:
        out[at] = 0xC0 | character >> 6
        out[at + 1] = 0x80 | (character & 0x3F)
        return at + 2
    if character < 0x10000:
        out[at] = 0xE0 | character >> 12
        out[at + 1] = 0x80 | (character >> 6 & 0x3F)
        out[at + 2] = 0x80 | (character & 0x3F)
        return at + 3
    out[at] = 0xF0 | character >> 18
    out[at + 1] = 0x80 | (character >> 12 & 0x3F)
    out[at + 2] = 0x80 | (character >> 6 & 0x3F)
    out[at + 3] = 0x80 | (character & 0x3F)
    return at + 4


@kernel(READ_BYTES, READ_INT64, READ_BYTES, BYTES, INT32)
def copy_texts(data: ByteArray, places: Int64Array, found: ByteArray, out: ByteArray, ends: Int32Array) -> int:
    """Copy one field's texts, their escapes resolved, one behind the other; their bytes, -1 if a place is none.

    What an escape stands for is never longer than the escape.
    """
    at = int64(0)
    ends[0] = 0
    for row in range(len(found)):
        begin = places[row] >> 32
        end = begin + (places[row] & 0xFFFFFFFF)
        if found[row] == ABSENT or found[row] == NULL:
            ends[row + 1] = at
            continue
        if begin < 0 or end > len(data) or end - begin > len(out) - at:
            return int64(-1)
        if found[row] != ESCAPED:
            source, to = uint64(begin), uint64(at)
            for index in range(uint64(end - begin)):
                out[to + index] = data[source + index]
            at += end - begin
        else:
            while begin < end:
                if data[begin] == _BACKSLASH:
                    character, begin = _escape(data, begin, end)
                    at = _write_utf8(character, out, at)
                else:
                    out[at] = data[begin]
                    begin += 1
                    at += 1
        ends[row + 1] = at
    return at
