"""What members ask all the time is answered where it is read: a task for each question costs more than its answer."""

import inspect
from types import SimpleNamespace

import pytest

from headrace.broker.api import Call
from headrace.broker.handlers import (
    api08_offset_commit,
    api09_offset_fetch,
    api11_join_group,
    api12_heartbeat,
    api14_sync_group,
    api68_consumer_group_heartbeat,
)
from headrace.wire.header import RequestHeader
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.wire.messages.sync_group import SyncGroupRequest


@pytest.fixture
def desk(open_desk):
    """A broker with a topic."""
    desk = open_desk({"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"})
    desk.create("t")
    desk.run(desk.broker.groups.ensure_topic())
    return desk


def answered(desk, api, request):
    """What the handler itself gives back, and whether somebody has to wait for it."""

    async def handle():
        call = Call(
            desk.broker,
            SimpleNamespace(listener_name="PLAINTEXT", peer=("127.0.0.1", 50000)),
            RequestHeader(api.key, api.high, 1, "test", 0),
        )
        answer = api.handle(call, request)
        return (await answer, True) if inspect.isawaitable(answer) else (answer, False)

    return desk.run(handle())


def commit(desk):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = OffsetCommitRequestTopic(topic_id=desk.broker.metadata.topics["t"].topic_id, partitions=(partition,))
    answer, waited = answered(desk, api08_offset_commit.API, OffsetCommitRequest(group_id="alone", topics=(topic,)))
    return answer.topics[0].partitions[0].error_code, waited


def fetch(desk, *group_ids):
    groups = tuple(OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids)
    answer, waited = answered(desk, api09_offset_fetch.API, OffsetFetchRequest(groups=groups))
    return [sum(len(topic.partitions) for topic in group.topics) for group in answer.groups], waited


def test_heartbeat_of_a_classic_member(desk):
    """Is a classic member that only lives answered at once, and so is a stranger?"""
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    member_id = desk.ask(api11_join_group.API, join, version=3).member_id
    desk.ask(api14_sync_group.API, SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id), version=4)
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    stranger = HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody")

    for expected, request in ((0, beat), (25, stranger)):
        answer, waited = answered(desk, api12_heartbeat.API, request)
        assert (expected, False) == (answer.error_code, waited)


def test_heartbeat_of_a_consumer_member(desk):
    """Is a member of a consumer group waited for when it joins, which is written down, and answered at once after?"""
    join = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    joined, waited = answered(desk, api68_consumer_group_heartbeat.API, join)
    assert (0, True) == (joined.error_code, waited)

    beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=joined.member_epoch)
    stranger = ConsumerGroupHeartbeatRequest(group_id="g", member_id="x", member_epoch=1)

    for expected, request in ((0, beat), (25, stranger)):
        answer, waited = answered(desk, api68_consumer_group_heartbeat.API, request)
        assert (expected, False) == (answer.error_code, waited)


def test_offsets_are_told(desk):
    """Are offsets that are safe told at once, of several groups too, though the commit had to be waited for?"""
    assert (0, True) == commit(desk)

    assert ([1, 0], False) == fetch(desk, "alone", "nobody")


def test_commit_that_is_not_flushed(open_desk):
    """Is a commit answered at once where the topic does not ask for a flush?"""
    desk = open_desk({"offsets.topic.num.partitions": "1", "flush.on.acks.all": "false"})
    desk.create("t")
    desk.run(desk.broker.groups.ensure_topic())

    assert (0, False) == commit(desk)
