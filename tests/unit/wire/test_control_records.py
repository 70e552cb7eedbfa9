"""Control records of the metadata log in Kafka's bytes."""

from uuid import UUID

import pytest

from headrace.records.batch import CorruptBatch, read_header
from headrace.records.build import NewRecord, build_batch
from headrace.wire.control_records import build_control_batch, encode_control_record, read_control_batch
from headrace.wire.messages.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VoterEndpoint,
    VotersRecord,
    VotersVoter,
)

DIRECTORY = UUID(int=0x0123456789ABCDEF0123456789ABCDEF)
RECORDS = [
    LeaderChangeMessage(leader_id=3, voters=(LeaderChangeVoter(voter_id=3),), granting_voters=()),
    LeaderChangeMessage(version=1, leader_id=3, voters=(LeaderChangeVoter(voter_id=3, voter_directory_id=DIRECTORY),)),
    SnapshotHeaderRecord(last_contained_log_timestamp=77),
    SnapshotFooterRecord(),
    KRaftVersionRecord(k_raft_version=1),
    VotersRecord(
        voters=(
            VotersVoter(
                voter_id=1,
                voter_directory_id=DIRECTORY,
                endpoints=(VoterEndpoint(name="CONTROLLER", host="localhost", port=9093),),
                k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            ),
        )
    ),
]


def test_bytes_are_kafkas():
    """Does a leader change have the bytes that Kafka's schema gives it?"""
    key, value = encode_control_record(RECORDS[0])

    assert bytes.fromhex("0000 0002") == key
    assert bytes.fromhex("0000 00000003 02 00000003 00 01 00") == value


def test_round_trip():
    """Does each record come back as it went in, from one batch that is a control batch?"""
    batch = build_control_batch(RECORDS, timestamp_ms=5, base_offset=40, leader_epoch=2)

    header = read_header(batch)
    assert header.is_control
    assert (40, 45, 2) == (header.base_offset, header.last_offset, header.leader_epoch)
    assert RECORDS == list(read_control_batch(batch))


def test_unknown_types_are_passed_over():
    """Is a control record of a type of later days left out, and are the others read?"""
    known = NewRecord(1, *encode_control_record(RECORDS[3]))
    batch = build_batch([NewRecord(1, bytes.fromhex("0000 0063"), b"\0\0"), known], control=True)

    assert [RECORDS[3]] == list(read_control_batch(batch))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0"),
        (b"\0", b"\0\0"),
        (b"\0\0\0\2", None),
        (b"\0\0\0\2", b"\0"),
        (b"\0\0\0\2", b"\0\0\0"),
        (b"\0\0\0\6", b"\0\0\xff\xff\xff\xff\x0f"),
    ],
)
def test_broken_records_are_refused(key, value):
    """Is a control record that cannot be read refused rather than guessed at?"""
    batch = build_batch([NewRecord(1, key, value)], control=True)

    with pytest.raises(CorruptBatch):
        list(read_control_batch(batch))
