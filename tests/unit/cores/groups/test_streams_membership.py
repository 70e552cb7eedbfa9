"""Members of streams groups that are waited for, and removed."""

import pytest

from headrace.model.errors import ErrorCode
from streams_shell import HEARTBEAT_MS, SESSION_MS, StreamsShell, StreamsThread, active, settle


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return StreamsShell(topics={"orders": 4})


def test_silent_member_is_removed(shell):
    """Is a member that sends no heartbeat for the session timeout removed, and its tasks given to another?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    settle(first, second)
    shell.advance(SESSION_MS - 1)
    first.beat()
    shell.advance(1)

    assert {"a"} == set(shell.group().members)
    assert active(_0=range(4)) == first.beat().tasks
    assert ErrorCode.UNKNOWN_MEMBER_ID == second.beat().code


def test_member_that_keeps_its_tasks_is_removed(shell):
    """Is a member removed that lives but does not give up a task within its rebalance timeout?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    first.join()
    second.join()
    for _ in range(12):
        first.beat()
        second.beat()
        shell.advance(HEARTBEAT_MS)

    assert {"b"} == set(shell.group().members)
    assert active(_0=range(4)) == second.beat().tasks


def test_restart_gives_everyone_time(shell):
    """Does a coordinator that has just read its log wait a whole session for each member, and go on as before?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    settle(first, second)
    shell.advance(SESSION_MS - 1)
    shell.restart()
    shell.advance(SESSION_MS - 1)

    assert {"a", "b"} == set(shell.group().members)
    assert first.beat().tasks is None

    shell.advance(1)

    assert {"a"} == set(shell.group().members)


def test_late_timers_are_harmless(shell):
    """Do timers of members and groups that have moved on, or are gone, change nothing?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    settle(first, second)
    before = len(shell.log)
    for word in ("streams-session", "streams-rebalance"):
        for key in ((word, "g", "a"), (word, "g", "x"), (word, "other", "a")):
            shell.fire(key)

    assert before == len(shell.log)


def test_deadline_of_a_revocation_survives_a_restart(shell):
    """Is a member that was to give up tasks before the coordinator restarted waited for anew, and then removed?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    first.join()
    second.join()
    first.beat()
    shell.restart()
    for _ in range(12):
        first.beat()
        second.beat()
        shell.advance(HEARTBEAT_MS)

    assert {"b"} == set(shell.group().members)
