"""The deadlines of members of consumer groups."""

import pytest

from consumer_shell import HEARTBEAT_MS, SESSION_MS, Consumer, ConsumerShell
from group_shell import REBALANCE_MS
from headrace.cores.groups.consumer_deadlines import (
    JOIN_TIMER,
    REBALANCE_TIMER,
    SESSION_TIMER,
    SYNC_TIMER,
    expect_join,
    forget_all,
)
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return ConsumerShell(topics={"orders": 4})


def test_silent_member_is_removed(shell):
    """Is a member removed when its session is over, and not before?"""
    first, second = Consumer(shell, "a"), Consumer(shell, "b")
    first.join()
    second.join()
    shell.advance(SESSION_MS - 1)
    second.beat()

    assert {"a", "b"} == shell.group().members.keys()

    shell.advance(1)

    assert {"b"} == shell.group().members.keys()
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.beat_error("a", first.epoch)


def test_member_that_keeps_what_it_must_give_up_is_removed(shell):
    """Is a member that does not give up partitions within its rebalance timeout removed, alive as it may be?"""
    first = Consumer(shell, "a")
    first.join()
    second = Consumer(shell, "b")
    second.join()
    first.beat()
    for _ in range(REBALANCE_MS // HEARTBEAT_MS):
        shell.advance(HEARTBEAT_MS - 1)
        first.beat()
        second.beat()

    assert "a" in shell.group().members

    shell.advance(REBALANCE_MS)

    assert "a" not in shell.group().members


def test_group_sets_its_own_timeouts(shell):
    """Do a group's own settings come before the broker's?"""
    shell.configure_group("g", "consumer.session.timeout.ms", "50000")
    shell.configure_group("g", "consumer.heartbeat.interval.ms", "7000")

    assert 7_000 == shell.beat("a", 0).heartbeat_interval_ms

    shell.advance(49_999)

    assert "a" in shell.group().members

    shell.advance(1)

    assert shell.group().is_empty()


def test_restart_remembers_who_must_give_up(shell):
    """Does the rebalance timeout of a member count anew after a restart?"""
    first = Consumer(shell, "a")
    first.join()
    Consumer(shell, "b").join()
    first.beat()
    shell.restart()

    assert (REBALANCE_TIMER, "g", "a") in shell.timers


def test_timers_that_do_not_matter_do_nothing(shell):
    """Do timers that fire early, or for what is gone, leave everything as it is?"""
    shell.beat("a", 0)
    before = len(shell.log)
    for word in (SESSION_TIMER, REBALANCE_TIMER, JOIN_TIMER, SYNC_TIMER):
        shell.fire((word, "g", "a"))
        shell.fire((word, "g", "nobody"))
        shell.fire((word, "nothing", "a"))
    shell.fire(("consumer-assign", "g"))
    shell.fire(("consumer-assign", "nothing"))

    assert before == len(shell.log)


def test_time_to_join_counts_from_the_first_word(shell):
    """Does hearing of a rebalance again not give a member of the classic protocol more time to join?"""
    shell.beat("a", 0)
    outcome = Outcome()
    expect_join(shell.group(), "a", outcome, 1_000)
    expect_join(shell.group(), "a", outcome, 2_000)

    assert [((JOIN_TIMER, "g", "a"), 1_000 + REBALANCE_MS)] == outcome.timers


def test_nothing_is_expected_of_one_who_is_gone(shell):
    """Are all deadlines of a member forgotten, and only timers cancelled that were set?"""
    shell.beat("a", 0)
    outcome = Outcome()
    forget_all(shell.group(), "a", outcome)
    forget_all(shell.group(), "a", outcome)

    assert [((SESSION_TIMER, "g", "a"), None)] == outcome.timers
