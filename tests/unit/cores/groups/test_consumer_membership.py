"""Members of consumer groups that leave, come back and are replaced."""

import pytest

from consumer_shell import SESSION_MS, Consumer, ConsumerShell, settle
from headrace.cores.groups.consumer_limits import ConsumerLimits
from headrace.cores.groups.consumer_membership import check_room
from headrace.model.errors import ErrorCode, KafkaError


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return ConsumerShell(topics={"orders": 4})


def test_static_member_comes_back_to_its_place(shell):
    """Does a static member that left for a while get back what it had under a new id, without a new epoch?"""
    first = Consumer(shell, "a", instance_id="one")
    other = Consumer(shell, "b")
    first.join()
    other.join()
    settle(first, other, rounds=4)
    before = (first.owned, shell.group().group_epoch)

    assert -2 == first.leave(-2).member_epoch
    assert "Reconciling" == shell.group().state_name

    back = Consumer(shell, "a2", instance_id="one")
    answer = back.join()

    assert before == (back.owned, shell.group().group_epoch)
    assert 3 == answer.member_epoch
    assert {"a2", "b"} == shell.group().members.keys()
    assert ErrorCode.FENCED_INSTANCE_ID == shell.beat_error("a", 3, instance_id="one")


def test_static_member_comes_back_under_its_own_id(shell):
    """Does a static member that left for a while get its place back if it keeps its member id, too?"""
    member = Consumer(shell, "a", instance_id="one")
    member.join()
    owned = member.owned
    member.leave(-2)
    member.join()

    assert (owned, 2) == (member.owned, member.epoch)
    assert {"one": "a"} == shell.group().static_ids
    assert "Stable" == shell.group().state_name


def test_instance_id_in_use_is_not_given_away(shell):
    """Is an instance id refused to another member as long as its owner has not left?"""
    shell.beat("a", 0, instance_id="one")

    assert ErrorCode.UNRELEASED_INSTANCE_ID == shell.beat_error("b", 0, instance_id="one")
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.beat_error("b", 1, instance_id="two")
    assert ErrorCode.FENCED_INSTANCE_ID == shell.beat_error("b", -1, instance_id="one")


def test_static_member_that_stays_away_is_removed(shell):
    """Does the place of a static member that does not come back go when its session is over?"""
    member = Consumer(shell, "a", instance_id="one")
    member.join()
    member.leave(-2)
    shell.advance(SESSION_MS)

    assert shell.group().is_empty()
    assert {} == shell.group().static_ids


def test_leaving_member_makes_room(shell):
    """Do the partitions of a member that leaves go to the others, and is the group empty after the last?"""
    first, second = Consumer(shell, "a"), Consumer(shell, "b")
    first.join()
    second.join()
    settle(first, second, rounds=4)

    assert -1 == second.leave().member_epoch

    settle(first, rounds=2)

    assert {shell.topic_id("orders"): frozenset(range(4))} == first.owned

    first.leave()

    assert "Empty" == shell.group().state_name
    assert 5 == shell.group().group_epoch


def test_full_group_takes_nobody_in():
    """Does a group with as many members as it may have refuse another, and go on to serve those it has?"""
    shell = ConsumerShell({"group.consumer.max.size": 1}, topics={"orders": 1})
    shell.beat("a", 0)

    assert ErrorCode.GROUP_MAX_SIZE_REACHED == shell.beat_error("b", 0)
    assert 2 == shell.beat("a", 0).member_epoch


def test_room_is_for_those_who_are_in():
    """Is there always room for a member, and for a group that is not there yet?"""
    shell = ConsumerShell(topics={"orders": 1})
    shell.beat("a", 0)
    limits = ConsumerLimits(members_max=1)
    check_room(None, "b", limits)
    check_room(shell.group(), "a", limits)

    with pytest.raises(KafkaError):
        check_room(shell.group(), "b", limits)
