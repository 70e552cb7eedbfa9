"""Share groups as administrators and members see them: heartbeats, descriptions, and offsets set and forgotten."""

import pytest

from headrace.broker.handlers import (
    api42_delete_groups,
    api77_share_group_describe,
    api90_describe_share_group_offsets,
    api91_alter_share_group_offsets,
    api92_delete_share_group_offsets,
)
from headrace.broker.share_groups import forget_group_states
from headrace.cores.groups.offsets import delete_group
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_group_describe,
)
from headrace.wire.messages.delete_groups import DeleteGroupsRequest

from .share_desk import ACCEPT, GROUP, SETTINGS, ShareDesk, acquired


@pytest.fixture
def shares(open_desk):
    """A broker with a topic."""
    shares = ShareDesk(open_desk(SETTINGS))
    shares.desk.create("orders", partitions=2)
    return shares


def describe(shares, *groups, operations=False):
    """What ShareGroupDescribe tells."""
    request = share_group_describe.ShareGroupDescribeRequest(group_ids=groups, include_authorized_operations=operations)
    return shares.ask(api77_share_group_describe.API, request).groups


def offsets(shares, *, group=GROUP, topics=None):
    """Start offset, lag and error of each partition, and the group's error."""
    asked = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
        group_id=group,
        topics=topics
        and tuple(
            describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes)
            for name, indexes in topics.items()
        ),
    )
    request = describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=(asked,))
    (told,) = shares.ask(api90_describe_share_group_offsets.API, request).groups
    return told.error_code, {
        (topic.topic_name, one.partition_index): (one.start_offset, one.lag, one.error_code)
        for topic in told.topics
        for one in topic.partitions
    }


def alter(shares, wanted, *, group=GROUP):
    """The group's error, and that of each partition."""
    request = alter_share_group_offsets.AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=tuple(
            alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=tuple(
                    alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=offset
                    )
                    for index, offset in partitions.items()
                ),
            )
            for name, partitions in wanted.items()
        ),
    )
    answer = shares.ask(api91_alter_share_group_offsets.API, request)
    return answer.error_code, {
        (topic.topic_name, one.partition_index): one.error_code
        for topic in answer.responses
        for one in topic.partitions
    }


def forget(shares, *names, group=GROUP):
    """The group's error, and that of each topic."""
    request = delete_share_group_offsets.DeleteShareGroupOffsetsRequest(
        group_id=group,
        topics=tuple(delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names),
    )
    answer = shares.ask(api92_delete_share_group_offsets.API, request)
    return answer.error_code, {topic.topic_name: topic.error_code for topic in answer.responses}


def delete(shares, group=GROUP):
    """The error code of deleting a group."""
    (result,) = shares.ask(api42_delete_groups.API, DeleteGroupsRequest(groups_names=(group,))).results
    return result.error_code


def test_first_member_hears_of_its_partitions_at_once(shares):
    """Is a joining member told its partitions in the first answer, with their states begun?"""
    answer = shares.join()

    assert (answer.error_code, answer.member_id, answer.heartbeat_interval_ms) == (0, "a", 5_000)
    assert [(one.topic_id, one.partitions) for one in answer.assignment.topic_partitions] == [
        (shares.topic_id(), (0, 1))
    ]
    again = shares.join(epoch=answer.member_epoch, topics=None)
    assert (again.member_epoch, again.assignment) == (answer.member_epoch, None)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member": ""}, ErrorCode.INVALID_REQUEST),
        ({"topics": ()}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 5}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"group": ""}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_bad_heartbeat_is_refused(shares, fields, code):
    """Is a heartbeat that cannot be answered with its error?"""
    assert shares.join(**fields).error_code == code


def test_heartbeat_without_a_share_coordinator(shares):
    """Is a member answered, without partitions, while their states cannot be begun, and given them later?"""
    shares.desk.run(shares.broker.share_state.ensure_topic())
    shares.broker.share_state.resign_all()
    answer = shares.join()
    assert (answer.error_code, answer.assignment.topic_partitions) == (0, ())

    shares.desk.run(shares.broker.share_state.lead_all())
    later = shares.join(epoch=answer.member_epoch, topics=None)

    assert [one.partitions for one in later.assignment.topic_partitions] == [(0, 1)]


def test_describing(shares):
    """Is a group told of with its members, and one that is not there with its error?"""
    shares.join()

    group, missing, nameless = describe(shares, GROUP, "missing", "")

    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "simple")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == ("a", "test", "/127.0.0.1")
    assert [(one.topic_name, one.partitions) for one in member.assignment.topic_partitions] == [("orders", (0, 1))]
    assert group.authorized_operations == -(2**31)
    assert (missing.error_code, missing.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group missing not found.",
    )
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
    (group,) = describe(shares, GROUP, operations=True)
    assert group.authorized_operations > 0


def test_offsets_and_lag(shares):
    """Are start offset and lag told, with what was accepted out of order taken off?"""
    alter(shares, {"orders": {0: 0}})
    shares.desk.produce("orders", 6)
    shares.join()
    shares.fetch()
    shares.acknowledge(epoch=1, acks=[(2, 3, ACCEPT)])

    assert offsets(shares) == (0, {("orders", 0): (0, 4, 0), ("orders", 1): (-1, -1, 0)})
    assert offsets(shares, topics={"orders": (0, 7), "missing": (0,)}) == (
        0,
        {
            ("orders", 0): (0, 4, 0),
            ("orders", 7): (-1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("missing", 0): (-1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        },
    )
    assert offsets(shares, group="missing") == (0, {})
    assert offsets(shares, group="missing", topics={"orders": (0,)}) == (0, {("orders", 0): (-1, -1, 0)})
    assert offsets(shares, group="") == (ErrorCode.INVALID_GROUP_ID, {})


def test_offsets_are_set(shares):
    """Does a group go on where it was set to, also if it had read further, and refuse while it has members?"""
    shares.desk.produce("orders", 6)
    assert alter(shares, {"orders": {0: 2, 9: 0}, "missing": {0: 0}}) == (
        0,
        {
            ("orders", 0): 0,
            ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        },
    )
    shares.join()
    # The batch comes as a whole; what lies before the start is not the member's.
    assert acquired(shares.fetch()) == [(0, 2, 5, 1)]
    assert shares.acknowledge(epoch=1, acks=[(2, 5, ACCEPT)]) == (0, 0)

    assert alter(shares, {"orders": {0: 1}}) == (ErrorCode.NON_EMPTY_GROUP, {})
    assert shares.join(epoch=-1).error_code == 0
    assert alter(shares, {"orders": {0: 4}}) == (0, {("orders", 0): 0})
    shares.join()

    assert acquired(shares.fetch()) == [(0, 4, 5, 1)]
    assert alter(shares, {"orders": {0: 1}}, group="") == (ErrorCode.INVALID_GROUP_ID, {})


def test_old_leader_cannot_write_over_a_state_set_anew(shares):
    """Is a leader that knows the state from before refused, and its knowledge dropped?"""
    alter(shares, {"orders": {0: 0}})
    shares.desk.produce("orders", 6)
    shares.join()
    shares.fetch()
    leader = shares.leader()
    shares.join(epoch=-1)
    alter(shares, {"orders": {0: 3}})

    with pytest.raises(KafkaError) as caught:
        shares.desk.run(leader.release("a"))

    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert offsets(shares)[1]["orders", 0][0] == 3


def test_offsets_are_forgotten(shares):
    """Does a group without members forget a topic, and begin it anew later?"""
    alter(shares, {"orders": {0: 2}})
    shares.join()
    assert forget(shares, "orders") == (ErrorCode.NON_EMPTY_GROUP, {})
    shares.join(epoch=-1)

    assert forget(shares, "orders", "missing") == (0, {"orders": 0, "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    assert offsets(shares) == (0, {})
    assert forget(shares, "orders")[1] == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert forget(shares, "orders", group="missing") == (ErrorCode.GROUP_ID_NOT_FOUND, {})
    assert forget(shares, "orders", group="") == (ErrorCode.INVALID_GROUP_ID, {})
    assert shares.join().error_code == 0
    assert set(offsets(shares)[1]) == {("orders", 0), ("orders", 1)}


def test_deleted_group_leaves_nothing(shares):
    """Does deleting a group delete its delivery states, and refuse while it has members?"""
    shares.join()
    assert delete(shares) == ErrorCode.NON_EMPTY_GROUP
    shares.join(epoch=-1)

    assert delete(shares) == 0

    assert [dict(shard.core.states) for shard in shares.broker.share_state.shards] == [{}, {}]
    assert describe(shares, GROUP)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_group_of_an_old_name_begins_anew(shares):
    """Can a group be made again whose states were left behind under higher epochs?"""
    for offset in range(4):
        alter(shares, {"orders": {0: offset}})
    shard = shares.broker.groups.shard_for(GROUP)
    shares.desk.run(shard.ask(lambda token, now_ms: delete_group(shard.core, GROUP, token, now_ms)))

    assert alter(shares, {"orders": {0: 9}}) == (0, {("orders", 0): 0})
    assert offsets(shares)[1]["orders", 0][0] == 9


def test_groups_survive_a_power_cut(shares):
    """Does a group know its members and partitions after a power cut?"""
    epoch = shares.join().member_epoch

    shares.desk.power_cut()
    shares.switch_on()

    assert shares.join(epoch=epoch, topics=None).member_epoch == epoch
    (group,) = describe(shares, GROUP)
    assert [one.member_id for one in group.members] == ["a"]


def test_other_groups_are_untouched(shares):
    """Is a group that is not there none of forgetting's business, and another share group's state left alone?"""
    shares.join()

    shares.desk.run(forget_group_states(shares.broker, "missing"))

    assert set(offsets(shares)[1]) == {("orders", 0), ("orders", 1)}
