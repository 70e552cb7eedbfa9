"""The records of share groups, in memory and in the log's bytes."""

from uuid import UUID

import pytest

from headrace.cores.groups.limits import GroupLimits
from headrace.cores.groups.shard import Groups
from headrace.cores.groups.share_group import NOTHING, ShareGroup, StateTopics, TopicState, member_tombstones
from headrace.cores.groups.share_limits import ShareGroupLimits, bounded, share_group_limits
from headrace.cores.groups.share_records import by_topic, current_value, state_topics_value, target_value
from headrace.cores.metadata import Metadata
from headrace.model.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from headrace.wire.coordinator_records import GROUP_RECORDS

FIRST, SECOND = UUID(int=1), UUID(int=2)
SOME = frozenset({(SECOND, 1), (FIRST, 2), (FIRST, 0)})
TOPICS = StateTopics(
    initializing={FIRST: TopicState(name="one", partitions=frozenset({3}))},
    initialized={FIRST: TopicState(name="one", partitions=frozenset({0, 2}))},
    deleting={SECOND: "two"},
)

RECORDS = [
    (ShareGroupMetadataKey(group_id="g"), ShareGroupMetadataValue(epoch=4, metadata_hash=-5)),
    (
        ShareGroupMemberMetadataKey(group_id="g", member_id="a"),
        ShareGroupMemberMetadataValue(
            rack_id="r", client_id="c", client_host="h", subscribed_topic_names=("one", "two")
        ),
    ),
    (
        ShareGroupTargetAssignmentMetadataKey(group_id="g"),
        ShareGroupTargetAssignmentMetadataValue(assignment_epoch=3, assignment_timestamp=77),
    ),
    (ShareGroupTargetAssignmentMemberKey(group_id="g", member_id="a"), target_value(SOME)),
    (ShareGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"), current_value(SOME, 3, 2)),
    (ShareGroupStatePartitionMetadataKey(group_id="g"), state_topics_value(TOPICS)),
]


@pytest.fixture
def groups():
    """An empty coordinator."""
    return Groups(Metadata(), GroupLimits)


@pytest.mark.parametrize("entry", RECORDS)
def test_bytes_and_back(entry):
    """Is a record what it was after it stood in the log?"""
    key, value = GROUP_RECORDS.encode(*entry)

    assert GROUP_RECORDS.decode(key, value) == entry


def test_replaying_makes_the_group(groups):
    """Does the log make the group that wrote it?"""
    for key, value in RECORDS:
        groups.replay(key, value)

    group = groups.groups["g"]
    assert isinstance(group, ShareGroup)
    assert (group.group_epoch, group.metadata_hash, group.assignment_epoch) == (4, -5, 3)
    assert (group.assignment_timestamp_ms, group.targets, group.state_topics) == (77, {"a": SOME}, TOPICS)
    member = group.members["a"]
    assert (member.topics, member.epoch, member.previous_epoch, member.assigned) == (("one", "two"), 3, 2, SOME)
    assert (group.subscribed_topics, group.initialized) == ({"one", "two"}, {FIRST: {0, 2}})


def test_tombstones_undo_each_record(groups):
    """Does each tombstone take back what its record said, in any order, and mean nothing without it?"""
    for key, value in RECORDS:
        groups.replay(key, value)
    for key, _ in reversed(RECORDS[1:]):
        groups.replay(key, None)

    group = groups.groups["g"]
    assert (group.members, group.targets, group.assignment_epoch, group.state_topics) == ({}, {}, 0, StateTopics())
    groups.replay(RECORDS[0][0], None)
    for key, _ in RECORDS:
        groups.replay(key, None)
    assert groups.groups == {}


def test_member_tombstones(groups):
    """Is a member forgotten by its tombstones, and the group not?"""
    for key, value in RECORDS:
        groups.replay(key, value)

    for key, value in member_tombstones("g", "a"):
        groups.replay(key, value)

    assert (groups.groups["g"].members, groups.groups["g"].targets) == ({}, {})


def test_order_does_not_depend_on_chance():
    """Is an assignment written in the same order however its set is laid out?"""
    assert by_topic(SOME) == [(FIRST, (0, 2)), (SECOND, (1,))]
    assert by_topic(NOTHING) == []


def test_limits():
    """Are the limits Kafka's where there are no settings, and a group's own within the broker's?"""
    settings = {"group.share.x": 5, "group.share.min.x": 2, "group.share.max.x": 9}

    assert share_group_limits(None, {}) == ShareGroupLimits()
    assert [bounded(settings, {"share.x": own} if own else {}, "x") for own in (None, "1", "7", "10")] == [5, 2, 7, 9]
