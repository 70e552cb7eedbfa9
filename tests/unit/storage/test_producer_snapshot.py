"""Are producer snapshots Kafka's, with more in them than Kafka keeps, and are broken ones found out?"""

import struct

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.producers import ProducerBatch, ProducerEntry
from headrace.storage.producer_snapshot import ProducerSnapshots, decode_snapshot, encode_snapshot
from unit.storage.samples import producer

ENTRY = struct.Struct(">qhiqiqiq")


def test_kafka_reads_it():
    """Are the first bytes version 1, a CRC over all that follows, and Kafka's entries?"""
    entry = ProducerEntry(7, 2, 4, 900, 55, (ProducerBatch(0, 3, 10, 13, 800), ProducerBatch(4, 6, 14, 16, 900)))
    data = encode_snapshot([entry])

    assert struct.unpack_from(">hIi", data) == (1, crc32c(data[6:]), 1)
    assert ENTRY.unpack_from(data, 10) == (7, 2, 6, 16, 2, 900, 4, 55)


def test_all_batches_come_back():
    """Does a snapshot keep every remembered batch, and producers without any?"""
    entries = [producer(1, 10), ProducerEntry(2, 0, -1, 5, -1, ()), producer(3, 99)]

    assert decode_snapshot(encode_snapshot(entries)) == entries
    assert decode_snapshot(encode_snapshot([])) == []


def test_reading_kafkas():
    """Is a snapshot as Kafka writes it, without the appendix, read with the one batch it knows?"""
    body = struct.pack(">i", 2) + ENTRY.pack(7, 2, 1, 16, 3, 900, -1, -1) + ENTRY.pack(8, 0, -1, -1, 0, 5, 2, -1)
    data = struct.pack(">hI", 1, crc32c(body)) + body

    assert decode_snapshot(data) == [
        ProducerEntry(7, 2, -1, 900, -1, (ProducerBatch(2**31 - 2, 1, 13, 16, 900),)),
        ProducerEntry(8, 0, 2, 5, -1, ()),
    ]


def test_every_flipped_bit_is_found():
    """Is no snapshot with one bit changed taken for whole?"""
    data = encode_snapshot([producer(1, 10)])
    for position in range(len(data) * 8):
        broken = bytearray(data)
        broken[position // 8] ^= 1 << position % 8

        assert decode_snapshot(bytes(broken)) is None


@given(st.binary(max_size=150))
def test_any_bytes(body):
    """Does any content, even under a right CRC, decode or not, but never raise?"""
    decode_snapshot(body)
    decode_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)


def test_the_newest_whole_one(disk):
    """Is the newest whole snapshot at or below the limit found, and are two kept?"""
    snapshots = ProducerSnapshots(disk.files, disk.root, [])
    for offset in (10, 20, 30):
        snapshots.write(offset, [producer(offset, offset)], sync=True, recovery_point=offset)

    assert snapshots.offsets == [20, 30]
    assert sorted(disk.files.listdir(disk.root)) == ["00000000000000000020.snapshot", "00000000000000000030.snapshot"]
    assert snapshots.newest(100) == (30, [producer(30, 30)])
    assert snapshots.newest(29) == (20, [producer(20, 20)])
    assert snapshots.newest(19) is None

    disk.files.open(f"{disk.root}/00000000000000000030.snapshot", create=True)

    assert snapshots.newest(100) == (20, [producer(20, 20)])

    snapshots.remove_from(20)

    assert disk.files.listdir(disk.root) == ["00000000000000000020.snapshot"]
