"""What the log makes of streams groups."""

from functools import partial

import pytest

from headrace.cores.groups.group import GroupType
from headrace.cores.groups.offsets import expire
from headrace.model.errors import ErrorCode
from headrace.model.streams_group_records import (
    EpochTaskIds,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from headrace.wire.coordinator_records import GROUP_RECORDS
from streams_shell import STATELESS, StreamsShell, StreamsThread, active, settle, word_counters


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return StreamsShell(topics={"orders": 4})


def test_last_member_leaves_the_topology_behind(shell):
    """Is an empty group still there, with its topology, until it is deleted with all its records?"""
    thread = StreamsThread(shell, "a")
    thread.join()
    answer = thread.leave()

    assert (-1, ()) == (answer.member_epoch, answer.statuses)
    assert ("Empty", STATELESS) == (shell.group().state_name, shell.group().topology)

    shell.delete_group("g")

    assert "g" not in shell.core.groups

    kept = {key: value for key, value, _ in shell.log}

    assert {None} == set(kept.values())
    assert StreamsGroupTopologyKey(group_id="g") in kept


def test_state_of_tomorrow_is_fenced(shell):
    """Must a member begin anew that a newer version has left in a state not known here?"""
    shell.beat("a", 0)
    key = StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
    tasks = (EpochTaskIds(subtopology_id="0", partitions=(0, 1, 2, 3)),)
    shell.log.append((key, StreamsGroupCurrentMemberAssignmentValue(member_epoch=2, state=77, active_tasks=tasks), -1))
    shell.restart()

    assert ErrorCode.FENCED_MEMBER_EPOCH == shell.beat_error("a", 2, owned=active(_0=range(4)))
    assert active(_0=range(4)) == shell.beat("a", 0).tasks


def test_every_record_survives_its_bytes(shell):
    """Does a group read from its records' bytes equal the one that wrote them?"""
    shell.configure_group("g", "streams.num.standby.replicas", "1")
    threads = word_counters(shell, "a", "b", "c")
    settle(*threads)
    threads[0].leave()
    threads[1].beat()
    fresh = shell._fresh()
    kinds = set()
    for key, value, _ in shell.log:
        kinds.add(type(key))
        fresh.replay(*GROUP_RECORDS.decode(*GROUP_RECORDS.encode(key, value)))

    assert fresh.hard_state() == shell.core.hard_state()
    assert kinds == {
        StreamsGroupCurrentMemberAssignmentKey,
        StreamsGroupMemberMetadataKey,
        StreamsGroupMetadataKey,
        StreamsGroupTargetAssignmentMemberKey,
        StreamsGroupTargetAssignmentMetadataKey,
        StreamsGroupTopologyKey,
    }


def test_record_without_epochs(shell):
    """Do tasks in a record of an older version count as given in the member's epoch?"""
    key = StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
    tasks = (EpochTaskIds(subtopology_id="0", partitions=(1, 2)),)
    shell.core.replay(key, StreamsGroupCurrentMemberAssignmentValue(member_epoch=5, active_tasks=tasks))

    assert {("0", 1): 5, ("0", 2): 5} == shell.group().members["a"].epochs


@pytest.mark.parametrize(
    "key",
    [
        StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"),
        StreamsGroupMemberMetadataKey(group_id="g", member_id="a"),
        StreamsGroupMetadataKey(group_id="g"),
        StreamsGroupTargetAssignmentMemberKey(group_id="g", member_id="a"),
        StreamsGroupTargetAssignmentMetadataKey(group_id="g"),
        StreamsGroupTopologyKey(group_id="g"),
    ],
)
def test_tombstone_of_what_is_not_there(shell, key):
    """Does a tombstone for a group that the log has forgotten make no group, nor harm one of another kind?"""
    shell.core.replay(key, None)

    assert {} == shell.core.groups

    shell.commit({("orders", 0): 5})
    shell.core.replay(key, None)

    assert GroupType.CLASSIC is shell.group().kind


def test_empty_group_without_offsets_goes(shell):
    """Is an empty group forgotten in the end, as groups of other kinds are?"""
    thread = StreamsThread(shell, "a")
    thread.join()
    shell.act(partial(expire, key=("expire",)))

    assert "g" in shell.core.groups

    thread.leave()
    shell.act(partial(expire, key=("expire",)))

    assert "g" not in shell.core.groups
