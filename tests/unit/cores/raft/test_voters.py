"""Voter sets and their history."""

from uuid import UUID

import pytest

from headrace.cores.raft.voters import ReplicaKey, Voter, VoterHistory, VoterSet

A, B = UUID(int=1), UUID(int=2)


def voters(*ids):
    return VoterSet(Voter(ReplicaKey(node_id, A)) for node_id in ids)


def test_a_new_disk_is_somebody_else():
    """Is a voter known by its directory too, unless the settings name it without one?"""
    assert voters(1).has(ReplicaKey(1, A))
    assert not voters(1).has(ReplicaKey(1, B))
    assert not voters(1).has(ReplicaKey(2, A))
    assert VoterSet([Voter(ReplicaKey(1))]).has(ReplicaKey(1, B))


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        (None, True),
        (ReplicaKey(1), True),
        (ReplicaKey(1, A), True),
        (ReplicaKey(1, B), False),
        (ReplicaKey(2, A), False),
    ],
)
def test_whom_a_message_is_for(wanted, meant):
    """Is a message for this replica if it says so, or does not say?"""
    assert meant == ReplicaKey(1, A).answers_to(wanted)


def test_changes_of_the_set():
    """Does each change give a new set, or None where it makes no sense?"""
    assert voters(1, 2, 3) == voters(1, 2).add(Voter(ReplicaKey(3, A)))
    assert voters(1, 2).add(Voter(ReplicaKey(2, B))) is None
    assert voters(2) == voters(1, 2).remove(ReplicaKey(1, A))
    assert voters(1, 2).remove(ReplicaKey(1, B)) is None
    assert voters(1).remove(ReplicaKey(1, A)) is None
    assert voters(1).update(Voter(ReplicaKey(2, A))) is None
    updated = voters(1, 2).update(Voter(ReplicaKey(2, A), kraft_versions=(1, 1)))
    assert (1, 1) == updated.by_id[2].kraft_versions


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_majority(count, majority):
    """How many are a majority?"""
    assert majority == voters(*range(count)).majority


def test_history_follows_the_log():
    """Does the last voter set in the log count, until it is truncated away?"""
    history = VoterHistory(voters(9))

    assert (0, voters(9)) == (history.kraft_version, history.last)
    history.add(5, voters(1))
    history.add(8, voters(1, 2))
    assert (1, voters(1, 2), 8) == (history.kraft_version, history.last, history.last_offset)
    assert [None, voters(1), voters(1), voters(1, 2)] == [history.at(offset) for offset in (5, 6, 8, 9)]
    assert voters(1) == history.previous
    history.truncate_to(8)
    assert voters(1) == history.last
    history.truncate_to(0)
    assert (0, voters(9)) == (history.kraft_version, history.last)


def test_history_and_snapshots():
    """Does what a snapshot covers stay known as far as it still counts?"""
    history = VoterHistory(None, [(2, voters(1)), (5, voters(1, 2)), (9, voters(2))])

    history.trim_before(7)
    assert [None, voters(1, 2), voters(2)] == [history.at(offset) for offset in (5, 7, 10)]
    history.reset(20, voters(3))
    assert (voters(3), voters(3)) == (history.last, history.at(20))
    history.reset(20, None)
    assert 0 == len(history.last)
