"""Consumer groups as the log knows them."""

from uuid import UUID

import pytest

from consumer_shell import SESSION_MS, Consumer, ConsumerShell, settle
from headrace.cores.groups.consumer_group import ConsumerGroup
from headrace.cores.groups.consumer_member import ConsumerMember, MemberState
from headrace.cores.groups.consumer_records import REPLAY
from headrace.model.errors import ErrorCode
from headrace.model.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicPartitions,
)

ORDERS = UUID(int=7)


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return ConsumerShell(topics={"orders": 4})


def orders(shell, *indexes):
    return {shell.topic_id("orders"): tuple(indexes)}


def test_members_survive_a_restart(shell):
    """Does a group go on after a restart as it was, with a session for each member and what was under way?"""
    first = Consumer(shell, "a")
    first.join()
    second = Consumer(shell, "b")
    second.join()
    first.beat()
    shell.restart()
    first.give_up()
    first.beat()
    second.beat()

    assert "Stable" == shell.group().state_name

    shell.restart()
    shell.advance(SESSION_MS)

    assert shell.group().is_empty()


def test_topics_that_changed_while_nobody_led_are_seen(shell):
    """Is a topic that grew while the coordinator was away shared out with the next heartbeat?"""
    consumer = Consumer(shell, "a")
    consumer.join()
    shell._add_partitions(shell.topic_id("orders"), 4, 5)
    shell.restart()

    assert orders(shell, 0, 1, 2, 3, 4) == consumer.beat().assignment


def test_stable_group_writes_nothing(shell):
    """Does a group in which nothing changes write nothing?"""
    first, second = Consumer(shell, "a"), Consumer(shell, "b")
    first.join()
    second.join()
    settle(first, second, rounds=5)
    before = len(shell.log)
    settle(first, second, rounds=5)

    assert before == len(shell.log)


def test_record_of_an_older_kafka_is_forgotten(shell):
    """Is the record that Kafka before 4.1 kept of a group's topics deleted when there is occasion?"""
    shell.beat("a", 0)
    key = ConsumerGroupPartitionMetadataKey(group_id="g")
    value = ConsumerGroupPartitionMetadataValue()
    shell.core.replay(key, value)
    shell.log.append((key, value, -1))
    shell.beat("b", 0)

    assert (key, None, -1) in shell.log


def test_tombstones_of_what_is_not_there_are_ignored():
    """Does a log that was compacted to the tombstones of a group give no group?"""
    shell = ConsumerShell()
    group = ConsumerGroup("g")
    for key, value in group.tombstones():
        shell.core.replay(key, value)
    shell.core.replay(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"), None)

    assert {} == shell.core.groups


def test_records_without_epochs_are_read():
    """Is a record of an older version, without assignment epochs, read with the member's epoch in their place?"""
    shell = ConsumerShell()
    topics = (TopicPartitions(topic_id=ORDERS, partitions=(0, 2)),)
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=7, state=9, assigned_partitions=topics)
    shell.core.replay(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"), value)
    member = shell.group().members["a"]

    assert {ORDERS: {0: 7, 2: 7}} == member.assigned
    assert MemberState.UNKNOWN is member.state


def test_member_in_an_unknown_state_starts_anew():
    """Must a member that a newer version left in a state unknown here give up everything first?"""
    shell = ConsumerShell(topics={"orders": 1})
    shell.beat("a", 0)
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=2, previous_member_epoch=1, state=9)
    shell.core.replay(key, value)
    shell.log.append((key, value, -1))

    assert ErrorCode.FENCED_MEMBER_EPOCH == shell.beat_error("a", 2)
    assert 2 == shell.beat("a", 2, owned={}).member_epoch
    assert "Stable" == shell.group().state_name


def test_members_are_their_records():
    """Is a member made of its records what it was?"""
    member = ConsumerMember(
        member_id="a",
        member_epoch=4,
        previous_member_epoch=3,
        state=MemberState.UNREVOKED_PARTITIONS,
        instance_id="one",
        rack_id="r",
        rebalance_timeout_ms=5,
        client_id="c",
        client_host="/h",
        topics=frozenset({"x", "y"}),
        regex="z",
        server_assignor="range",
        assigned={ORDERS: {1: 2}},
        pending_revocation={ORDERS: {0: 1}},
    )
    shell = ConsumerShell()
    replay = {
        type(key): (key, value)
        for key, value in (
            (ConsumerGroupMemberMetadataKey(group_id="g", member_id="a"), member.metadata_record()),
            (ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"), member.assignment_record()),
        )
    }
    for kind, (key, value) in replay.items():
        REPLAY[kind](shell.core, key, value)

    assert member == shell.group().members["a"]
    assert isinstance(member.metadata_record(), ConsumerGroupMemberMetadataValue)
    assert "a" == shell.group().owner(ORDERS, 0)
