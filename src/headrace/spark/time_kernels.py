"""Dates and times of day in ISO 8601, read by machine code.

    date        2026-11-15
    timestamp   2026-11-15, 2026-11-15T20:00, 2026-11-15 20:00:20, 2026-11-15T20:00:20.123456Z, ...+01:00, ...+0100

Without a zone a timestamp is UTC. Digits behind the microseconds are cut off.
"""

from headrace.spark.compiled import (
    INT64,
    READ_BYTES,
    READ_INT32,
    ByteArray,
    Int32Array,
    Int64Array,
    int64,
    kernel,
    part,
)

DATE, MOMENT, LOCAL_MOMENT = range(3)
"""What is looked for: days, microseconds of a moment, microseconds of a wall clock that knows no zone."""

_DASH, _PLUS, _COLON, _DOT, _T, _SPACE, _Z, _ZERO = 0x2D, 0x2B, 0x3A, 0x2E, 0x54, 0x20, 0x5A, 0x30
_DAY_US = 86_400_000_000
FAULT = -(2**63)
"""No date and no time: the one number that no text stands for."""


@part
def _digits(data: ByteArray, at: int, end: int, count: int) -> int:
    """The number of `count` digits at a place; -1 if they are not all there."""
    if end - at < count:
        return int64(-1)
    number = int64(0)
    for index in range(count):
        digit = int64(data[at + index]) - _ZERO
        if digit < 0 or digit > 9:
            return int64(-1)
        number = number * 10 + digit
    return number


@part
def _is_byte(data: ByteArray, at: int, end: int, byte: int) -> bool:
    """Whether a byte stands at a place."""
    return at < end and data[at] == byte


@part
def _days(data: ByteArray, at: int, end: int) -> int:
    """The days from 1970 to the date at a place, whose ten bytes are the next, in today's calendar at all times."""
    year, month, day = _digits(data, at, end, 4), _digits(data, at + 5, end, 2), _digits(data, at + 8, end, 2)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return int64(FAULT)
    if data[at + 4] != _DASH or data[at + 7] != _DASH:
        return int64(FAULT)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 31
    if month == 2:
        longest = 29 if leap else 28
    elif month in (4, 6, 9, 11):
        longest = 30
    if day > longest:
        return int64(FAULT)
    # Years that begin in March have their leap day at the end, so that months need no table.
    shifted = year - int64(month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + day_of_year - 719_468


@part
def _fraction(data: ByteArray, at: int, end: int) -> tuple[int, int]:
    """The microseconds behind a dot, and the place behind them, which is -1 if there is no digit."""
    microseconds, count = int64(0), int64(0)
    while at < end and data[at] >= _ZERO and data[at] <= _ZERO + 9:
        if count < 6:
            microseconds = microseconds * 10 + int64(data[at]) - _ZERO
        count += 1
        at += 1
    for _ in range(count, 6):
        microseconds *= 10
    return microseconds, at if count > 0 else int64(-1)


@part
def _clock(data: ByteArray, at: int, end: int) -> tuple[int, int]:
    """The microseconds of the day at a place, and the place behind them, which is -1 for a fault."""
    hour, minute, second, fraction = (
        _digits(data, at, end, 2),
        _digits(data, at + 3, end, 2),
        int64(0),
        int64(0),
    )
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or data[at + 2] != _COLON:
        return int64(0), int64(-1)
    at += 5
    if _is_byte(data, at, end, _COLON):
        second = _digits(data, at + 1, end, 2)
        if second < 0 or second > 59:
            return int64(0), int64(-1)
        at += 3
        if _is_byte(data, at, end, _DOT):
            fraction, at = _fraction(data, at + 1, end)
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction, at


@part
def _zone(data: ByteArray, at: int, end: int) -> int:
    """The microseconds that the zone at a place, which ends the text, is ahead of UTC."""
    if at == end or (data[at] == _Z and at + 1 == end):
        return int64(0)
    if data[at] != _PLUS and data[at] != _DASH:
        return int64(FAULT)
    ahead = int64(-1) if data[at] == _DASH else int64(1)
    hours, minutes = _digits(data, at + 1, end, 2), int64(0)
    at += 3
    if at < end:
        at += int64(data[at] == _COLON)
        minutes = _digits(data, at, end, 2)
        at += 2
    if hours < 0 or hours > 18 or minutes < 0 or minutes > 59 or at != end:
        return int64(FAULT)
    return ahead * (hours * 60 + minutes) * 60_000_000


@part
def _moment(data: ByteArray, at: int, end: int, kind: int) -> int:
    """What a text stands for: days or microseconds since 1970."""
    days = _days(data, at, end)
    if days == FAULT or at + 10 == end:
        return days if kind == DATE or days == FAULT else days * _DAY_US
    if data[at + 10] != _T and data[at + 10] != _SPACE:
        return int64(FAULT)
    microseconds, at = _clock(data, at + 11, end)
    if at < 0:
        return int64(FAULT)
    zone = _zone(data, at, end)
    if zone == FAULT or (kind == LOCAL_MOMENT and at != end):
        return int64(FAULT)
    return days if kind == DATE else days * _DAY_US + microseconds - zone


@kernel(READ_BYTES, READ_INT32, READ_BYTES, int64, INT64)
def read_moments(data: ByteArray, ends: Int32Array, valid: ByteArray, kind: int, out: Int64Array) -> int:
    """Write what each text stands for, 0 for null and FAULT for what is no date or timestamp; how many are none.

    No validity at all means that nothing is null.
    """
    faults = int64(0)
    for row in range(len(out)):
        out[row] = 0
        if len(valid) > 0 and valid[row] == 0:
            continue
        out[row] = _moment(data, int64(ends[row]), int64(ends[row + 1]), kind)
        faults += int64(out[row] == FAULT)
    return faults
