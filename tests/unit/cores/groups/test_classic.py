"""Classic groups, by the words of their members."""

import pytest

from group_shell import REBALANCE_MS, SESSION_MS, GroupShell
from headrace.cores.groups.classic_commands import JoinedMember, Synced
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import GroupMetadataKey

DELAY_MS = 3_000


@pytest.fixture
def shell():
    """A coordinator without groups."""
    return GroupShell()


def state_of(shell, group_id="g"):
    return shell.core.groups[group_id].state_name


# --- the first generation


def test_first_generation_waits_for_more_members(shell):
    """Does a new group wait for its initial delay, once more for those who come meanwhile, and then begin?"""
    first = shell.join(new_member_id="a")
    shell.advance(DELAY_MS - 1)
    second = shell.join(new_member_id="b")
    shell.advance(DELAY_MS)

    assert {first, second} <= shell.waiting

    shell.advance(DELAY_MS)
    leader, follower = shell.answers[first], shell.answers[second]

    assert (1, "a", "a", "range", "consumer") == (
        leader.generation_id,
        leader.member_id,
        leader.leader,
        leader.protocol_name,
        leader.protocol_type,
    )
    assert [
        JoinedMember(member_id="a", instance_id=None, metadata=b"r"),
        JoinedMember(member_id="b", instance_id=None, metadata=b"r"),
    ] == list(leader.members)
    assert (1, "b", "a", ()) == (follower.generation_id, follower.member_id, follower.leader, follower.members)
    assert "CompletingRebalance" == state_of(shell)


def test_initial_wait_ends_with_the_members_patience(shell):
    """Does a stream of new members delay the first generation no longer than their rebalance timeout?"""
    first = shell.join(rebalance_timeout_ms=5_000)
    for _ in range(4):
        shell.advance(2_000)
        shell.join(rebalance_timeout_ms=5_000)

    assert first in shell.answers


def test_no_initial_delay():
    """Does a group without an initial delay begin at once?"""
    shell = GroupShell(initial_rebalance_delay_ms=0)
    token = shell.join()
    shell.advance(0)

    assert 1 == shell.answers[token].generation_id


def test_member_id_required(shell):
    """Is a new member sent away to come back with the id it was given, and taken in then?"""
    away = shell.join(needs_known_member_id=True, new_member_id="a")

    assert (ErrorCode.MEMBER_ID_REQUIRED, "a") == (shell.answers[away].error, shell.answers[away].member_id)

    token = shell.join(member_id="a", needs_known_member_id=True)
    shell.advance(DELAY_MS)

    assert "a" == shell.answers[token].leader


def test_pending_member_expires(shell):
    """Is an id that nobody came back with forgotten after the session timeout, and a rebalance goes on without it?"""
    shell.settle("a")
    shell.join(needs_known_member_id=True, new_member_id="b")
    again = shell.join(member_id="a", protocols=(("range", b"new"),))

    assert again in shell.waiting

    for _ in range(2):
        shell.advance(SESSION_MS // 2)

    assert 2 == shell.answers[again].generation_id
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.error(shell.join(member_id="b"))


def test_pending_members_are_bounded():
    """Is a client that never comes back with its ids refused at some point?"""
    shell = GroupShell(pending_members_max=2)
    errors = [shell.error(shell.join(needs_known_member_id=True)) for _ in range(3)]

    assert [ErrorCode.MEMBER_ID_REQUIRED] * 2 + [ErrorCode.GROUP_MAX_SIZE_REACHED] == errors


# --- what a join is refused for


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "x", "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_refused_join_makes_no_group(shell, fields, error):
    """Is a bad join to a group that is not there refused as Kafka does, without leaving a group behind?"""
    assert error == shell.error(shell.join(**fields))
    assert {} == shell.core.groups


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"protocols": (("sticky", b""),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a", "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_refused_join_leaves_the_group_alone(shell, fields, error):
    """Is a bad join to a stable group refused as Kafka does, and the group still stable?"""
    shell.settle("a")

    assert error == shell.error(shell.join(**fields))
    assert "Stable" == state_of(shell)


def test_full_group():
    """Is one more than `group.max.size` turned away, from a stable group and from one that prepares?"""
    shell = GroupShell(members_max=2)
    a, b = shell.settle("a", "b")

    assert ErrorCode.GROUP_MAX_SIZE_REACHED == shell.error(shell.join())

    shell.join(member_id=a)
    last = shell.join(member_id=b)

    assert 2 == shell.answers[last].generation_id


def test_lowered_limit_turns_the_last_away():
    """After `group.max.size` was lowered and the coordinator restarted, is the last to come back turned away?"""
    shell = GroupShell()
    a, b = shell.settle("a", "b")
    shell.limits = type(shell.limits)(members_max=1)
    shell.restart()
    first = shell.join(member_id=b)
    second = shell.join(member_id=a)

    assert ErrorCode.GROUP_MAX_SIZE_REACHED == shell.error(second)
    assert (2, b) == (shell.answers[first].generation_id, shell.answers[first].leader)


# --- sync


def test_leader_brings_the_assignment(shell):
    """Do followers wait for the leader's assignment, and does everyone get its own?"""
    tokens = [shell.join(new_member_id=member_id) for member_id in "abc"]
    shell.advance(3 * DELAY_MS)
    early = shell.sync("b", 1)

    assert early in shell.waiting

    leader = shell.sync("a", 1, [("a", b"1"), ("b", b"2"), ("nobody", b"4")])
    late = shell.sync("c", 1, protocol_type="consumer", protocol_name="range")

    assert all(token in shell.answers for token in tokens)
    assert [b"1", b"2", b""] == [shell.answers[token].assignment for token in (leader, early, late)]
    assert Synced(assignment=b"2", protocol_type="consumer", protocol_name="range") == shell.answers[early]
    assert "Stable" == state_of(shell)


@pytest.mark.parametrize(
    ("arguments", "fields", "error"),
    [
        (("x", 1), {}, ErrorCode.UNKNOWN_MEMBER_ID),
        (("a", 0), {}, ErrorCode.ILLEGAL_GENERATION),
        (("a", 2), {}, ErrorCode.ILLEGAL_GENERATION),
        (("a", 1), {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (("a", 1), {"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (("a", 1), {"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (("a", 1), {"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (("a", 1), {"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_refused_sync(shell, arguments, fields, error):
    """Is a sync that does not fit the group refused as Kafka does?"""
    shell.settle("a")

    assert error == shell.error(shell.sync(*arguments, **fields))


def test_sync_while_the_group_prepares(shell):
    """Is a sync refused with REBALANCE_IN_PROGRESS while the group prepares its next generation?"""
    a, _ = shell.settle("a", "b")
    shell.join(member_id=a)

    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.error(shell.sync("b", 1))


def test_waiting_sync_is_called_back(shell):
    """Does one who waits for its assignment hear that a new rebalance has begun?"""
    for member_id in "ab":
        shell.join(new_member_id=member_id)
    shell.advance(3 * DELAY_MS)
    waiting = shell.sync("b", 1)
    shell.join(new_member_id="c")

    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.error(waiting)
    assert "PreparingRebalance" == state_of(shell)


def test_late_sync_falls_out(shell):
    """Is a member that joined but never asks for its assignment removed after the rebalance timeout?"""
    for member_id in "ab":
        shell.join(new_member_id=member_id)
    shell.advance(2 * DELAY_MS)
    shell.sync("a", 1, [("a", b"1")])
    for _ in range(10):
        shell.heartbeat("a", 1)
        shell.heartbeat("b", 1)
        shell.advance(REBALANCE_MS // 10)

    assert {"a"} == set(shell.core.groups["g"].members)
    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.heartbeat("a", 1)


def test_assignment_that_cannot_be_stored():
    """Is an assignment too large for the log refused, written nowhere, and the group asked to try again?"""
    shell = GroupShell(write_bytes_max=1_000)
    shell.join(new_member_id="a")
    shell.advance(DELAY_MS)
    token = shell.sync("a", 1, [("a", bytes(1_000))])

    assert ErrorCode.UNKNOWN_SERVER_ERROR == shell.error(token)
    assert "PreparingRebalance" == state_of(shell)
    assert () == shell.log[-1][1].members
    assert [b""] == [member.assignment for member in shell.describe().members]


# --- leaving


def test_last_member_leaves(shell):
    """Does a group whose last member leaves become empty, in a new generation, and the log know it?"""
    shell.settle("a")

    assert [0] == shell.leave("a")

    key, value, _ = shell.log[-1]

    assert (GroupMetadataKey(group="g"), 2, (), "consumer", None, None) == (
        key,
        value.generation,
        value.members,
        value.protocol_type,
        value.protocol,
        value.leader,
    )
    assert "Empty" == state_of(shell)
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.heartbeat("a", 2)


def test_several_leave_at_once(shell):
    """Can known, unknown, pending and static members leave in one request, each answered for itself?"""
    shell.settle("a", "b")
    shell.join(needs_known_member_id=True, new_member_id="p")
    errors = shell.leave("a", "x", "p", instances=[("", "i"), ("b", "i")])

    assert [0, ErrorCode.UNKNOWN_MEMBER_ID, 0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID] == errors
    assert {"b"} == set(shell.core.groups["g"].members)


def test_leader_leaves_while_others_wait(shell):
    """When the leader leaves before it has assigned, do those who wait hear of it, and one of them lead next?"""
    for member_id in "ab":
        shell.join(new_member_id=member_id)
    shell.advance(3 * DELAY_MS)
    waiting = shell.sync("b", 1)
    shell.leave("a")

    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.error(waiting)

    token = shell.join(member_id="b")

    assert (2, "b") == (shell.answers[token].generation_id, shell.answers[token].leader)


def test_leave_ends_a_wait(shell):
    """Is a join that waits answered with UNKNOWN_MEMBER_ID when its member is removed?"""
    shell.settle("a", "b")
    waiting = shell.join(member_id="a")
    shell.leave("a")

    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.error(waiting)


def test_leave_ends_a_wait_for_an_assignment(shell):
    """Is a sync that waits answered with UNKNOWN_MEMBER_ID when its member is removed?"""
    for member_id in "ab":
        shell.join(new_member_id=member_id)
    shell.advance(3 * DELAY_MS)
    waiting = shell.sync("b", 1)
    shell.leave("b")

    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.error(waiting)


def test_leave_of_an_unknown_group(shell):
    """Is leaving a group that is not there UNKNOWN_MEMBER_ID?"""
    assert [ErrorCode.UNKNOWN_MEMBER_ID] == shell.leave("a")


# --- describing


def test_describe(shell):
    """Is a stable group described with its members' metadata and assignments, one that prepares without?"""
    shell.settle("a")
    stable = shell.describe()
    shell.join(new_member_id="b")
    preparing = shell.describe()

    assert ("Stable", "consumer", "range") == (stable.state, stable.protocol_type, stable.protocol_name)
    assert [("a", "client", "/127.0.0.1", b"r", b"a-a")] == [
        (each.member_id, each.client_id, each.client_host, each.metadata, each.assignment) for each in stable.members
    ]
    assert ("PreparingRebalance", "") == (preparing.state, preparing.protocol_name)
    assert [b"", b""] == [each.metadata for each in preparing.members]


def test_describe_of_an_unknown_group(shell):
    """Is a group that is not there GROUP_ID_NOT_FOUND?"""
    answer = shell.describe()

    assert isinstance(answer, KafkaError)
    assert ErrorCode.GROUP_ID_NOT_FOUND == answer.code
