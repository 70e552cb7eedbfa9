"""What a streams group says about offsets, topics and its own end."""

from uuid import UUID

import pytest

from headrace.model.errors import ErrorCode, KafkaError
from streams_shell import StreamsShell, StreamsThread, settle, word_counters

TOPIC_ID = UUID(int=1)


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return StreamsShell(topics={"orders": 4})


def test_commit_of_an_older_epoch_counts_for_tasks_held_since(shell):
    """May a member in an older epoch commit for tasks it has had since then, and for no others (KIP-1251)?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    settle(first, second)
    group = shell.group()
    check = group.check_commit("a", None, 2, transactional=False)
    check("orders", TOPIC_ID, 0)

    for topic, partition in (("orders", 3), ("other", 0)):
        with pytest.raises(KafkaError) as refused:
            check(topic, TOPIC_ID, partition)
        assert ErrorCode.STALE_MEMBER_EPOCH == refused.value.code
    with pytest.raises(KafkaError, match="older than assignment epoch 3"):
        group.check_commit("b", None, 2, transactional=False)("orders", TOPIC_ID, 2)


def test_commit_and_fetch_ask_for_the_epoch(shell):
    """Are strangers and epochs of tomorrow refused, and those who claim nothing served?"""
    shell.beat("a", 0)
    group = shell.group()

    assert group.check_commit("a", None, 2, transactional=False) is None
    assert group.check_commit("", None, -1, transactional=True) is None
    group.check_fetch(None, -1)
    group.check_fetch("a", 2)
    for ask, code in (
        (lambda: group.check_commit("x", None, 2, transactional=False), ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda: group.check_commit("", None, -1, transactional=False), ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda: group.check_commit("a", None, 3, transactional=False), ErrorCode.STALE_MEMBER_EPOCH),
        (lambda: group.check_fetch("x", 2), ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda: group.check_fetch("a", 1), ErrorCode.STALE_MEMBER_EPOCH),
        (group.check_delete, ErrorCode.NON_EMPTY_GROUP),
    ):
        with pytest.raises(KafkaError) as refused:
            ask()
        assert code == refused.value.code


def test_topics_of_the_topology_are_read(shell):
    """Do a group with members and one without say rightly what they read?"""
    (thread,) = word_counters(shell, "a")
    thread.join()

    assert [True, True, False] == [shell.group().is_subscribed_to(name) for name in ("orders", "words", "counts")]

    thread.leave()

    assert not shell.group().is_subscribed_to("orders")
