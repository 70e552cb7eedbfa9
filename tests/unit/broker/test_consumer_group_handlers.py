"""The APIs of consumer groups, at a real broker: every version, errors, topics that come, and after restarts."""

import pytest

from headrace.broker.handlers import (
    api08_offset_commit,
    api16_list_groups,
    api37_create_partitions,
    api42_delete_groups,
    api68_consumer_group_heartbeat,
    api69_consumer_group_describe,
)
from headrace.broker.handlers.api69_consumer_group_describe import CONSUMER_MEMBER, GROUP_OPERATIONS
from headrace.model.errors import ErrorCode
from headrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from headrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

SETTINGS = {"offsets.topic.num.partitions": "3", "group.consumer.assignment.interval.ms": "0"}


@pytest.fixture
def desk(open_desk):
    """A broker with a topic."""
    desk = open_desk(SETTINGS)
    desk.run(desk.broker.groups.ensure_topic())
    desk.create("orders", partitions=2)
    return desk


def beat(desk, member_id="a", epoch=0, *, version=1, **fields):
    """A heartbeat's answer."""
    if epoch == 0:
        fields = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ("orders",),
            "topic_partitions": (),
            **fields,
        }
    request = ConsumerGroupHeartbeatRequest(
        **{"group_id": "g", "member_id": member_id, "member_epoch": epoch, **fields}
    )
    return desk.ask(api68_consumer_group_heartbeat.API, request, version=version)


def describe(desk, *group_ids, version=1, **fields):
    request = ConsumerGroupDescribeRequest(group_ids=group_ids, **fields)
    return desk.ask(api69_consumer_group_describe.API, request, version=version).groups


@pytest.mark.parametrize("version", [0, 1])
def test_member_joins_lives_and_leaves(desk, version):
    """Does a member get its partitions, its epoch and the heartbeat interval in every version?"""
    joined = beat(desk, version=version)
    topic_id = desk.broker.metadata.topics["orders"].topic_id
    (partitions,) = joined.assignment.topic_partitions

    assert (0, None, "a", 2, 5_000) == (
        joined.error_code,
        joined.error_message,
        joined.member_id,
        joined.member_epoch,
        joined.heartbeat_interval_ms,
    )
    assert TopicPartitions(topic_id=topic_id, partitions=(0, 1)) == partitions
    assert beat(desk, epoch=2, version=version).assignment is None
    assert -1 == beat(desk, epoch=-1, version=version).member_epoch


def test_old_version_is_given_an_id(desk):
    """Is a member without an id given one in version 0, and refused in version 1?"""
    first, second = (beat(desk, "", version=0).member_id for _ in range(2))

    assert 22 == len(first)
    assert first != second

    refused = beat(desk, "", version=1)

    assert (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.") == (refused.error_code, refused.error_message)


def test_subscription_by_expression(desk):
    """Is an expression matched on the server, for topics that come later, too, and refused if it is none?"""
    by_regex = {"subscribed_topic_names": None, "subscribed_topic_regex": "ord.*|new"}

    assert 1 == len(beat(desk, **by_regex).assignment.topic_partitions)

    desk.create("new")

    assert 2 == len(beat(desk, epoch=2).assignment.topic_partitions)
    assert (
        ErrorCode.INVALID_REGULAR_EXPRESSION == beat(desk, "b", **by_regex | {"subscribed_topic_regex": "("}).error_code
    )


def test_new_partitions_come_with_the_next_heartbeat(desk):
    """Does a member get partitions that were added to its topic?"""
    beat(desk)
    request = CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name="orders", count=3, assignments=None),), timeout_ms=1_000
    )

    assert 0 == desk.ask(api37_create_partitions.API, request).results[0].error_code
    assert ((0, 1, 2),) == tuple(each.partitions for each in beat(desk, epoch=2).assignment.topic_partitions)


def test_errors_say_what_is_wrong(desk):
    """Are errors told with their code and a sentence?"""
    beat(desk)
    refused = beat(desk, epoch=9)

    assert ErrorCode.FENCED_MEMBER_EPOCH == refused.error_code
    assert "must abandon all its partitions" in refused.error_message
    assert ErrorCode.UNKNOWN_MEMBER_ID == beat(desk, "x", 1).error_code
    assert ErrorCode.GROUP_ID_NOT_FOUND == beat(desk, "x", 1, group_id="nothing").error_code
    assert ErrorCode.UNSUPPORTED_ASSIGNOR == beat(desk, "x", server_assignor="mine").error_code


def test_protocol_can_be_switched_off(open_desk):
    """Is the protocol refused where the settings leave it out?"""
    desk = open_desk({"group.coordinator.rebalance.protocols": "classic"})

    assert ErrorCode.UNSUPPORTED_VERSION == beat(desk).error_code


def test_coordinator_that_is_not_there(open_desk):
    """Is a client sent to look for the coordinator if there is none?"""
    assert ErrorCode.COORDINATOR_NOT_AVAILABLE == beat(open_desk()).error_code


@pytest.mark.parametrize("version", [0, 1])
def test_description(desk, version):
    """Does an administrator see members with what they own, and which operations are allowed if it asks?"""
    beat(desk, instance_id="one", rack_id="r", server_assignor="range")
    group, missing, nameless = describe(desk, "g", "nothing", "", version=version, include_authorized_operations=True)
    (member,) = group.members

    assert ("Stable", 2, 2, "range", GROUP_OPERATIONS) == (
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        group.assignor_name,
        group.authorized_operations,
    )
    assert ("a", "one", "r", 2, "test", ("orders",), "") == (
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.subscribed_topic_names,
        member.subscribed_topic_regex,
    )
    assert member.assignment == member.target_assignment
    assert [("orders", (0, 1))] == [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions]
    assert (CONSUMER_MEMBER if version else -1) == member.member_type
    assert [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID] == [missing.error_code, nameless.error_code]


def test_group_is_listed_and_deleted(desk):
    """Is a consumer group listed with its type, and deleted when it is empty?"""
    beat(desk)
    listed = desk.ask(api16_list_groups.API, ListGroupsRequest(types_filter=("consumer",))).groups

    assert [("g", "consumer", "Stable", "consumer")] == [
        (each.group_id, each.protocol_type, each.group_state, each.group_type) for each in listed
    ]

    delete = DeleteGroupsRequest(groups_names=("g",))

    assert ErrorCode.NON_EMPTY_GROUP == desk.ask(api42_delete_groups.API, delete).results[0].error_code

    beat(desk, epoch=-1)

    assert 0 == desk.ask(api42_delete_groups.API, delete).results[0].error_code
    assert () == desk.ask(api16_list_groups.API, ListGroupsRequest()).groups


def commit(desk, epoch, partition=0):
    topic = OffsetCommitRequestTopic(
        name="orders", partitions=(OffsetCommitRequestPartition(partition_index=partition, committed_offset=1),)
    )
    request = OffsetCommitRequest(group_id="g", member_id="a", generation_id_or_member_epoch=epoch, topics=(topic,))
    answer = desk.ask(api08_offset_commit.API, request, version=9)
    return answer.topics[0].partitions[0].error_code


def test_commits_are_fenced_by_epochs(desk):
    """May a member commit in its epoch and, for what it keeps, in an older one, but in no newer one?"""
    beat(desk)

    assert 0 == commit(desk, 2)
    assert ErrorCode.STALE_MEMBER_EPOCH == commit(desk, 1)
    assert ErrorCode.STALE_MEMBER_EPOCH == commit(desk, 3)


@pytest.mark.parametrize("how", ["restart", "power_cut", "crash"])
def test_group_survives(desk, how):
    """Is a member that was answered still a member, with its partitions, however the broker ended?"""
    beat(desk)
    beat(desk, "b")
    getattr(desk, how)()

    assert (2, 0) == (beat(desk, epoch=2).member_epoch, beat(desk, "b", 3).error_code)
    assert {"a", "b"} == {member.member_id for member in describe(desk, "g")[0].members}
