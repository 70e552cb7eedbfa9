"""When a streams group makes its next target, and with what."""

import pytest

from headrace.cores.groups.streams_tasks import NO_TASKS
from headrace.cores.groups.streams_topology import StatusCode
from headrace.model.streams_group_records import StreamsGroupMetadataKey
from streams_shell import StreamsShell, StreamsThread, active, settle, word_counters


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return StreamsShell(topics={"orders": 4})


def test_standby_tasks_follow_the_group_setting(shell):
    """Do stateful tasks get as many copies as the group's own setting asks for, when it changes, too?"""
    threads = word_counters(shell, "a", "b", "c")
    settle(*threads)

    assert not any(thread.tasks("standby") for thread in threads)

    shell.configure_group("g", "streams.num.standby.replicas", "1")
    settle(*threads)
    copies = [task for thread in threads for task in thread.tasks("standby")]

    assert [("1", index) for index in range(4)] == sorted(copies)
    assert not any(thread.tasks() & thread.tasks("standby") for thread in threads)

    shell.configure_group("g", "streams.num.standby.replicas", "9")
    settle(*threads)

    assert 8 == sum(len(thread.tasks("standby")) for thread in threads), "group.streams.max.standby.replicas is 2"


def test_standby_becomes_active_when_the_active_one_is_gone(shell):
    """Does a task go where a copy of its state is when its member leaves?"""
    shell.configure_group("g", "streams.num.standby.replicas", "1")
    threads = word_counters(shell, "a", "b", "c")
    settle(*threads)
    gone, *rest = threads
    copied = {task: thread for thread in rest for task in thread.tasks("standby") if task in gone.tasks()}
    gone.leave()
    settle(*rest)

    assert copied
    assert all(task in thread.tasks() for task, thread in copied.items())


def test_initial_delay_waits_for_more_members():
    """Does a group that was empty wait for more members, and tell them so?"""
    shell = StreamsShell({"group.streams.initial.rebalance.delay.ms": 3_000}, topics={"orders": 4})
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")

    assert NO_TASKS == first.join().tasks
    assert (StatusCode.ASSIGNMENT_DELAYED,) == first.statuses

    shell.advance(2_000)

    assert NO_TASKS == second.join().tasks

    shell.advance(1_000)

    assert active(_0=[0, 2]) == first.beat().tasks
    assert active(_0=[1, 3]) == second.beat().tasks
    assert () == first.statuses == second.statuses


def test_assignments_keep_their_distance():
    """Does the next target wait for its interval, and come with the first heartbeat after it?"""
    shell = StreamsShell({"group.streams.assignment.interval.ms": 1_000}, topics={"orders": 4})
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    first.join()
    second.join()

    assert (StatusCode.ASSIGNMENT_DELAYED,) == second.statuses
    assert "Assigning" == shell.group().state_name

    shell.advance(1_000)
    settle(first, second)

    assert active(_0=[2, 3]) == second.owned


def test_settings_of_the_last_assignment_are_written(shell):
    """Does the group's record say what the target was made with?"""
    shell.beat("a", 0)
    value = next(value for key, value, _ in reversed(shell.log) if key == StreamsGroupMetadataKey(group_id="g"))

    assert [("num.standby.replicas", "0")] == [(each.key, each.value) for each in value.last_assignment_configs]
    assert (2, 0) == (value.epoch, value.validated_topology_epoch)
