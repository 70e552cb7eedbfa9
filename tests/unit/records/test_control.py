"""Control records: the end of a transaction, written and read."""

import struct
import warnings

import pytest

from headrace.records.batch import CorruptBatch, check_batch
from headrace.records.build import NewRecord, build_batch
from headrace.records.control import ControlType, EndTransactionMarker, build_end_marker, read_end_marker

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, by kafka-python's own import
    from kafka.record.default_records import DefaultRecordBatch


@pytest.mark.parametrize("committed", [True, False])
def test_round_trip(committed: bool) -> None:
    """Does a marker come back as it was written, in a batch that says what it is?"""
    marker = EndTransactionMarker(committed=committed, coordinator_epoch=9, timestamp_ms=77)
    batch = build_end_marker(marker, producer_id=5, producer_epoch=2, base_offset=100, leader_epoch=4)
    header = check_batch(batch)

    assert read_end_marker(batch) == marker
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, -1)
    assert (header.base_offset, header.leader_epoch) == (100, 4)


@pytest.mark.parametrize("committed", [True, False])
def test_another_implementation_reads_it(committed: bool) -> None:
    """Does kafka-python see a commit or an abort in our marker?"""
    marker = EndTransactionMarker(committed=committed, coordinator_epoch=9, timestamp_ms=77)
    batch = DefaultRecordBatch(bytes(build_end_marker(marker, producer_id=5, producer_epoch=2)))
    record = next(batch)

    assert batch.is_control_batch
    assert (record.commit, record.abort) == (committed, not committed)


def test_other_batches_hold_no_marker() -> None:
    """Is there no marker in a data batch, in an emptied control batch, and in other control records?"""
    leader_change = NewRecord(1, struct.pack(">hh", 0, ControlType.LEADER_CHANGE), b"whatever")
    emptied = check_batch(build_batch([NewRecord(1)], control=True))._replace(record_count=0)

    assert read_end_marker(build_batch([NewRecord(1, b"\x00\x00\x00\x01", b"\x00" * 6)])) is None
    assert read_end_marker(b"", emptied) is None
    assert read_end_marker(build_batch([leader_change], control=True)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b""), (b"\x00\x00", b"\x00" * 6), (b"\x00\x00\x00\x01", None), (b"\x00\x00\x00\x00", b"\x00" * 5)],
)
def test_broken_markers(key: bytes | None, value: bytes | None) -> None:
    """Is a marker without a type or an epoch called corrupt?"""
    with pytest.raises(CorruptBatch):
        read_end_marker(build_batch([NewRecord(1, key, value)], control=True))
