"""Static members: known by their instance id, through restarts of their own and of the coordinator (KIP-345)."""

import pytest

from group_shell import REBALANCE_MS, GroupShell
from headrace.model.errors import ErrorCode

DELAY_MS = 3_000


@pytest.fixture
def shell():
    """A coordinator without groups."""
    return GroupShell()


def state_of(shell, group_id="g"):
    return shell.core.groups[group_id].state_name


def test_static_member_returns_without_a_rebalance(shell):
    """Does a restarted static member get its place and assignment again, under a new id, without a rebalance?"""
    old = shell.settle("a", instance_id="i")[0]
    token = shell.join(instance_id="i", new_member_id="b", can_skip_assignment=True)
    answer = shell.answers[token]

    assert (1, "b", "b", True) == (answer.generation_id, answer.member_id, answer.leader, answer.skip_assignment)
    assert ["b"] == [member.member_id for member in answer.members]
    assert b"a-a" == shell.answers[shell.sync("b", 1)].assignment
    assert ErrorCode.FENCED_INSTANCE_ID == shell.heartbeat(old, 1, instance_id="i")
    assert ["b"] == [member.member_id for member in shell.log[-1][1].members]


def test_old_static_leader_is_not_told_to_lead(shell):
    """Is an older client that comes back as leader told of another leader, so that it does not assign anew?"""
    shell.settle("a", instance_id="i")
    answer = shell.answers[shell.join(instance_id="i", new_member_id="b")]

    assert ("b", "a", (), False) == (answer.member_id, answer.leader, answer.members, answer.skip_assignment)


def test_static_member_with_another_protocol_rebalances(shell):
    """Does a static member that comes back with protocols which change the vote begin a rebalance?"""
    shell.settle("a", instance_id="i", protocols=(("x", b""), ("y", b"")))
    token = shell.join(instance_id="i", new_member_id="b", protocols=(("y", b""),))

    assert (2, "y") == (shell.answers[token].generation_id, shell.answers[token].protocol_name)


def test_static_member_returns_while_the_group_awaits_its_assignment(shell):
    """Does a static member that comes back between join and sync begin another rebalance, its twin fenced?"""
    shell.join(instance_id="i", new_member_id="a")
    shell.join(new_member_id="d")
    shell.advance(3 * DELAY_MS)
    shell.join(instance_id="j", new_member_id="c")
    shell.join(member_id="d")
    shell.join(member_id="a", instance_id="i")
    waiting = shell.sync("c", 2, instance_id="j")
    token = shell.join(instance_id="j", new_member_id="e")

    assert ErrorCode.FENCED_INSTANCE_ID == shell.error(waiting)
    assert token in shell.waiting
    assert "PreparingRebalance" == state_of(shell)


def test_static_member_replaces_one_that_waits(shell):
    """Is a join that waits fenced when another comes under the same instance id, in the first generation?"""
    first = shell.join(instance_id="i", new_member_id="a")
    second = shell.join(instance_id="i", new_member_id="b")

    assert (ErrorCode.FENCED_INSTANCE_ID, "a") == (shell.answers[first].error, shell.answers[first].member_id)

    shell.advance(DELAY_MS)

    assert (1, "b") == (shell.answers[second].generation_id, shell.answers[second].leader)


def test_absent_static_member_stays(shell):
    """Is a static member that does not come back in time kept, and another one made leader?"""
    shell.settle("a", instance_id="i", session_timeout_ms=200_000)
    token = shell.join(new_member_id="b")
    shell.advance(REBALANCE_MS)

    assert (2, "b") == (shell.answers[token].generation_id, shell.answers[token].leader)
    assert {"a", "b"} == set(shell.core.groups["g"].members)


def test_nobody_but_absent_static_members(shell):
    """When only static members are left and none comes back, does the group wait until their sessions end?"""
    shell.settle("a", instance_id="i", session_timeout_ms=200_000)
    waiting = shell.join(new_member_id="b")
    shell.leave("b")
    shell.advance(REBALANCE_MS)

    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.error(waiting)
    assert ("PreparingRebalance", {"a"}) == (state_of(shell), set(shell.core.groups["g"].members))

    shell.advance(200_000)

    assert "Empty" == state_of(shell)


def test_static_member_is_removed_by_an_administrator(shell):
    """Can a static member be removed by its instance id alone?"""
    shell.settle("a", instance_id="i")

    assert [0] == shell.leave(instances=[("", "i")])
    assert "Empty" == state_of(shell)


def test_wrong_member_of_an_instance_cannot_leave(shell):
    """Is one that is not the current member of an instance id fenced when it leaves?"""
    shell.settle("a", instance_id="i")
    shell.join(instance_id="i", new_member_id="b")

    assert [ErrorCode.FENCED_INSTANCE_ID] == shell.leave(instances=[("a", "i")])


def test_static_member_that_cannot_be_stored():
    """Is a static member refused that comes back with more metadata than the log takes, and its twin left alone?"""
    shell = GroupShell(write_bytes_max=1_000)
    shell.settle("a", instance_id="i")
    token = shell.join(instance_id="i", new_member_id="b", protocols=(("range", bytes(1_000)),))

    assert ErrorCode.UNKNOWN_SERVER_ERROR == shell.error(token)
    assert 0 == shell.heartbeat("a", 1, instance_id="i")
