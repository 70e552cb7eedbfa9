"""The records field of a Fetch answer becomes columns, without an object per record.

Three steps: machine code finds the batches and their headers, Python decides for each batch (is it wanted, unharmed,
aborted, compressed?), machine code reads the records of those that are taken. So a batch costs about a microsecond and
a record some tens of nanoseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from headrace.model.errors import HeadraceError
from headrace.records.aborted import AbortedProducers
from headrace.records.batch import CODEC_MASK, CONTROL, TRANSACTIONAL, CorruptBatch, header_fault, read_header
from headrace.records.compression import Bytes, decompress
from headrace.records.control import read_end_marker
from headrace.spark import decode_kernels as kernels
from headrace.spark.columns import Cells, Columns, HeaderCells
from headrace.spark.compiled import ByteArray, Int64Array, reading

BATCH_BYTES_MAX = 1024 * 1024 * 1024
"""What the records of one compressed batch may grow to."""
ANSWER_BYTES_MAX = 256 * 1024 * 1024
"""Once this much is decompressed, decoding stops at a batch's end: Arrow's offsets, and memory, have an end."""

_WANTED = {
    "offset": kernels.WANT_OFFSET,
    "timestamp": kernels.WANT_TIMESTAMP,
    "timestampType": kernels.WANT_TYPE,
    "key": kernels.WANT_KEY,
    "value": kernels.WANT_VALUE,
    "headers": kernels.WANT_HEADERS,
}
_CRC_FROM = 21


class BadRecords(HeadraceError):
    """What a broker sent as records is harmed, or of a kind that cannot be read; the message is one sentence."""


class _Batch(NamedTuple):
    """A row of the table of batches, in the order of its columns."""

    base_offset: int
    last_delta: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    record_count: int
    position: int
    end: int
    crc: int
    taken: int
    payload: int
    payload_end: int


@dataclass(slots=True)
class _Plan:
    """Which batches are read, and from which bytes."""

    table: Int64Array
    next_offset: int
    pieces: list[tuple[ByteArray, int, int]] = field(default_factory=list)
    """Bytes, and the rows of the table that lie in them."""
    count: int = 0
    payload_bytes: int = 0


def decode(
    records: Bytes, *, start: int, stop: int, wanted: frozenset[str], aborted: Sequence[tuple[int, int]] = ()
) -> Columns:
    """The records with offsets from `start` up to `stop`; BadRecords if what came cannot be trusted.

    `aborted` are the (producer id, first offset) pairs of a read_committed answer. A batch that is cut off at the end
    is left for the next Fetch, and so is what would make the columns too large: go on at `next_offset`.
    """
    data = _as_array(records)
    table, why, where = _find_batches(data)
    plan = _Plan(table, start)
    all_seen = _choose(plan, memoryview(records), data, start=start, stop=stop, aborted=AbortedProducers(aborted))
    if all_seen and why != kernels.CUT:
        raise _header_fault(records, why, where)
    return _read(plan, start=start, stop=stop, wanted=wanted)


def next_offset_of(records: Bytes, start: int) -> int:
    """The offset behind the last whole batch: where the next Fetch starts if `decode` takes all of this one."""
    table, _, _ = _find_batches(_as_array(records))
    if not len(table):
        return start
    return max(start, int(table[-1, kernels.BASE_OFFSET] + table[-1, kernels.LAST_DELTA]) + 1)


def _as_array(data: Bytes) -> ByteArray:
    array: ByteArray = reading(np.frombuffer(data, np.uint8))
    return array


def _find_batches(data: ByteArray) -> tuple[Int64Array, int, int]:
    """The table of whole batches, why there are no more, and where."""
    table = np.empty((len(data) // kernels.HEADER_BYTES + 1, kernels.TABLE_WIDTH), np.int64)
    ending = np.zeros(2, np.int64)
    count = kernels.find_batches(data, table, ending)
    return table[:count], int(ending[0]), int(ending[1])


def _header_fault(records: Bytes, why: int, where: int) -> BadRecords:
    """What is wrong with the header at a place."""
    if why == kernels.OLD:
        offset = int.from_bytes(records[where : where + 8], "big", signed=True)
        return BadRecords(
            f"The records from offset {offset} on are in a message format older than Kafka 0.11, which cannot be read."
        )
    try:
        reason = header_fault(read_header(records, where)) or "the batch is corrupt"
    except CorruptBatch as fault:
        reason = str(fault)
    return BadRecords(f"The broker sent a corrupt batch: {reason}.")


def _choose(
    plan: _Plan, view: memoryview, data: ByteArray, *, start: int, stop: int, aborted: AbortedProducers
) -> bool:
    """Check each batch and take those that count; whether all of them were looked at."""
    first, end_offset = 0, 0
    for row, numbers in enumerate(plan.table.tolist()):
        batch = _Batch._make(numbers)
        if batch.base_offset >= stop or plan.payload_bytes > ANSWER_BYTES_MAX:
            if batch.base_offset >= stop:
                plan.next_offset = stop
            break
        if batch.base_offset < end_offset:
            raise BadRecords(f"The broker sent a batch at offset {batch.base_offset} behind offset {end_offset - 1}.")
        end_offset = batch.base_offset + batch.last_delta + 1
        if end_offset <= start and not aborted:
            continue
        is_taken = _is_taken(batch, view, aborted)  # Asked of earlier batches too: they may end a transaction.
        if end_offset <= start:
            continue
        plan.next_offset = min(end_offset, stop)
        if not is_taken:
            continue
        if batch.attributes & CODEC_MASK:
            _add_piece(plan, data, first, row)
            first = row + 1
            _take_compressed(plan, batch, view, row)
        else:
            _take(plan, batch, row, batch.payload_end - batch.payload)
    else:
        _add_piece(plan, data, first, len(plan.table))
        return plan.next_offset < stop
    _add_piece(plan, data, first, row)
    return False


def _is_taken(batch: _Batch, view: memoryview, aborted: AbortedProducers) -> bool:
    """Whether a batch, once its CRC is right, has records for the reader."""
    if crc32c(view[batch.position + _CRC_FROM : batch.end]) != batch.crc:
        raise BadRecords(f"The CRC of the batch at offset {batch.base_offset} does not match its bytes.")
    if batch.producer_id >= 0:
        aborted.reach(batch.base_offset + batch.last_delta)
    if batch.attributes & CONTROL:
        _meet_marker(batch, view, aborted)
        return False
    return batch.record_count > 0 and not (batch.attributes & TRANSACTIONAL and batch.producer_id in aborted)


def _meet_marker(batch: _Batch, view: memoryview, aborted: AbortedProducers) -> None:
    """An abort marker ends the transaction of its producer."""
    try:
        marker = read_end_marker(view[batch.position : batch.end])
    except CorruptBatch as fault:
        raise BadRecords(f"The control batch at offset {batch.base_offset} is corrupt: {fault}.") from None
    if marker is not None and not marker.committed:
        aborted.end(batch.producer_id)


def _take(plan: _Plan, batch: _Batch, row: int, payload_bytes: int) -> None:
    """Put a batch down as one whose records are read."""
    plan.table[row, kernels.TAKEN] = 1
    plan.count += batch.record_count
    plan.payload_bytes += payload_bytes


def _take_compressed(plan: _Plan, batch: _Batch, view: memoryview, row: int) -> None:
    """The same for a compressed batch: its records lie in bytes of their own."""
    try:
        payload = decompress(batch.attributes & CODEC_MASK, view[batch.payload : batch.payload_end], BATCH_BYTES_MAX)
    except CorruptBatch as fault:
        raise BadRecords(f"The batch at offset {batch.base_offset} cannot be decompressed: {fault}.") from None
    if batch.record_count * kernels.RECORD_BYTES_MIN > len(payload):
        raise BadRecords(f"The batch at offset {batch.base_offset} has no room for its {batch.record_count} records.")
    plan.table[row, kernels.PAYLOAD], plan.table[row, kernels.PAYLOAD_END] = 0, len(payload)
    _take(plan, batch, row, len(payload))
    _add_piece(plan, _as_array(payload), row, row + 1)


def _add_piece(plan: _Plan, data: ByteArray, first: int, last: int) -> None:
    if first < last:
        plan.pieces.append((data, first, last))


class _Growing:
    """A column of byte strings while it is filled."""

    __slots__ = ("data", "ends", "validity")

    def __init__(self, count: int, data_bytes: int) -> None:
        self.data = np.empty(data_bytes, np.uint8)
        self.ends = np.empty(count + 1, np.int32)
        self.ends[0] = 0
        self.validity = np.zeros(count + 7 >> 3, np.uint8)

    def cells(self, count: int, null_count: int) -> Cells:
        """The first `count` cells, as they are from now on."""
        ends = self.ends[: count + 1]
        return Cells(self.data[: ends[count]], ends, self.validity if null_count else None, null_count)


def _read(plan: _Plan, *, start: int, stop: int, wanted: frozenset[str]) -> Columns:
    """Let the kernel read the records of the chosen batches into the wanted columns."""
    want = sum(_WANTED[name] for name in wanted)
    rows = {name: plan.count if name in wanted else 0 for name in _WANTED}
    offsets, timestamps = np.empty(rows["offset"], np.int64), np.empty(rows["timestamp"], np.int64)
    timestamp_types = np.empty(rows["timestampType"], np.int32)
    keys = _Growing(rows["key"], plan.payload_bytes if rows["key"] else 0)
    values = _Growing(rows["value"], plan.payload_bytes if rows["value"] else 0)
    places, cursor = np.empty((rows["headers"], 2), np.int64), np.zeros(kernels.CURSOR_WIDTH, np.int64)
    table, bounds = reading(plan.table), []
    for data, first, last in plan.pieces:
        begin = int(cursor[kernels.ROWS])
        corrupt = kernels.read_records(
            *(data, table, first, last, start, stop, want, offsets, timestamps, timestamp_types),
            *(keys.data, keys.ends, keys.validity, values.data, values.ends, values.validity, cursor, places),
        )
        if corrupt >= 0:
            raise BadRecords(
                f"The batch at offset {plan.table[corrupt, kernels.BASE_OFFSET]} holds a malformed record."
            )
        bounds.append((data, begin, int(cursor[kernels.ROWS])))
    count = int(cursor[kernels.ROWS])
    columns = Columns(count=count, next_offset=plan.next_offset)
    columns.offsets, columns.timestamps_ms = offsets[:count], timestamps[:count]
    columns.timestamp_types = timestamp_types[:count]
    if "key" in wanted:
        columns.keys = keys.cells(count, int(cursor[kernels.KEY_NULLS]))
    if "value" in wanted:
        columns.values = values.cells(count, int(cursor[kernels.VALUE_NULLS]))
    if "headers" in wanted:
        columns.headers = _read_headers(bounds, places, cursor, count)
    return columns


def _read_headers(
    bounds: list[tuple[ByteArray, int, int]], places: Int64Array, cursor: Int64Array, count: int
) -> HeaderCells:
    """The headers of all records, whose number and size are known by now."""
    total = int(cursor[kernels.HEADERS])
    keys = _Growing(total, int(cursor[kernels.HEADER_KEY_BYTES]))
    values = _Growing(total, int(cursor[kernels.HEADER_VALUE_BYTES]))
    lists = np.zeros(count + 1, np.int32)
    places, nulls = reading(places), 0
    for data, first, last in bounds:
        nulls += kernels.copy_headers(
            *(data, places, first, last, lists),
            *(keys.data, keys.ends, keys.validity, values.data, values.ends, values.validity),
        )
    return HeaderCells(lists, keys.cells(total, 0), values.cells(total, nulls))
