"""The batch header: read, checked, patched."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from headrace.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    check_batch,
    header_fault,
    patch_append_time,
    patch_offsets,
    read_header,
    split_batches,
)
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk


def foreign_batch() -> bytes:
    """A transactional batch of three records as aiokafka builds it, its sequence about to wrap."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=1,
        producer_id=70,
        producer_epoch=3,
        base_sequence=2**31 - 2,
        batch_size=10_000,
    )
    for index in range(3):
        builder.append(index, 1_000 + index, b"key", b"value", [("name", b"header")])
    return bytes(builder.build())


def test_header_of_a_foreign_batch() -> None:
    """Does every field and property say what another implementation's reader says?"""
    batch = foreign_batch()
    theirs = DefaultRecordBatch(batch)
    header = check_batch(batch)

    assert (theirs.base_offset, theirs.magic, theirs.crc, theirs.attributes, theirs.last_offset_delta) == (
        header.base_offset,
        header.magic,
        header.crc,
        header.attributes,
        header.last_offset_delta,
    )
    assert (theirs.first_timestamp, theirs.max_timestamp) == (header.base_timestamp, header.max_timestamp)
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )
    assert (theirs.next_offset, len(batch)) == (header.next_offset, header.size)
    assert header.last_offset == 2
    assert header.last_sequence == 0
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert header.delete_horizon_ms is None
    assert len(list(theirs)) == header.record_count


def test_no_sequence_without_a_producer() -> None:
    """Is there no last sequence where there is no first?"""
    assert read_header(build_batch([NewRecord(0)] * 3)).last_sequence == -1


def test_patched_offsets_lie_outside_the_crc() -> None:
    """Is a batch still whole after it got its place in the log?"""
    batch = bytearray(foreign_batch())
    patch_offsets(batch, 0, base_offset=2**40, leader_epoch=17)
    header = check_batch(batch)

    assert (header.base_offset, header.leader_epoch) == (2**40, 17)
    assert [record.offset for record in walk(batch)] == [2**40, 2**40 + 1, 2**40 + 2]


def test_patched_append_time_is_every_records_timestamp() -> None:
    """Does a stamped batch carry the broker's time, a right CRC, and its records at that time?"""
    before = b"in front" + foreign_batch()
    batch = bytearray(before)
    patch_append_time(batch, 8, timestamp_ms=999_999)
    header = check_batch(batch, 8)

    assert header.is_log_append_time
    assert header.max_timestamp == 999_999
    assert {999_999} == {record.timestamp for record in walk(memoryview(batch)[8:])}
    assert before[:8] == batch[:8]


def test_every_flipped_bit_under_the_crc_is_noticed() -> None:
    """Is no single bit from the magic on ever trusted when it changed?"""
    good = foreign_batch()
    for position in range(16, len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[position] ^= 1 << bit
            with pytest.raises(CorruptBatch):
                check_batch(bad)


@pytest.mark.parametrize("keep", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, -1])
def test_a_cut_batch_is_corrupt(keep: int) -> None:
    """Is a batch that ends too early refused, wherever it was cut?"""
    with pytest.raises(CorruptBatch):
        check_batch(foreign_batch()[:keep])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("magic", 1),
        ("magic", 3),
        ("batch_length", 48),
        ("batch_length", -1),
        ("last_offset_delta", -1),
        ("base_offset", -1),
        ("base_offset", 2**63 - 1),
        ("record_count", -1),
        ("record_count", 4),
    ],
)
def test_header_faults(field: str, value: int) -> None:
    """Is each number no honest header can hold called out?"""
    header = read_header(foreign_batch())

    assert header_fault(header) is None
    assert header_fault(header._replace(**{field: value})) is not None


def test_more_records_than_bytes_are_a_fault() -> None:
    """Is a count that its bytes cannot hold refused, but only where the bytes are not compressed?"""
    crowd = read_header(build_batch([NewRecord(0)]))._replace(record_count=1_000, last_offset_delta=999)

    assert header_fault(crowd) is not None
    assert header_fault(crowd._replace(attributes=4)) is None


def test_compaction_may_leave_gaps() -> None:
    """Is a batch with fewer records than offsets, or none, still a batch?"""
    header = read_header(build_batch([NewRecord(0)] * 3))

    assert header_fault(header._replace(record_count=1)) is None
    assert header_fault(header._replace(record_count=0)) is None


def test_split_stops_at_a_partial_tail() -> None:
    """Are exactly the complete batches found, whatever piece of another one follows?"""
    one, two = build_batch([NewRecord(1)]), build_batch([NewRecord(2, b"k", b"v" * 50)] * 3, base_offset=1)
    for tail in (0, 5, HEADER_BYTES, len(two) - 1):
        found = list(split_batches(bytes(one + two + two[:tail])))

        assert [(0, check_batch(one)), (len(one), check_batch(two))] == found


def test_split_refuses_a_length_it_cannot_go_on_with() -> None:
    """Does a hostile length end the walk with an error instead of forever?"""
    batch = build_batch([NewRecord(1)])
    batch[8:12] = (0).to_bytes(4, "big")
    with pytest.raises(CorruptBatch):
        list(split_batches(batch + bytes(100)))


def test_header_is_a_plain_value() -> None:
    """Can a header be compared and changed like any tuple?"""
    header = read_header(build_batch([NewRecord(1)]))

    assert isinstance(header, BatchHeader)
    assert header == BatchHeader(*header)
