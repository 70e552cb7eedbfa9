"""Do the lengths of a batch's records fill it exactly? Asked at every produce, so it may cost next to nothing.

Each record starts with its length, so the records form a chain that must have the declared number of links and end
where the batch ends. Looking at one link costs Python about 0.16 µs. But producers mostly send runs of records of one
size; in a run the length bytes stand in columns, one stride apart, and a strided slice compares a whole column in C.
Mostly all of a batch have one size, but for the byte that their offset deltas take more from the 64th on: that is asked
first. Otherwise the walk looks at one record, asks how far records like it go on, and only where sizes keep changing
goes on one by one.
"""

from headrace.records.batch import RECORD_BYTES_MIN, CorruptBatch
from headrace.records.compression import Bytes
from headrace.records.walk import read_varint

_FIRST_BORDER = 64
_SECOND_BORDER = 8192
_BORDERS = (_FIRST_BORDER, _SECOND_BORDER, 1 << 20, 1 << 27, 1 << 31)
"""Where a record's offset delta takes one byte more: records of one size are a byte longer from there on."""
_BURST = 32
"""Records taken one by one before a run is looked for again, where the last look found none."""
_RUN_WORTH_IT = 16
_WINDOW = 64
"""Records compared at first, so that a look in vain stays cheap however long the batch is."""
_ONE_BYTE_LENGTH_MIN = (RECORD_BYTES_MIN - 1) * 2


def check_chain(payload: bytes, count: int) -> int:
    """Where the last of `count` records starts, if their lengths fill the payload exactly; else CorruptBatch. HOT."""
    try:
        return (count > 1 and _even_start(payload, count)) or _follow_parts(payload, count)
    except IndexError:
        raise CorruptBatch("the records end inside a record's length") from None


def _even_start(payload: bytes, count: int) -> int:
    """Where the last record starts of a batch that is even up to the first border, and behind it; 0 if it is not."""
    start, part = 0, count
    if count > _FIRST_BORDER:
        start, part = _even_end(payload, 0, _FIRST_BORDER), count - _FIRST_BORDER
        if not start or count > _SECOND_BORDER:
            return 0
    end = _even_end(payload, start, part)
    return end - (end - start) // part if end == len(payload) else 0


def _follow_parts(payload: bytes, count: int) -> int:
    """The same for any batch, part by part between the borders."""
    position = last = done = 0
    for border in _BORDERS:
        if done == count:
            break
        part = min(border, count) - done
        end = _even_end(payload, position, part)
        if end:
            last, position = end - (end - position) // part, end
        else:
            last, position = _walk(payload, position, part)
        done += part
    if position != len(payload):
        raise CorruptBatch(f"the records' lengths lead to byte {position} of {len(payload)}")
    return last


def _even_end(payload: bytes, start: int, count: int) -> int:
    """Where `count` records end that all have the first one's length, of two bytes; 0 if they do not."""
    low, high = payload[start], payload[start + 1]
    if low & 0x81 != 0x80 or high >= 0x80:
        return 0
    stride = (low - 0x80 + (high << 7) >> 1) + 2
    end = start + stride * count
    if payload[start:end:stride].count(low) == count == payload[start + 1 : end : stride].count(high):
        return end if end <= len(payload) else 0
    return 0


def _walk(payload: bytes, position: int, count: int) -> tuple[int, int]:
    """The start and the end of the last of `count` records, run by run."""
    last, burst = position, 1
    while count:
        burst = min(burst, count)
        last, position = _follow(payload, position, burst)
        count -= burst
        run = _run_behind(payload, last, position, count) if count > 1 else 0
        burst = 1 if run >= _RUN_WORTH_IT else _BURST
        ahead = (position - last) * run
        last, position, count = last + ahead, position + ahead, count - run
    return last, position


def record_end(payload: Bytes, start: int) -> int:
    """Where the record at `start` ends by its own length; IndexError where the payload ends before."""
    length, body = read_varint(payload, start)
    if length < RECORD_BYTES_MIN - 1:
        raise CorruptBatch(f"a record of {length} bytes is too short")
    return body + length


def _follow(payload: bytes, position: int, count: int) -> tuple[int, int]:
    """The start of the last of `count` records, and its end, link by link; the shift to the right undoes the zigzag."""
    last = position
    for _ in range(count):
        last = position
        low = payload[position]
        if low & 1:
            raise CorruptBatch("a record's length is negative")
        if low < 0x80:
            if low < _ONE_BYTE_LENGTH_MIN:
                raise CorruptBatch(f"a record of {low >> 1} bytes is too short")
            position += (low >> 1) + 1
            continue
        high = payload[position + 1]
        if high < 0x80:
            position += (low - 0x80 + (high << 7) >> 1) + 2
        else:
            length, body = read_varint(payload, position)
            position = body + length
    return last, position


def _run_behind(payload: bytes, start: int, end: int, count: int) -> int:
    """How many of the `count` records behind the one from `start` to `end` carry the very same length."""
    stride = end - start
    run = min(count, _WINDOW)
    while True:
        wanted = run
        column = start
        while run:
            same = payload[column : column + 1]
            below = payload[column + stride : column + stride * (run + 1) : stride]
            run = len(below) - len(below.lstrip(same))
            if same < b"\x80":
                break
            column += 1
        if run < wanted or run == count:
            return run
        run = count
