"""How classic groups go from one generation to the next, and who falls out."""

import pytest

from group_shell import NOW_MS, REBALANCE_MS, SESSION_MS, GroupShell
from headrace.cores.groups.classic_rebalance import disband, stored_bytes
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode

DELAY_MS = 3_000


@pytest.fixture
def shell():
    """A coordinator without groups."""
    return GroupShell()


def state_of(shell, group_id="g"):
    return shell.core.groups[group_id].state_name


# --- rebalances


def test_leader_that_joins_again_calls_for_a_rebalance(shell):
    """Does a join of the leader begin a rebalance, even if nothing about the leader has changed?"""
    a, b = shell.settle("a", "b")
    token = shell.join(member_id=a)

    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.heartbeat(b, 1)

    shell.join(member_id=b)

    assert 2 == shell.answers[token].generation_id


def test_follower_that_joins_again_unchanged_gets_the_generation(shell):
    """Is a follower that missed its answer told of the current generation, in both states, without a rebalance?"""
    tokens = [shell.join(new_member_id=member_id) for member_id in "ab"]
    shell.advance(3 * DELAY_MS)
    again = shell.join(member_id="b")

    assert shell.answers[tokens[1]] == shell.answers[again]

    shell.sync("a", 1, [("a", b"1"), ("b", b"2")])
    once_more = shell.join(member_id="b")

    assert shell.answers[tokens[1]] == shell.answers[once_more]
    assert "Stable" == state_of(shell)


def test_changed_follower_calls_for_a_rebalance(shell):
    """Does a follower with a new subscription begin a rebalance?"""
    _, b = shell.settle("a", "b")
    shell.join(member_id=b, protocols=(("range", b"more"),))

    assert "PreparingRebalance" == state_of(shell)


def test_who_does_not_join_in_time_is_out(shell):
    """Does the next generation begin without those who let the rebalance timeout pass?"""
    a, b = shell.settle("a", "b")
    token = shell.join(new_member_id="c")
    shell.join(member_id=a)
    for _ in range(10):
        shell.heartbeat(b, 1)
        shell.advance(REBALANCE_MS // 10)

    assert 2 == shell.answers[token].generation_id
    assert {"a", "c"} == set(shell.core.groups["g"].members)
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.heartbeat(b, 1)


def test_joining_twice_ends_the_first_wait(shell):
    """Is a join that a member repeats answered once per request, the first one with a call to come again?"""
    a, _ = shell.settle("a", "b")
    first = shell.join(member_id=a)
    second = shell.join(member_id=a)

    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.error(first)
    assert second in shell.waiting


def test_votes_decide_the_protocol(shell):
    """Is the protocol chosen that most members like best, of those all know?"""
    likes = [("x", "y", "z"), ("y", "x"), ("y", "x")]
    tokens = [shell.join(protocols=tuple((name, name.encode()) for name in names)) for names in likes]
    shell.advance(4 * DELAY_MS)

    assert ["y"] * 3 == [shell.answers[token].protocol_name for token in tokens]
    assert [b"y"] * 3 == [member.metadata for member in shell.answers[tokens[0]].members]


def test_other_protocol_types(shell):
    """Is a group of anything but consumers served the same, its bytes unread?"""
    token = shell.join(protocol_type="connect", protocols=(("sessioned", b"\xff\xfe"),))
    shell.advance(DELAY_MS)

    assert ("connect", "sessioned") == (shell.answers[token].protocol_type, shell.answers[token].protocol_name)


# --- sessions


def test_silent_member_is_removed(shell):
    """Does a member that sends no heartbeat for its session timeout fall out, and the others rebalance?"""
    a, b = shell.settle("a", "b")
    shell.advance(SESSION_MS - 1)
    shell.heartbeat(a, 1)
    shell.advance(1)

    assert {a} == set(shell.core.groups["g"].members)
    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.heartbeat(a, 1)
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.heartbeat(b, 1)


@pytest.mark.parametrize("timer", ["classic-session", "classic-join", "classic-sync"])
def test_timer_that_fires_early(shell, timer):
    """Is a timer that fires before its time harmless, and set again?"""
    tokens = [shell.join(new_member_id=member_id) for member_id in "ab"]
    if timer == "classic-sync":
        shell.advance(3 * DELAY_MS)
    key = next(key for key in shell.timers if key[0] == timer)
    at_ms = shell.timers.pop(key)
    before = (state_of(shell), set(shell.core.groups["g"].members))
    shell.fire(key)

    assert before == (state_of(shell), set(shell.core.groups["g"].members))
    assert at_ms == shell.timers[key]
    assert tokens


def test_timer_of_a_group_that_is_gone(shell):
    """Is a timer harmless whose group was deleted meanwhile?"""
    for word in ("classic-session", "classic-join", "classic-sync"):
        shell.fire((word, "g", "a"))

    assert {} == shell.core.groups


def test_new_member_whose_client_is_gone(shell):
    """Is one that waits in its first join removed after five minutes, as it cannot send heartbeats?"""
    shell.settle("a", rebalance_timeout_ms=1_000_000)
    token = shell.join(new_member_id="b")
    for _ in range(60):
        shell.heartbeat("a", 1)
        shell.advance(5_000)

    assert (ErrorCode.UNKNOWN_MEMBER_ID, "") == (shell.answers[token].error, shell.answers[token].member_id)


@pytest.mark.parametrize(
    ("member_id", "generation_id", "fields", "error"),
    [
        ("a", 1, {}, 0),
        ("x", 1, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", 2, {}, ErrorCode.ILLEGAL_GENERATION),
        ("a", 1, {"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", 1, {"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", 1, {"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_heartbeat(shell, member_id, generation_id, fields, error):
    """Is a heartbeat answered as Kafka does?"""
    shell.settle("a")

    assert error == shell.heartbeat(member_id, generation_id, **fields)


# --- restarts


def test_members_survive_a_restart(shell):
    """Are members, generation and assignments there after a restart, and are sessions counted from then on?"""
    a, b = shell.settle("a", "b", session_timeout_ms=6_000)
    shell.advance(5_999)
    shell.restart()
    shell.advance(5_999)

    assert 0 == shell.heartbeat(a, 1)
    assert b"a-b" == shell.answers[shell.sync(b, 1)].assignment

    shell.advance(6_000)

    assert "Empty" == state_of(shell)


def test_unfinished_generation_is_lost_with_the_coordinator(shell):
    """Does a restart during a rebalance bring the last complete generation back, and do its members go on?"""
    a, b = shell.settle("a", "b")
    shell.join(new_member_id="c")
    shell.restart()

    assert 0 == shell.heartbeat(a, 1)
    assert {a, b} == set(shell.core.groups["g"].members)
    assert "Stable" == state_of(shell)


def test_static_member_survives_a_restart(shell):
    """Does a static member that is back after a restart still get its place?"""
    shell.settle("a", instance_id="i")
    shell.restart()
    answer = shell.answers[shell.join(instance_id="i", new_member_id="b", can_skip_assignment=True)]

    assert (1, "b", True) == (answer.generation_id, answer.leader, answer.skip_assignment)


def test_new_group_is_known_after_a_restart(shell):
    """Is a group that nobody has completed a generation of empty after a restart?"""
    shell.join()
    shell.restart()

    assert "Empty" == state_of(shell)
    assert NOW_MS == shell.core.groups["g"].stored.current_state_timestamp


# --- the log


def test_size_is_never_underestimated(shell):
    """Is what a group is thought to need in the log at least what it needs, in whatever letters its names are?"""
    for number in range(5):
        shell.join(new_member_id=f"é{number}", instance_id=f"ñ{number}", client_id="ü" * 100)
    shell.advance(6 * DELAY_MS)
    group = shell.core.groups["g"]
    record = group.as_record()
    needed = sum(
        len(text.encode())
        for member in record.members
        for text in (member.member_id, member.client_id, member.client_host, member.group_instance_id)
    ) + sum(len(member.subscription) + len(member.assignment) for member in record.members)

    assert needed < stored_bytes(group)


def test_disband_answers_everyone(shell):
    """When a group goes on as one of another kind, is everyone who waits told to join again, and no timer left?"""
    a, b = shell.settle("a", "b")
    waiting = shell.join(member_id=a)
    shell.join(needs_known_member_id=True, new_member_id="p")

    def step(groups, now_ms):
        outcome = Outcome()
        disband(groups.groups["g"], outcome)
        assert now_ms
        return outcome

    shell.act(step)

    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.error(waiting)
    assert [("offset-expiry",)] == list(shell.timers)
    assert b
