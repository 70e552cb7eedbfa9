"""Consumer groups (KIP-848), by the words of their members."""

import pytest

from consumer_shell import HEARTBEAT_MS, Consumer, ConsumerShell, settle
from headrace.cores.groups.consumer_member import MemberState
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
)


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return ConsumerShell(topics={"orders": 4})


def orders(shell, *indexes):
    return {shell.topic_id("orders"): tuple(indexes)}


# --- joining and sharing


def test_first_member_gets_everything(shell):
    """Does the first member get all partitions of its topic with the answer to its first heartbeat?"""
    answer = shell.beat("a", 0)

    assert ("a", 2, HEARTBEAT_MS) == (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms)
    assert orders(shell, 0, 1, 2, 3) == answer.assignment
    assert "Stable" == shell.group().state_name


def test_partition_moves_only_when_it_was_given_up(shell):
    """Does a second member wait for what it is to have until the first one says that it gave it up?"""
    first = Consumer(shell, "a")
    first.join()
    second = Consumer(shell, "b")
    joined = second.join()

    assert {} == joined.assignment
    assert MemberState.UNRELEASED_PARTITIONS is shell.group().members["b"].state

    told = first.beat()

    assert {shell.topic_id("orders"): frozenset({0, 1})} == first.told
    assert 2 == told.member_epoch
    assert MemberState.UNREVOKED_PARTITIONS is shell.group().members["a"].state
    assert second.beat().assignment is None

    first.give_up()

    assert 3 == first.beat().member_epoch
    assert orders(shell, 2, 3) == second.beat().assignment
    assert "Stable" == shell.group().state_name


def test_member_that_waits_comes_back_sooner(shell):
    """Is a member that waits for what another has yet to give up heard of more often, and only as long as it waits?"""
    first, second = Consumer(shell, "a"), Consumer(shell, "b")
    first.join()

    assert HEARTBEAT_MS // 5 == second.join().heartbeat_interval_ms
    assert HEARTBEAT_MS == first.beat().heartbeat_interval_ms, "it has to give up, and does so when its client can"
    assert HEARTBEAT_MS // 5 == second.beat().heartbeat_interval_ms

    first.give_up()

    assert HEARTBEAT_MS == first.beat().heartbeat_interval_ms
    assert HEARTBEAT_MS == second.beat().heartbeat_interval_ms


def test_answer_tells_partitions_only_when_they_changed(shell):
    """Is an assignment told on joining, when it changes, and to one who tells all, and left out otherwise?"""
    consumer = Consumer(shell, "a")
    consumer.join()

    assert consumer.beat().assignment is None
    assert orders(shell, 0, 1, 2, 3) == consumer.beat(full=True).assignment


def test_unknown_topic_is_assigned_when_it_comes(shell):
    """Does a member that reads a topic which is not there yet get it when it is created?"""
    consumer = Consumer(shell, "a", topics=("later",))

    assert {} == consumer.join().assignment

    shell.create_topic("later", 2)
    answer = consumer.beat()

    assert {shell.topic_id("later"): (0, 1)} == answer.assignment
    assert 3 == answer.member_epoch


def test_new_partitions_and_deleted_topics_change_the_assignment(shell):
    """Do partitions that are added come to the member, and those of a deleted topic go?"""
    consumer = Consumer(shell, "a")
    consumer.join()
    topic_id = shell.topic_id("orders")
    shell.grow_topic("orders", 6)

    assert {topic_id: (0, 1, 2, 3, 4, 5)} == consumer.beat().assignment

    shell.delete_topic("orders")

    assert {} == consumer.beat().assignment

    consumer.give_up()
    consumer.beat()

    assert {} == shell.group().members["a"].assigned
    assert "Stable" == shell.group().state_name


def test_topic_that_comes_again_is_another_one(shell):
    """Are the partitions of a topic that was deleted and created anew assigned anew?"""
    consumer = Consumer(shell, "a")
    consumer.join()
    shell.delete_topic("orders")
    shell.create_topic("orders", 1)
    settle(consumer, rounds=3)

    assert {shell.topic_id("orders"): frozenset({0})} == consumer.owned


def test_other_topics_do_not_raise_the_epoch(shell):
    """Does a topic that nobody reads leave a group as it is?"""
    Consumer(shell, "a").join()
    before = len(shell.log)
    shell.create_topic("other", 1)

    assert before == len(shell.log)


def test_unsubscribed_topic_is_taken_away_at_once():
    """Is a member taken off a topic it does not read any more, even while the next assignment has to wait?"""
    shell = ConsumerShell({"group.consumer.assignment.interval.ms": 60_000}, topics={"orders": 2, "bills": 2})
    consumer = Consumer(shell, "a", topics=("orders", "bills"))
    consumer.join()
    answer = shell.beat("a", consumer.epoch, topics=("orders",), owned=consumer.owned)

    assert orders(shell, 0, 1) == answer.assignment
    assert "Assigning" == shell.group().state_name


def test_assignments_keep_their_distance():
    """Is a second assignment made only when the interval is over, by a timer if nobody asks?"""
    shell = ConsumerShell({"group.consumer.assignment.interval.ms": 1_000}, topics={"orders": 4})
    Consumer(shell, "a").join()
    joined = Consumer(shell, "b").join()

    assert "Assigning" == shell.group().state_name
    assert HEARTBEAT_MS // 5 == joined.heartbeat_interval_ms, "whoever has nothing yet asks more often"

    shell.advance(1_000)

    assert "Reconciling" == shell.group().state_name
    assert 2 == len(shell.group().targets["b"][shell.topic_id("orders")])


def test_members_vote_for_the_assignor(shell):
    """Is the assignor used that most members ask for, and the first of the settings if nobody does?"""
    shell.create_topic("bills", 3)
    for member_id in ("a", "b"):
        shell.beat(member_id, 0, topics=("orders", "bills"), server_assignor="range")
    shell.beat("c", 0, topics=("orders", "bills"), server_assignor="uniform")

    assert "range" == shell.described().assignor
    assert {shell.topic_id("orders"): {0, 1}, shell.topic_id("bills"): {0}} == shell.group().targets["a"]


# --- epochs


def test_wrong_epochs_are_fenced(shell):
    """Is a member with an epoch that is not its own fenced, except for the one before if it missed the answer?"""
    first = Consumer(shell, "a")
    first.join()
    Consumer(shell, "b").join()
    first.beat()
    first.give_up()
    first.beat(is_lost=True)

    assert 3 == shell.group().members["a"].member_epoch
    assert ErrorCode.FENCED_MEMBER_EPOCH == shell.beat_error("a", 4)
    assert ErrorCode.FENCED_MEMBER_EPOCH == shell.beat_error("a", 1, owned={})
    assert ErrorCode.FENCED_MEMBER_EPOCH == shell.beat_error("a", 2, owned=orders(shell, 0, 3))
    assert ErrorCode.FENCED_MEMBER_EPOCH == shell.beat_error("a", 2)
    assert 3 == shell.beat("a", 2, owned=orders(shell, 0)).member_epoch


def test_strangers_are_refused(shell):
    """Are heartbeats for groups and members that are not there refused?"""
    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("a", 1)
    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("a", -1)

    shell.beat("a", 0)

    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.beat_error("b", 1)
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.beat_error("b", -1)


@pytest.mark.parametrize(
    "fields",
    [
        {"member_id": ""},
        {"group_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"owned": None},
        {"owned": {"t": (1,)}},
        {"topics": None},
        {"epoch": -2},
        {"epoch": -3},
    ],
)
def test_senseless_heartbeats_are_refused(shell, fields):
    """Is a heartbeat that makes no sense by itself refused, and nothing changed?"""
    asked = {"member_id": "a", "epoch": 0, **fields}

    assert ErrorCode.INVALID_REQUEST == shell.beat_error(**asked)
    assert [] == shell.log


def test_unknown_assignor_is_refused(shell):
    """Is an assignor that the settings do not list refused?"""
    assert ErrorCode.UNSUPPORTED_ASSIGNOR == shell.beat_error("a", 0, server_assignor="sticky")


# --- regular expressions


def test_pattern_follows_the_topics(shell):
    """Does a member that reads by expression get matching topics, those created later too, and lose deleted ones?"""
    consumer = Consumer(shell, "a", topics=None, regex="or.*|.*-eu")
    consumer.join()

    assert {shell.topic_id("orders")} == consumer.told.keys()

    shell.create_topic("bills-eu", 1)
    shell.create_topic("bills-us", 1)
    settle(consumer, rounds=2)

    assert {shell.topic_id("orders"), shell.topic_id("bills-eu")} == consumer.owned.keys()
    assert shell.group().is_subscribed_to("bills-eu")

    shell.delete_topic("orders")
    settle(consumer, rounds=2)

    assert {shell.topic_id("bills-eu")} == consumer.owned.keys()


def test_pattern_goes_with_its_last_member(shell):
    """Is what an expression matched forgotten when nobody has it any more?"""
    first, second = (Consumer(shell, name, topics=None, regex="orders") for name in "ab")
    first.join()
    second.join()
    first.leave()

    assert {"orders"} == shell.group().resolved.keys()

    shell.beat("b", second.epoch, regex="", topics=("orders",))

    assert {} == shell.group().resolved
    assert (ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="orders"), None, -1) in shell.log


def test_bad_pattern_is_refused(shell):
    """Is an expression that RE2 cannot read refused before anything changes?"""
    assert ErrorCode.INVALID_REGULAR_EXPRESSION == shell.beat_error("a", 0, topics=None, regex="(")
    assert ErrorCode.INVALID_REGULAR_EXPRESSION == shell.beat_error("a", 0, topics=None, regex="(?=a)")
    assert [] == shell.log


# --- offsets


def test_commits_are_checked_against_epochs(shell):
    """May a member commit in its epoch, in an older one for what it has kept since, and not otherwise?"""
    first = Consumer(shell, "a")
    first.join()
    second = Consumer(shell, "b")
    second.join()
    settle(first, second, rounds=4)
    group = shell.group()
    topic_id = shell.topic_id("orders")

    assert group.check_commit("a", None, 3, transactional=False) is None

    check = group.check_commit("a", None, 2, transactional=False)
    check("orders", topic_id, 0)

    with pytest.raises(KafkaError) as given_up:
        check("orders", topic_id, 3)
    with pytest.raises(KafkaError) as too_old:
        group.check_commit("b", None, 1, transactional=False)("orders", topic_id, 3)
    with pytest.raises(KafkaError) as too_new:
        group.check_commit("a", None, 9, transactional=False)
    with pytest.raises(KafkaError) as stranger:
        group.check_commit("x", None, 1, transactional=False)

    assert [ErrorCode.STALE_MEMBER_EPOCH] * 3 + [ErrorCode.UNKNOWN_MEMBER_ID] == [
        error.value.code for error in (given_up, too_old, too_new, stranger)
    ]


def test_administrator_commits_to_an_empty_group(shell):
    """May one who is no member commit only while there are none?"""
    shell.beat("a", 0)

    with pytest.raises(KafkaError) as refused:
        shell.group().check_commit("", None, -1, transactional=False)
    assert ErrorCode.UNKNOWN_MEMBER_ID == refused.value.code
    assert shell.group().check_commit("", None, -1, transactional=True) is None

    shell.beat("a", -1)

    assert shell.group().check_commit("", None, -1, transactional=False) is None


def test_offsets_are_told_to_members_of_the_epoch(shell):
    """Must one who claims to be a member be in its epoch to ask for offsets?"""
    shell.beat("a", 0)
    group = shell.group()
    group.check_fetch(None, -1)
    group.check_fetch("a", 2)

    with pytest.raises(KafkaError) as stale:
        group.check_fetch("a", 1)
    with pytest.raises(KafkaError) as stranger:
        group.check_fetch("x", 2)

    assert [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID] == [stale.value.code, stranger.value.code]


def test_group_with_members_is_not_deleted(shell):
    """Is a group deleted only when it is empty, and then with all its records?"""
    shell.beat("a", 0, topics=None, regex="orders")

    assert ErrorCode.NON_EMPTY_GROUP == shell.delete_group()

    shell.beat("a", -1)

    assert 0 == shell.delete_group()
    assert "g" not in shell.core.groups


# --- describing


def test_description_shows_what_is_and_what_is_to_be(shell):
    """Does an administrator see epochs, state, and what each member owns, has to give up, and is to own?"""
    first = Consumer(shell, "a", instance_id="one", rack_id="r1")
    first.join()
    Consumer(shell, "b", topics=None, regex="ord.*").join()
    first.beat()
    described = shell.described()
    member = next(each for each in described.members if each.member_id == "a")

    assert ("Reconciling", 3, 3, "uniform") == (
        described.state,
        described.group_epoch,
        described.assignment_epoch,
        described.assignor,
    )
    assert ("one", "r1", 2, "client", "/127.0.0.1", ("orders",), "", False) == (
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        member.topics,
        member.regex,
        member.is_classic,
    )
    assert [("orders", (0, 1, 2, 3))] == [(each.topic, each.partitions) for each in member.assignment]
    assert [("orders", 2)] == [(each.topic, len(each.partitions)) for each in member.target]
    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.described("nothing").code


def test_epoch_is_raised_once_per_change(shell):
    """Does one heartbeat raise the group epoch at most once?"""
    shell.beat("a", 0, topics=("orders", "later"), regex="or.*")
    epochs = [value.epoch for key, value, _ in shell.log if isinstance(key, ConsumerGroupMetadataKey)]

    assert [2] == epochs
