"""Finding records by their timestamps; may read and decompress, so never on the event loop."""

from collections.abc import Iterator, Sequence

from headrace.records.batch import BatchHeader, CorruptBatch, check_batch
from headrace.records.walk import Record, walk
from headrace.storage.segment import NO_TIMESTAMP, Segment


def first_at(
    segments: Sequence[Segment], timestamp_ms: int, log_start_offset: int, max_bytes: int
) -> tuple[int, int, int] | None:
    """Timestamp, offset and leader epoch of the first record, by offset, that is not before `timestamp_ms`."""
    for segment in segments:
        if 0 <= segment.end_offset <= log_start_offset or segment.max_timestamp()[0] < timestamp_ms:
            continue
        start = max(segment.offset_before_time(timestamp_ms), log_start_offset)
        for _, header, view in segment.batches(segment.position_before(start)):
            if header.max_timestamp < timestamp_ms or header.last_offset < log_start_offset:
                continue
            for record in _readable(view, max_bytes):
                if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                    return record.timestamp, record.offset, header.leader_epoch
    return None


def latest(segments: Sequence[Segment], log_start_offset: int, max_bytes: int) -> tuple[int, int, int] | None:
    """Timestamp, offset and leader epoch of the record with the greatest timestamp, the first of equals."""
    live = [segment for segment in segments if not 0 <= segment.end_offset <= log_start_offset]
    segment = max(live, key=lambda segment: segment.max_timestamp()[0])
    timestamp_ms, last_offset = segment.max_timestamp()
    if timestamp_ms < 0:
        return None
    for _, header, view in segment.batches(segment.position_before(last_offset)):
        if header.last_offset >= last_offset:
            found = _latest_in(header, view, log_start_offset, max_bytes)
            if found is not None and found[0] == timestamp_ms:
                return found
            break
    return _latest_by_walking(live, log_start_offset, max_bytes)


def _latest_by_walking(
    segments: Sequence[Segment], log_start_offset: int, max_bytes: int
) -> tuple[int, int, int] | None:
    """The same without the index, whose record lies before the log's start."""
    best: tuple[int, int, int] | None = None
    for segment in segments:
        for _, header, view in segment.batches(segment.position_before(log_start_offset)):
            if header.last_offset >= log_start_offset and header.max_timestamp > (best[0] if best else NO_TIMESTAMP):
                found = _latest_in(header, view, log_start_offset, max_bytes)
                if found is not None and (best is None or found[0] > best[0]):
                    best = found
    return best


def _latest_in(
    header: BatchHeader, view: memoryview, log_start_offset: int, max_bytes: int
) -> tuple[int, int, int] | None:
    """A batch's record with the greatest timestamp; where the broker stamped them all, that is the last."""
    if header.is_log_append_time and header.record_count:
        return header.max_timestamp, header.last_offset, header.leader_epoch
    best: tuple[int, int, int] | None = None
    for record in _readable(view, max_bytes):
        if record.offset >= log_start_offset and (best is None or record.timestamp > best[0]):
            best = record.timestamp, record.offset, header.leader_epoch
    return best


def _readable(view: memoryview, max_bytes: int) -> Iterator[Record]:
    """The records of a batch; one that is as its client sent it and still makes no sense is passed over."""
    try:
        yield from walk(view, max_bytes)
    except CorruptBatch:
        check_batch(view)
