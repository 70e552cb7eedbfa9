"""The APIs of committed offsets, at a real broker: every version, every error, and after restarts."""

from functools import partial
from uuid import UUID

import pytest

from headrace.broker.coordinators.metadata_changes import tell_groups
from headrace.broker.handlers import (
    api08_offset_commit,
    api09_offset_fetch,
    api11_join_group,
    api16_list_groups,
    api47_offset_delete,
    api68_consumer_group_heartbeat,
)
from headrace.cores.groups.offsets import CommitCommand, NewOffset, commit_in_transaction
from headrace.model.errors import ErrorCode
from headrace.model.ids import ZERO_ID
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

STRANGE_ID = UUID(int=99)


@pytest.fixture
def desk(open_desk):
    """A broker with a topic of two partitions."""
    desk = open_desk({"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"})
    desk.create("t", partitions=2)
    desk.run(desk.broker.groups.ensure_topic())
    return desk


def topic_id(desk, name="t"):
    return desk.broker.metadata.topics[name].topic_id


def commit(desk, offsets, *, version=10, group_id="g", name="t", **fields):
    """Commit offsets of partitions; the error codes."""
    by_id = version >= 10
    topic = OffsetCommitRequestTopic(
        name="" if by_id else name,
        topic_id=fields.pop("topic_id", topic_id(desk, name) if by_id else ZERO_ID),
        partitions=tuple(
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=3 if version >= 6 else -1,
                committed_metadata="note",
            )
            for index, offset in offsets.items()
        ),
    )
    request = OffsetCommitRequest(group_id=group_id, topics=(topic,), **fields)
    (answer,) = desk.ask(api08_offset_commit.API, request, version=version).topics
    assert (topic.name, topic.topic_id) == (answer.name, answer.topic_id)
    return [each.error_code for each in answer.partitions]


def fetch(desk, *indexes, version=10, group_id="g", require_stable=False):
    """A group's error code and its offsets, epochs and metadata by partition; all there are if none are named."""
    by_id = version >= 10
    if version >= 8:
        topics = OffsetFetchRequestTopics(
            name="" if by_id else "t", topic_id=topic_id(desk) if by_id else ZERO_ID, partition_indexes=indexes
        )
        group = OffsetFetchRequestGroup(group_id=group_id, topics=(topics,) if indexes else None)
        request = OffsetFetchRequest(groups=(group,), require_stable=require_stable)
        (answer,) = desk.ask(api09_offset_fetch.API, request, version=version).groups
    else:
        topics = OffsetFetchRequestTopic(name="t", partition_indexes=indexes)
        request = OffsetFetchRequest(
            group_id=group_id, topics=(topics,) if indexes else None, require_stable=require_stable
        )
        answer = desk.ask(api09_offset_fetch.API, request, version=version)
    return answer.error_code, {
        each.partition_index: (each.committed_offset, each.committed_leader_epoch, each.metadata, each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_commit_in_every_version(desk, version):
    """Can a client of any version commit to a group without members, and is it told about every partition?"""
    retention = {"retention_time_ms": -1} if version <= 4 else {}

    assert [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == commit(desk, {0: 5, 2: 6}, version=version, **retention)
    assert (0, {0: (5, 3 if version >= 6 else -1, "note", 0)}) == fetch(desk)


@pytest.mark.parametrize("version", range(1, 11))
def test_fetch_in_every_version(desk, version):
    """Is what was committed told in any version, the leader epoch from version 5 on, and -1 where nothing was?"""
    commit(desk, {0: 5})
    epoch = 3 if version >= 5 else -1

    assert (0, {0: (5, epoch, "note", 0), 1: (-1, -1, "", 0)}) == fetch(desk, 0, 1, version=version)
    assert (0, {0: (-1, -1, "", 0)}) == fetch(desk, 0, version=version, group_id="x")
    if version >= 2:
        assert (0, {0: (5, epoch, "note", 0)}) == fetch(desk, version=version)


def test_fetch_of_several_groups(desk):
    """Can several groups be asked for at once, each answered by its name?"""
    for group_id, offset in (("g", 1), ("h", 2), ("i", 3)):
        commit(desk, {0: offset}, group_id=group_id)
    request = OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in ("i", "g", "x"))
    )
    groups = desk.ask(api09_offset_fetch.API, request).groups

    assert [("i", [3]), ("g", [1]), ("x", [])] == [
        (group.group_id, [each.committed_offset for topic in group.topics for each in topic.partitions])
        for group in groups
    ]


@pytest.mark.parametrize("version", [2, 9, 10])
def test_commit_to_an_unknown_topic(desk, version):
    """Is a topic that is not there refused partition by partition, by name and by id?"""
    error = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    unknown = {"topic_id": STRANGE_ID} if version >= 10 else {"name": "x"}

    assert [error, error] == commit(desk, {0: 1, 1: 1}, version=version, **unknown)
    assert () == desk.ask(api16_list_groups.API, ListGroupsRequest()).groups


def test_fetch_of_an_unknown_topic_id(desk):
    """Is a topic id that is not there told per partition, and the other topics of the request answered?"""
    commit(desk, {0: 5})
    topics = (
        OffsetFetchRequestTopics(topic_id=STRANGE_ID, partition_indexes=(0,)),
        OffsetFetchRequestTopics(topic_id=topic_id(desk), partition_indexes=(0,)),
    )
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),))
    (group,) = desk.ask(api09_offset_fetch.API, request).groups

    assert [(STRANGE_ID, -1, ErrorCode.UNKNOWN_TOPIC_ID), (topic_id(desk), 5, 0)] == [
        (topic.topic_id, topic.partitions[0].committed_offset, topic.partitions[0].error_code) for topic in group.topics
    ]


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (2, ErrorCode.ILLEGAL_GENERATION),
        (8, ErrorCode.ILLEGAL_GENERATION),
        (9, ErrorCode.GROUP_ID_NOT_FOUND),
        (10, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_member_of_a_group_that_is_gone(desk, version, error):
    """Is a member whose group is not there told so, in the words its version knows?"""
    member = {"member_id": "a", "generation_id_or_member_epoch": 1}

    assert [error] == commit(desk, {0: 1}, version=version, **member)


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.UNSUPPORTED_VERSION), (9, ErrorCode.NONE)])
def test_member_by_epoch_commits_since_version_9(desk, version, error):
    """Is a member of a consumer group refused where it could not be told that its epoch is stale?"""
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    joined = desk.ask(api68_consumer_group_heartbeat.API, joining)
    member = {"member_id": "a", "generation_id_or_member_epoch": joined.member_epoch}

    assert [error] == commit(desk, {0: 1}, version=version, **member)


def test_long_note(open_desk):
    """Is a note refused that is longer than `offset.metadata.max.bytes`?"""
    desk = open_desk({"offset.metadata.max.bytes": "3", "offsets.topic.num.partitions": "1"})
    desk.create("t")
    desk.run(desk.broker.groups.ensure_topic())

    assert [ErrorCode.OFFSET_METADATA_TOO_LARGE] == commit(desk, {0: 1})


def test_no_note(desk):
    """Is a commit without a note, null on the wire, fetched with an empty one?"""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=None)
    topic = OffsetCommitRequestTopic(topic_id=topic_id(desk), partitions=(partition,))
    desk.ask(api08_offset_commit.API, OffsetCommitRequest(group_id="g", topics=(topic,)))

    assert (0, {0: (1, -1, "", 0)}) == fetch(desk, 0)


def test_group_without_a_name(desk):
    """Can the group without a name be committed to and asked for, as old clients do?"""
    assert [0] == commit(desk, {0: 1}, group_id="")
    assert (0, {0: (1, 3, "note", 0)}) == fetch(desk, 0, group_id="")


@pytest.mark.parametrize("lost", ["restart", "crash", "power_cut"])
def test_committed_offsets_survive(desk, lost):
    """Is an acknowledged commit there after a restart, a kill and a power cut?"""
    commit(desk, {0: 5})
    getattr(desk, lost)()

    assert (0, {0: (5, 3, "note", 0)}) == fetch(desk, 0)


def test_topic_deleted_while_the_coordinator_loads(desk):
    """Are offsets forgotten whose topic was deleted while their coordinator was still reading its log?"""
    commit(desk, {0: 5})

    async def delete_meanwhile():
        groups = desk.broker.groups
        topic = desk.broker.metadata.topics["t"]
        groups.resign_all()
        await groups.lead(range(3))
        assert groups.is_loading
        tell_groups(groups, changed=(), deleted=[("t", topic.topic_id)])
        await groups.lead_all()

    desk.run(delete_meanwhile())

    assert (0, {}) == fetch(desk)


def test_unstable_offsets(desk):
    """Is an offset that a transaction is about to commit UNSTABLE_OFFSET_COMMIT to who wants stable ones?"""
    commit(desk, {0: 5})
    shard = desk.broker.groups.shard_for("g")
    command = CommitCommand(group_id="g", offsets=(NewOffset(topic="t", partition=0, offset=9),))
    step = partial(commit_in_transaction, producer_id=7, producer_epoch=0)
    desk.run(shard.ask(lambda token, now_ms: step(shard.core, command, token, now_ms)))
    unstable = (-1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)

    assert (0, {0: (5, 3, "note", 0)}) == fetch(desk, 0)
    assert (0, {0: unstable}) == fetch(desk, 0, require_stable=True, version=7)
    assert (0, {0: unstable}) == fetch(desk, require_stable=True)

    desk.restart()

    assert (0, {0: unstable}) == fetch(desk, 0, require_stable=True)


@pytest.mark.parametrize("version", [1, 2, 8, 10])
def test_fetch_without_a_coordinator(open_desk, version):
    """Is a client that did not look for a coordinator told to, before version 2 in every partition?"""
    desk = open_desk()
    desk.create("t")
    gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
    error, offsets = fetch(desk, 0, version=version)

    expected = (0, {0: (-1, -1, "", gone)}) if version == 1 else (gone, {})

    assert expected == (error, offsets)
    assert [gone] == commit(desk, {0: 1})


def delete(desk, *places, group_id="g"):
    """Delete offsets; the error at the top and those of the partitions."""
    topics = tuple(
        OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(partition_index=index),))
        for name, index in places
    )
    answer = desk.ask(api47_offset_delete.API, OffsetDeleteRequest(group_id=group_id, topics=topics))
    return answer.error_code, [each.error_code for topic in answer.topics for each in topic.partitions]


def test_delete(desk):
    """Are offsets deleted for good, and partitions that are not there named?"""
    commit(desk, {0: 5, 1: 6})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    assert (0, [0, unknown, unknown]) == delete(desk, ("t", 0), ("t", 2), ("x", 0))

    desk.restart()

    assert (0, {1: (6, 3, "note", 0)}) == fetch(desk)


def test_refused_delete(desk):
    """Is deleting refused without a group and for a topic that members may read?"""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"unreadable")
    join = JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=(protocol,))
    desk.ask(api11_join_group.API, join, version=0)

    assert (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]) == delete(desk, ("t", 0))
    assert (ErrorCode.GROUP_ID_NOT_FOUND, []) == delete(desk, ("t", 0), group_id="x")
    assert (ErrorCode.INVALID_GROUP_ID, []) == delete(desk, ("t", 0), group_id="")
