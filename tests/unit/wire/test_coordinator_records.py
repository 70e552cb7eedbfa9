"""The records of the coordinators' topics, in Kafka's bytes."""

from uuid import UUID

import pytest

from headrace.model.errors import MalformedRequest
from headrace.model.group_records import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from headrace.model.ids import ZERO_ID
from headrace.model.share_state_records import ShareSnapshotKey
from headrace.model.streams_group_records import StreamsGroupMetadataKey
from headrace.model.transaction_records import TransactionLogKey, TransactionLogValue
from headrace.wire.coordinator_records import (
    GROUP_RECORDS,
    SHARE_STATE_RECORDS,
    TRANSACTION_RECORDS,
    UnknownRecord,
)


def test_an_offset_is_kafkas_bytes():
    """Does a committed offset stand in the log as Kafka writes it?"""
    key, value = GROUP_RECORDS.encode(
        OffsetCommitKey(group="g", topic="t", partition=3), OffsetCommitValue(offset=5, metadata="m")
    )
    assert key == b"\0\1\0\1g\0\1t\0\0\0\3"
    assert value == b"\0\4" + (5).to_bytes(8, "big") + b"\xff\xff\xff\xff" + b"\2m" + bytes(8) + b"\0"


def test_an_offset_may_tell_its_topics_id():
    """Is the id of a topic the tagged field that Kafka writes (KIP-848)?"""
    topic_id = UUID(int=2**127 + 5)
    key, value = OffsetCommitKey(group="g", topic="t"), OffsetCommitValue(offset=5, topic_id=topic_id)
    written = GROUP_RECORDS.encode(key, value)
    assert written[1].endswith(bytes(8) + b"\1\0\x10" + topic_id.bytes)
    assert GROUP_RECORDS.decode(*written) == (key, value)


def test_a_key_without_a_value_is_a_tombstone():
    """Is forgetting a group a key alone?"""
    assert GROUP_RECORDS.encode(GroupMetadataKey(group="g"), None) == (b"\0\2\0\1g", None)
    assert GROUP_RECORDS.decode(b"\0\2\0\1g", None) == (GroupMetadataKey(group="g"), None)


@pytest.mark.parametrize(
    ("classic", "tagged"),
    [(None, b"\1\0\1\0"), (ClassicMemberMetadata(session_timeout_ms=1), b"\1\0\7\1\0\0\0\1\1\0")],
    ids=["none", "classic"],
)
def test_a_tagged_struct_may_be_null(classic, tagged):
    """Is a member of the new protocol told from a classic one as Kafka tells them, whose default is an empty struct?"""
    key = ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=classic)
    written = GROUP_RECORDS.encode(key, value)
    assert written[1].endswith(tagged)
    assert GROUP_RECORDS.decode(*written) == (key, value)


@pytest.mark.parametrize(
    ("codec", "key", "value"),
    [
        (GROUP_RECORDS, StreamsGroupMetadataKey(group_id="g"), None),
        (TRANSACTION_RECORDS, TransactionLogKey(transactional_id="x"), TransactionLogValue(producer_id=7)),
        (SHARE_STATE_RECORDS, ShareSnapshotKey(group_id="g", partition=1), None),
    ],
    ids=["streams", "transaction", "share"],
)
def test_every_family_comes_back(codec, key, value):
    """Is what was written what is read?"""
    assert codec.decode(*codec.encode(key, value)) == (key, value)
    assert codec.encode_all([(key, value), (key, None)]) == [codec.encode(key, value), codec.encode(key, None)]


@pytest.mark.parametrize("metadata", ["", "note"])
@pytest.mark.parametrize("topic_id", [ZERO_ID, UUID(int=1), UUID(int=2**128 - 1)])
@pytest.mark.parametrize("offset", [0, 2**63 - 1])
def test_offsets_are_written_the_same_both_ways(metadata, topic_id, offset):
    """Is an offset that takes the short way written as the long way would?"""
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(
        offset=offset, leader_epoch=-1, metadata=metadata, commit_timestamp=1_700_000_000_000, topic_id=topic_id
    )

    assert [GROUP_RECORDS.encode(key, value)] == GROUP_RECORDS.encode_all([(key, value)])


def test_records_of_later_days_are_told_from_broken_ones():
    """Can a record that a newer Kafka wrote be passed over, and is a damaged one no such?"""
    with pytest.raises(UnknownRecord):
        GROUP_RECORDS.decode(b"\0\x63rest", b"")
    with pytest.raises(UnknownRecord):
        GROUP_RECORDS.decode(b"\0\2\0\1g", b"\0\x63")
    for broken in (b"", b"\0", b"\0\2\0\5g"):
        with pytest.raises(MalformedRequest):
            GROUP_RECORDS.decode(broken, None)
