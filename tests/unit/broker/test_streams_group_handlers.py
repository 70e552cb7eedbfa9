"""The APIs of streams groups, at a real broker: joining, internal topics, errors, offsets, and after restarts."""

import pytest

from headrace.broker.authorized_operations import NOT_ASKED
from headrace.broker.handlers import (
    api08_offset_commit,
    api16_list_groups,
    api32_describe_configs,
    api42_delete_groups,
    api88_streams_group_heartbeat,
    api89_streams_group_describe,
)
from headrace.broker.handlers.api69_consumer_group_describe import GROUP_OPERATIONS
from headrace.model.errors import ErrorCode
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from headrace.wire.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}
SIMPLE = Topology(subtopologies=(Subtopology(subtopology_id="0", source_topics=("orders",)),))


def counting(**changelog):
    """A topology that repartitions and counts."""
    return Topology(
        subtopologies=(
            Subtopology(subtopology_id="0", source_topics=("orders",), repartition_sink_topics=("words",)),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=(TopicInfo(name="words"),),
                state_changelog_topics=(TopicInfo(name="counts", **changelog),),
            ),
        )
    )


@pytest.fixture
def desk(open_desk):
    """A broker with a topic."""
    desk = open_desk(SETTINGS)
    desk.run(desk.broker.groups.ensure_topic())
    desk.create("orders", partitions=2)
    return desk


def beat(desk, member_id="a", epoch=0, **fields):
    """A heartbeat's answer."""
    if epoch == 0:
        nothing = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
        fields = {"rebalance_timeout_ms": 60_000, "topology": SIMPLE, "process_id": "p", **nothing, **fields}
    request = StreamsGroupHeartbeatRequest(**{"group_id": "g", "member_id": member_id, "member_epoch": epoch, **fields})
    return desk.ask(api88_streams_group_heartbeat.API, request)


def describe(desk, *group_ids, **fields):
    request = StreamsGroupDescribeRequest(group_ids=group_ids, **fields)
    return desk.ask(api89_streams_group_describe.API, request).groups


def test_member_joins_lives_and_leaves(desk):
    """Does a member get its tasks, its epoch and the heartbeat interval?"""
    joined = beat(desk)

    assert (0, None, "a", 2, 5_000) == (
        joined.error_code,
        joined.error_message,
        joined.member_id,
        joined.member_epoch,
        joined.heartbeat_interval_ms,
    )
    assert (TaskIds(subtopology_id="0", partitions=(0, 1)),) == joined.active_tasks
    assert ((), (), ()) == (joined.standby_tasks, joined.warmup_tasks, joined.status)

    again = beat(desk, epoch=2)

    assert (2, None, None) == (again.member_epoch, again.active_tasks, again.standby_tasks)

    left = beat(desk, epoch=-1)

    assert (0, -1, ()) == (left.error_code, left.member_epoch, left.status)


def test_internal_topics_are_created_as_asked(desk):
    """Are missing topics created with the partitions and settings of the topology, and tasks given after that?"""
    joined = beat(desk, topology=counting(topic_configs=(KeyValue(key="cleanup.policy", value="compact"),)))

    assert [(3, "Internal topics are missing: counts, words")] == [
        (status.status_code, status.status_detail) for status in joined.status
    ]
    assert [2, 2] == [len(desk.broker.metadata.topics[name].partitions) for name in ("words", "counts")]

    resource = DescribeConfigsResource(resource_type=2, resource_name="counts", configuration_keys=("cleanup.policy",))
    (shown,) = desk.ask(api32_describe_configs.API, DescribeConfigsRequest(resources=(resource,))).results

    assert "compact" == shown.configs[0].value

    answer = beat(desk, epoch=joined.member_epoch)

    assert () == answer.status
    assert {"0", "1"} == {tasks.subtopology_id for tasks in answer.active_tasks}


@pytest.mark.parametrize(
    ("changelog", "reason"),
    [
        ({"topic_configs": (KeyValue(key="cleanup.policy", value="burn"),)}, "cleanup.policy"),
        ({"replication_factor": 3}, "counts ("),
    ],
)
def test_failed_creation_is_told(desk, changelog, reason):
    """Is a member told why an internal topic could not be created, while the others are?"""
    (status,) = beat(desk, topology=counting(**changelog)).status

    assert "; Creation failed: counts (" in status.status_detail
    assert reason in status.status_detail
    assert "words" in desk.broker.metadata.topics
    assert "counts" not in desk.broker.metadata.topics
    assert 3 == beat(desk, epoch=2).status[0].status_code


UNSERVED = {
    "static member": {"instance_id": "i"},
    "task offsets": {"task_offsets": (TaskOffset(subtopology_id="0"),)},
    "end offsets": {"task_end_offsets": ()},
    "warmup tasks": {"warmup_tasks": (TaskIds(subtopology_id="0", partitions=(0,)),)},
    "expressions": {
        "topology": Topology(subtopologies=(Subtopology(subtopology_id="0", source_topic_regex=("o.*",)),))
    },
    "some tasks": {"standby_tasks": None},
}


@pytest.mark.parametrize("fields", UNSERVED.values(), ids=UNSERVED)
def test_what_is_not_served_is_refused(desk, fields):
    """Is what Apache Kafka does not serve either refused with a sentence, and no group made?"""
    refused = beat(desk, **fields)

    assert ErrorCode.INVALID_REQUEST == refused.error_code
    assert refused.error_message
    assert (ErrorCode.GROUP_ID_NOT_FOUND,) == tuple(group.error_code for group in describe(desk, "g"))


def test_errors_say_what_is_wrong(desk):
    """Are errors told with their code and a sentence?"""
    beat(desk)
    refused = beat(desk, epoch=9)

    assert ErrorCode.FENCED_MEMBER_EPOCH == refused.error_code
    assert "must abandon all its partitions" in refused.error_message
    assert refused.status is None


def test_protocol_can_be_switched_off(open_desk):
    """Is everyone refused where the coordinator does not serve streams groups?"""
    desk = open_desk({**SETTINGS, "group.coordinator.rebalance.protocols": "classic,consumer"})
    desk.run(desk.broker.groups.ensure_topic())

    assert ErrorCode.UNSUPPORTED_VERSION == beat(desk).error_code
    assert ErrorCode.UNSUPPORTED_VERSION == describe(desk, "g")[0].error_code


def test_feature_can_be_switched_off(desk):
    """Is everyone refused while the cluster's `streams.version` is 0?"""
    desk.broker.metadata.features["streams.version"] = 0

    assert ErrorCode.UNSUPPORTED_VERSION == beat(desk).error_code
    assert ErrorCode.UNSUPPORTED_VERSION == describe(desk, "g")[0].error_code


def test_group_is_described_and_listed(desk):
    """Does an administrator see the group, its topology with numbers, and its member with tasks?"""
    tells = {"user_endpoint": Endpoint(host="h", port=9), "client_tags": (KeyValue(key="zone", value="z"),)}
    beat(desk, topology=counting(), **tells)
    beat(desk, epoch=2)
    (group,) = describe(desk, "g", include_authorized_operations=True)
    (member,) = group.members

    assert (0, "Stable", 3, 3, GROUP_OPERATIONS) == (
        group.error_code,
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        group.authorized_operations,
    )
    assert ["0", "1"] == [each.subtopology_id for each in group.topology.subtopologies]
    assert 2 == group.topology.subtopologies[1].state_changelog_topics[0].partitions
    assert ("a", "p", "test", "/127.0.0.1", 0) == (
        member.member_id,
        member.process_id,
        member.client_id,
        member.client_host,
        member.topology_epoch,
    )
    assert (("h", 9), [("zone", "z")]) == (
        (member.user_endpoint.host, member.user_endpoint.port),
        [(tag.key, tag.value) for tag in member.client_tags],
    )
    assert member.assignment == member.target_assignment
    assert [(0, 1), (0, 1)] == [tasks.partitions for tasks in member.assignment.active_tasks]
    assert [("g", "streams", "streams", "Stable")] == [
        (each.group_id, each.group_type, each.protocol_type, each.group_state)
        for each in desk.ask(api16_list_groups.API, ListGroupsRequest(types_filter=("streams",))).groups
    ]


def test_describe_tells_errors_by_group(desk):
    """Is each group that cannot be described told as such, beside those that can?"""
    beat(desk)
    nameless, missing, found = describe(desk, "", "x", "g")

    assert (ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND, 0) == (
        nameless.error_code,
        missing.error_code,
        found.error_code,
    )
    assert NOT_ASKED == found.authorized_operations


def test_only_members_commit(desk):
    """Are offsets taken from a member in its epoch, and from nobody else?"""
    beat(desk)

    def commit(member_id, epoch):
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
        request = OffsetCommitRequest(
            group_id="g", member_id=member_id, generation_id_or_member_epoch=epoch, topics=(topic,)
        )
        return desk.ask(api08_offset_commit.API, request, version=9).topics[0].partitions[0].error_code

    assert [0, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID] == [
        commit("a", 2),
        commit("a", 3),
        commit("b", 2),
    ]


@pytest.mark.parametrize("how", ["restart", "power_cut"])
def test_group_survives(desk, how):
    """Is the group what it was after the broker was restarted or lost its power, and does it go on?"""
    beat(desk, topology=counting())
    beat(desk, epoch=2)
    before = describe(desk, "g")[0]
    getattr(desk, how)()
    after = describe(desk, "g")[0]

    assert (before.group_epoch, before.members) == (after.group_epoch, after.members)

    answer = beat(desk, epoch=3)

    assert (0, 3, None, ()) == (answer.error_code, answer.member_epoch, answer.active_tasks, answer.status)


def test_empty_group_is_deleted(desk):
    """Can a group be deleted when it is empty, and not before?"""
    beat(desk)
    request = DeleteGroupsRequest(groups_names=("g",))

    assert ErrorCode.NON_EMPTY_GROUP == desk.ask(api42_delete_groups.API, request).results[0].error_code

    beat(desk, epoch=-1)

    assert 0 == desk.ask(api42_delete_groups.API, request).results[0].error_code
    assert ErrorCode.GROUP_ID_NOT_FOUND == describe(desk, "g")[0].error_code

    desk.restart()

    assert ErrorCode.GROUP_ID_NOT_FOUND == describe(desk, "g")[0].error_code
