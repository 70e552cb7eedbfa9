"""What compaction leaves of one batch.

A record stays if it is the last of its key, judged by the offset map; a tombstone (a key with a null value) stays until
its delete horizon. Offsets, sequence numbers and order never change: a batch keeps its base offset, last offset and
producer fields whatever is taken out of it.

The delete horizon (KIP-534). A reader that is behind must still meet the tombstone of a value it has seen, so a
tombstone stays for delete.retention.ms after *the cleaning that took away the older values*. When that is over is
written into the batch: attribute bit 6, and the horizon in the place of the base timestamp, from which every record's
timestamp delta then counts. From this follows what must never get a horizon: a tombstone that took no part in the
offset map, because then older values may still be there and would come back to life when it goes.

Transactions. Only what is decided is cleaned at all. The records of an aborted transaction take nobody's place and go
at once; a marker goes when nothing else is left of its transaction, after a delete horizon of its own. A marker that is
the last word of its producer stays, for its epoch.

A batch that is harmed, or cannot be read within the decompression cap, stays byte for byte and is counted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    check_batch,
)
from headrace.records.build import NO_EPOCH, assemble, move_timestamp
from headrace.records.compression import Bytes
from headrace.records.walk import RecordSpan, payload_of, record_timestamp, skim
from headrace.storage.cleaned_transactions import CleanedTransactions
from headrace.storage.offset_map import OffsetMap

_RECORDS_AT_A_TIME = 256
"""Records looked at between two breaths: about a millisecond, for which the event loop may have to wait."""


@dataclass(slots=True, kw_only=True)
class Compaction:
    """One round over one log: what is known of its keys, and what was met on the way."""

    offsets: OffsetMap
    end_offset: int
    """Up to here the map knows every key; from here on batches stay as they are."""
    last_offsets: Mapping[int, int]
    """The last offset of each active producer: that batch stays, if only as a header, for its sequence number."""
    last_epochs: Mapping[int, int]
    """The epoch of each active producer of whom only markers are known: the marker with it stays."""
    transactions: CleanedTransactions
    now_ms: int
    delete_retention_ms: int
    max_decompressed_bytes: int
    breathe: Callable[[], None]
    records_read: int = 0
    records_kept: int = 0
    unreadable_batches: int = 0

    def map_batch(
        self, header: BatchHeader, batch: memoryview, first_offset: int, transactions: CleanedTransactions
    ) -> bool:
        """Note the newest offset of each key in a dirty batch; False if the map is full."""
        if header.is_control or transactions.is_aborted(header) or not header.record_count:
            return True
        try:
            check_batch(batch)
            payload = payload_of(batch, header, self.max_decompressed_bytes)
            view = memoryview(payload)
            for index, span in enumerate(skim(payload, header)):
                offset = header.base_offset + span.offset_delta
                if offset < first_offset or span.key_length < 0:
                    continue
                if not self.offsets.put(view[span.key : span.key + span.key_length], offset):
                    return False
                if index % _RECORDS_AT_A_TIME == _RECORDS_AT_A_TIME - 1:
                    self.breathe()
        except CorruptBatch:
            pass  # Counted when the batch is copied; what was mapped of it is true whatever the rest is.
        return True

    def compact(self, header: BatchHeader, batch: memoryview, *, is_last: bool) -> Bytes | None:
        """What is left of a batch: itself, a smaller one, an empty one, or None.

        The last one of a new segment always stays, so that the next segment begins where this one ends: to recovery a
        gap between two segments looks like lost data.
        """
        is_aborted = not header.is_control and self.transactions.is_aborted(header)
        try:
            if header.is_control:
                return self._compact_marker(header, batch, is_last=is_last)
            if header.next_offset > self.end_offset and not is_aborted:
                return self._count(header, batch)
            check_batch(batch)
            payload = payload_of(batch, header, self.max_decompressed_bytes)
            kept = [] if is_aborted else self._kept(header, payload)
        except CorruptBatch:
            self.unreadable_batches += 1
            return batch
        self.records_read += header.record_count
        self.records_kept += len(kept)
        if not kept:
            stays = is_last or self.last_offsets.get(header.producer_id, -1) == header.last_offset
            return _emptied(header) if stays else None
        starts_horizon = self._starts_horizon(header, kept)
        if len(kept) == header.record_count and not starts_horizon:
            return batch
        horizon_ms = self.now_ms + self.delete_retention_ms if starts_horizon else None
        return _rewritten(header, payload, kept, horizon_ms)

    def _count(self, header: BatchHeader, batch: Bytes | None) -> Bytes | None:
        """Count the records of a batch that stays, or goes, as a whole."""
        self.records_read += header.record_count
        self.records_kept += header.record_count if batch is not None else 0
        return batch

    def _compact_marker(self, header: BatchHeader, batch: memoryview, *, is_last: bool) -> Bytes | None:
        """A control batch: itself, itself with a delete horizon, or None; never an emptied one."""
        check_batch(batch)
        if not self.transactions.may_go(header, batch):
            return self._count(header, batch)
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None and header.record_count:
            payload = payload_of(batch, header, self.max_decompressed_bytes)
            horizon_ms = self.now_ms + self.delete_retention_ms
            return self._count(header, _rewritten(header, payload, list(skim(payload, header)), horizon_ms))
        stays = is_last or self.last_epochs.get(header.producer_id) == header.producer_epoch
        if stays or (horizon_ms is not None and self.now_ms < horizon_ms):
            return self._count(header, batch)
        return self._count(header, None)

    def _kept(self, header: BatchHeader, payload: Bytes) -> list[RecordSpan]:
        view = memoryview(payload)
        horizon_ms = header.delete_horizon_ms
        tombstones_stay = horizon_ms is None or self.now_ms < horizon_ms
        kept = []
        for index, span in enumerate(skim(payload, header)):
            if span.key_length >= 0 and (span.value_length >= 0 or tombstones_stay):
                newest = self.offsets.get(view[span.key : span.key + span.key_length])
                if header.base_offset + span.offset_delta >= newest:
                    kept.append(span)
            if index % _RECORDS_AT_A_TIME == _RECORDS_AT_A_TIME - 1:
                self.breathe()
        return kept

    def _starts_horizon(self, header: BatchHeader, kept: list[RecordSpan]) -> bool:
        if header.delete_horizon_ms is not None:
            return False
        return any(span.value_length < 0 for span in kept)


def filler(header: BatchHeader, end_offset: int) -> bytearray:
    """A batch of nothing from behind `header` to `end_offset`, where another cleaner left the end of a segment open."""
    delta = end_offset - header.next_offset - 1
    nobody = header._replace(producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH, base_sequence=NO_SEQUENCE)
    return _emptied(nobody._replace(base_offset=header.next_offset, last_offset_delta=delta, attributes=0))


def _emptied(header: BatchHeader) -> bytearray:
    """A batch without records, as Kafka leaves one for its offsets and sequence numbers."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON)
    return assemble(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b"")


def _rewritten(header: BatchHeader, payload: Bytes, kept: list[RecordSpan], horizon_ms: int | None) -> bytearray:
    """The batch with only these records, and with the delete horizon if it begins now."""
    view = memoryview(payload)
    changed = header._replace(record_count=len(kept))
    if not header.is_log_append_time:
        latest_ms = max(record_timestamp(header, span.timestamp_delta) for span in kept)
        changed = changed._replace(max_timestamp=latest_ms)
    if horizon_ms is None:
        return assemble(changed, b"".join([view[span.start : span.end] for span in kept]))
    changed = changed._replace(attributes=header.attributes | DELETE_HORIZON, base_timestamp=horizon_ms)
    shift = header.base_timestamp - horizon_ms
    moved = [move_timestamp(payload, span, timestamp_delta=span.timestamp_delta + shift) for span in kept]
    return assemble(changed, b"".join(moved))
