"""Streams groups (KIP-1071), by the words of their members."""

import pytest

from headrace.cores.groups.group import GroupType
from headrace.cores.groups.streams_member import MemberState
from headrace.cores.groups.streams_tasks import NO_TASKS, Tasks
from headrace.cores.groups.streams_topology import StatusCode
from headrace.model.errors import ErrorCode, KafkaError
from streams_shell import (
    HEARTBEAT_MS,
    STATELESS,
    WORD_COUNT,
    StreamsShell,
    StreamsThread,
    active,
    settle,
    subtopology,
    topology,
    word_counters,
)


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return StreamsShell(topics={"orders": 4})


# --- joining and sharing


def test_first_member_gets_everything(shell):
    """Does the first member get all tasks with the answer to its first heartbeat?"""
    answer = shell.beat("a", 0)

    assert ("a", 2, HEARTBEAT_MS, ()) == (
        answer.member_id,
        answer.member_epoch,
        answer.heartbeat_interval_ms,
        answer.statuses,
    )
    assert active(_0=[0, 1, 2, 3]) == answer.tasks
    assert "Stable" == shell.group().state_name


def test_task_moves_only_when_it_was_given_up(shell):
    """Does a second member wait for what it is to have until the first one says that it gave it up?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    first.join()

    assert NO_TASKS == second.join().tasks
    assert MemberState.UNRELEASED_TASKS is shell.group().members["b"].state

    told = first.beat()

    assert active(_0=[0, 1]) == first.told
    assert 2 == told.member_epoch
    assert MemberState.UNREVOKED_TASKS is shell.group().members["a"].state
    assert second.beat().tasks is None

    first.give_up()

    assert 3 == first.beat().member_epoch
    assert active(_0=[2, 3]) == second.beat().tasks
    assert "Stable" == shell.group().state_name


def test_internal_topics_come_first(shell):
    """Is a member told which internal topics are missing, and does it get its tasks when they are there?"""
    answer = shell.beat("a", 0, topology=WORD_COUNT)
    (status,) = answer.statuses

    assert (StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: counts, words") == (
        status.code,
        status.detail,
    )
    assert [("counts", 4), ("words", 4)] == [(topic.name, topic.partitions) for topic in answer.missing]
    assert "NotReady" == shell.group().state_name

    shell.create_missing(answer)
    answer = shell.beat("a", answer.member_epoch)

    assert ((), active(_0=range(4), _1=range(4)), ()) == (answer.statuses, answer.tasks, answer.missing)
    assert "Stable" == shell.group().state_name


def test_missing_source_topic_is_waited_for(shell):
    """Is a member told that a source topic is not there, and given tasks when it comes?"""
    thread = StreamsThread(shell, "a", topology=topology(subtopology("0", "orders", "later")))
    thread.join()

    assert (StatusCode.MISSING_SOURCE_TOPICS,) == thread.statuses

    shell.create_topic("later", 6)
    thread.beat()

    assert () == thread.statuses
    assert active(_0=range(6)) == thread.told


def test_deleted_source_topic_takes_the_tasks_along(shell):
    """Does a member lose its tasks when what they read is gone?"""
    thread = StreamsThread(shell, "a")
    thread.join()
    shell.delete_topic("orders")
    settle(thread)

    assert NO_TASKS == thread.owned
    assert (StatusCode.MISSING_SOURCE_TOPICS,) == thread.statuses
    assert "NotReady" == shell.group().state_name


def test_more_partitions_are_more_tasks(shell):
    """Do new partitions come with the next heartbeat?"""
    thread = StreamsThread(shell, "a")
    thread.join()
    shell.grow_topic("orders", 6)

    assert active(_0=range(6)) == thread.beat().tasks


# --- epochs


def test_lost_answer_is_told_again(shell):
    """Is one who did not hear of its tasks told them again?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    first.join()
    second.join()
    first.beat()
    first.give_up()
    first.beat()
    second.beat(is_lost=True)

    assert active(_0=[2, 3]) == second.beat(owned=NO_TASKS).tasks


@pytest.mark.parametrize("epoch", [9, 1])
def test_wrong_epoch_is_fenced(shell, epoch):
    """Is a member in an epoch that is not its own told to begin anew?"""
    shell.beat("a", 0)
    shell.beat("a", 0, rack_id="r2")

    assert ErrorCode.FENCED_MEMBER_EPOCH == shell.beat_error("a", epoch, owned=NO_TASKS)


def test_rejoining_member_is_told_all(shell):
    """Does a member that joins again under its id get its tasks without moving those of others?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    settle(first, second)
    before = second.owned
    answer = first.join()

    assert active(_0=[0, 1]) == answer.tasks
    assert before == second.owned
    assert second.beat().tasks is None


# --- topology


def test_other_topology_is_refused(shell):
    """Is a topology refused that is not the group's, unless it is an older one, which is told to be stale?"""
    shell.beat("a", 0, topology=topology(*STATELESS.subtopologies, epoch=2))
    other = topology(subtopology("0", "orders", changelogs=["x"]), epoch=2)
    newer = topology(*STATELESS.subtopologies, epoch=3)

    assert ErrorCode.INVALID_REQUEST == shell.beat_error("b", 0, topology=other)
    assert ErrorCode.INVALID_REQUEST == shell.beat_error("b", 0, topology=newer)

    (status,) = shell.beat("b", 0, topology=STATELESS).statuses

    assert (StatusCode.STALE_TOPOLOGY, 0) == (status.code, shell.group().members["b"].topology_epoch)


def test_order_of_subtopologies_does_not_matter(shell):
    """Is the same topology in another order the same?"""
    shell.beat("a", 0, topology=WORD_COUNT)
    turned = topology(*reversed(WORD_COUNT.subtopologies))

    assert not isinstance(shell.beat("b", 0, topology=turned), KafkaError)


# --- leaving and stopping


def test_shutdown_is_told_to_everyone(shell):
    """Is everyone told to stop when one asks for it, until the group is empty?"""
    first, second = StreamsThread(shell, "a"), StreamsThread(shell, "b")
    settle(first, second)
    first.leave(is_shutting_down=True)
    second.beat()

    assert (StatusCode.SHUTDOWN_APPLICATION,) == second.statuses

    second.leave()
    second.join()

    assert () == second.statuses


def test_empty_classic_group_becomes_a_streams_group(shell):
    """Does a classic group without members make room, and one with members not?"""
    shell.commit({("orders", 0): 5})

    assert GroupType.CLASSIC is shell.group().kind
    assert not isinstance(shell.beat("a", 0), KafkaError)
    assert GroupType.STREAMS is shell.group().kind

    shell.join("busy")

    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("a", 0, "busy")


# --- refusals


BAD = {
    "no member": {"member_id": " "},
    "no name": {"member_id": ""},
    "no group": {"group_id": ""},
    "empty rack": {"rack_id": ""},
    "no timeout": {"rebalance_timeout_ms": -1},
    "negative timeout": {"rebalance_timeout_ms": -2},
    "no tasks": {"owned": None},
    "tasks": {"owned": active(_0=[0])},
    "no topology": {"topology": None},
    "epoch": {"member_epoch": -3},
    "static": {"member_epoch": -2},
    "topology later": {"member_epoch": 2},
    "too large": {"client_tags": (("tag", "x" * 300_000),)},
}


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD)
def test_bad_heartbeat_changes_nothing(shell, fields):
    """Is a heartbeat that makes no sense refused as INVALID_REQUEST, and is no group made?"""
    assert ErrorCode.INVALID_REQUEST == shell.beat_error(**{"member_id": "a", "epoch": 0, **fields})
    assert {} == shell.core.groups
    assert [] == shell.log


@pytest.mark.parametrize(
    "tasks", [active(_7=[0]), active(_0=[4]), active(_0=[-1]), Tasks(standby={"9": frozenset({0})})]
)
def test_unknown_task_is_refused(shell, tasks):
    """Is a member refused that says it has a task that cannot be?"""
    shell.beat("a", 0)

    assert ErrorCode.INVALID_REQUEST == shell.beat_error("a", 2, owned=tasks)


def test_strangers_are_refused(shell):
    """Are members and groups that are not there told apart?"""
    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("a", 1)
    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("a", -1)

    shell.beat("a", 0)

    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.beat_error("x", 2)
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.beat_error("x", -1)


def test_full_group_takes_nobody_in():
    """Is one too many refused, and may those who are in come again?"""
    shell = StreamsShell({"group.streams.max.size": 1}, topics={"orders": 1})
    shell.beat("a", 0)

    assert ErrorCode.GROUP_MAX_SIZE_REACHED == shell.beat_error("b", 0)
    assert not isinstance(shell.beat("a", 0), KafkaError)


# --- describe


def test_described_with_numbers(shell):
    """Does an administrator see the topology with its numbers, and who has and is to have what?"""
    threads = word_counters(shell, "a", "b")
    settle(*threads)
    seen = shell.described()

    assert ("Stable", 0) == (seen.state, seen.topology_epoch)
    assert [4] == [topic.partitions for topic in seen.subtopologies[1].repartition_source_topics]
    assert [(thread.member_id, thread.owned, thread.owned) for thread in threads] == [
        (member.member_id, member.assigned, target) for member, target in seen.members
    ]
