"""Groups that move from the classic protocol to the consumer protocol and back, member by member."""

import pytest

from consumer_shell import Consumer, ConsumerShell
from group_shell import REBALANCE_MS, SESSION_MS
from headrace.cores.groups.classic_group import ClassicGroup
from headrace.cores.groups.consumer_group import ConsumerGroup
from headrace.cores.groups.consumer_protocol import (
    Subscription,
    read_assignment,
    write_assignment,
    write_subscription,
)
from headrace.cores.groups.upgrade_conversion import by_topic_name
from headrace.model.errors import ErrorCode
from headrace.model.group_records import GroupMetadataKey

DELAY_MS = 3_000


def shell_with(settings=None, **limits):
    return ConsumerShell(settings, topics={"orders": 4}, **limits)


@pytest.fixture
def shell():
    """A coordinator with one topic of four partitions."""
    return shell_with()


class ClassicConsumer:
    """A consumer of the classic protocol that keeps what it owns while it joins, as cooperative ones do."""

    def __init__(self, shell, member_id="", *, topics=("orders",), protocols=("cooperative",), **fields):
        self.shell = shell
        self.member_id = member_id
        self.topics = topics
        self.protocols = protocols
        self.fields = fields
        self.generation_id = -1
        self.owned = {}

    def join(self, **fields):
        """Ask to join; the answer, or None if it has to wait."""
        metadata = write_subscription(
            Subscription(topics=self.topics, owned=self.owned, generation_id=self.generation_id), version=2
        )
        token = self.shell.join(
            member_id=self.member_id, protocols=[(name, metadata) for name in self.protocols], **self.fields | fields
        )
        self.token = token
        return self.hear()

    def hear(self):
        """The answer to the last join, if it has come."""
        answer = self.shell.answers.get(self.token)
        if answer is not None and not getattr(answer, "error", ErrorCode.NONE) and hasattr(answer, "member_id"):
            self.member_id, self.generation_id = answer.member_id, answer.generation_id
        return answer

    def sync(self, assignments=()):
        """Ask for the assignment; the error code, or 0."""
        token = self.shell.sync(self.member_id, self.generation_id, assignments)
        answer = self.shell.answers.get(token)
        if answer is not None and hasattr(answer, "assignment"):
            self.owned = dict(read_assignment(answer.assignment).partitions)
        return None if answer is None else getattr(answer, "code", 0)

    def beat(self):
        """Say that it lives; the error code."""
        return self.shell.heartbeat(self.member_id, self.generation_id)


def classic_group(shell, *member_ids, partitions=4, **fields):
    """A stable classic group in which the first member has all partitions."""
    consumers = [ClassicConsumer(shell, **fields) for _ in member_ids]
    for consumer, member_id in zip(consumers, member_ids, strict=True):
        consumer.join(new_member_id=member_id)
    shell.advance(DELAY_MS * (len(consumers) + 1))
    for consumer in consumers:
        consumer.hear()
    everything = {"orders": tuple(range(partitions))}
    given = [(consumer.member_id, write_assignment({}, version=2)) for consumer in consumers[1:]]
    given.append((consumers[0].member_id, write_assignment(everything, version=2)))
    for consumer in consumers:
        consumer.sync(given if consumer is consumers[0] else ())
    assert consumers[0].owned == everything
    return consumers


# --- up


def test_classic_group_becomes_a_consumer_group(shell):
    """Does a group go over with the first member of the new protocol, and do the old ones share with it, live?"""
    (old,) = classic_group(shell, "c1")
    new = Consumer(shell, "n1")
    joined = new.join()

    assert isinstance(shell.group(), ConsumerGroup)
    assert ({}, 2) == (joined.assignment, joined.member_epoch)
    assert (GroupMetadataKey(group="g"), None, -1) in shell.log
    assert ErrorCode.REBALANCE_IN_PROGRESS == old.beat()

    old.join()

    assert 0 == old.sync()
    assert 2 == len(old.owned["orders"])
    assert ErrorCode.REBALANCE_IN_PROGRESS == old.beat()

    old.join()
    old.sync()
    new.beat()

    assert ErrorCode.NONE == old.beat()
    assert set(range(4)) == {*old.owned["orders"], *new.owned[shell.topic_id("orders")]}
    assert "Stable" == shell.group().state_name
    assert {"c1": True, "n1": False} == {each.member_id: each.is_classic for each in shell.described().members}


def test_offsets_and_sessions_go_on_after_the_move(shell):
    """May an old member commit in its generation after the move, and is it removed when its own session is over?"""
    (old,) = classic_group(shell, "c1")
    Consumer(shell, "n1").join()

    assert shell.group().check_commit("c1", None, old.generation_id, transactional=False) is None

    shell.advance(SESSION_MS)

    assert {"n1"} == shell.group().members.keys()


def test_waiting_members_are_asked_to_join_again(shell):
    """Is a join that waits in the classic group answered when the group goes over?"""
    first, second = classic_group(shell, "c1", "c2")
    waiting = ClassicConsumer(shell, first.member_id)
    waiting.owned = {"orders": (0,)}
    waiting.join()
    waiting.join()

    assert waiting.token in shell.waiting

    Consumer(shell, "n1").join()

    assert ErrorCode.REBALANCE_IN_PROGRESS == waiting.hear().error
    assert not shell.waiting
    assert {"c1", "c2", "n1"} == shell.group().members.keys()
    assert second.member_id == "c2"


def test_empty_classic_group_simply_goes(shell):
    """Does an empty classic group make way for a consumer group, whatever the policy?"""
    shell.settings["group.consumer.migration.policy"] = "disabled"
    classic_group(shell, "c1")
    shell.leave("c1")

    assert 2 == Consumer(shell, "n1").join().member_epoch


def test_empty_consumer_group_simply_goes(shell):
    """Does an empty consumer group make way for a classic one?"""
    Consumer(shell, "n1").join()
    shell.beat("n1", -1)
    ClassicConsumer(shell).join(new_member_id="c1")

    assert isinstance(shell.core.groups["g"], ClassicGroup)


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_policy_may_forbid_to_go_up(policy):
    """Does a classic group stay what it is where the policy says so?"""
    shell = shell_with({"group.consumer.migration.policy": policy})
    classic_group(shell, "c1")

    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("n1", 0)
    assert isinstance(shell.core.groups["g"], ClassicGroup)


def test_groups_that_are_not_of_consumers_stay(shell):
    """Does a group of another protocol type, or one whose bytes cannot be read, stay classic?"""
    shell.settle("w1", protocol_type="connect", group_id="workers")
    shell.settle("c1", group_id="odd")

    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("n1", 0, "workers")
    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("n1", 0, "odd")


def test_custom_assignors_are_not_lost(shell):
    """Does a group stay classic whose assignments carry data of a custom assignor?"""
    consumer = ClassicConsumer(shell)
    consumer.join(new_member_id="c1")
    shell.advance(2 * DELAY_MS)
    consumer.hear()
    consumer.sync([("c1", write_assignment({}, version=1, user_data=b"mine"))])

    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.beat_error("n1", 0)


def test_full_group_does_not_go_over():
    """Is a classic group left alone that has no room for the one who would take it over?"""
    shell = shell_with({"group.consumer.max.size": 1})
    classic_group(shell, "c1")

    assert ErrorCode.GROUP_MAX_SIZE_REACHED == shell.beat_error("n1", 0)
    assert isinstance(shell.core.groups["g"], ClassicGroup)


# --- classic members inside


def test_classic_member_joins_a_consumer_group(shell):
    """Does a member of the classic protocol get an id, then a generation, then its share?"""
    new = Consumer(shell, "n1")
    new.join()
    old = ClassicConsumer(shell)
    asked = old.join(needs_known_member_id=True, new_member_id="c1")

    assert (ErrorCode.MEMBER_ID_REQUIRED, "c1") == (asked.error, asked.member_id)

    old.member_id = "c1"
    joined = old.join(needs_known_member_id=True)

    assert (3, "consumer", "cooperative", "", ()) == (
        joined.generation_id,
        joined.protocol_type,
        joined.protocol_name,
        joined.leader,
        joined.members,
    )
    assert 0 == old.sync()
    assert {} == old.owned
    assert ErrorCode.NONE == old.beat()

    new.beat()
    new.give_up()
    new.beat()

    assert ErrorCode.REBALANCE_IN_PROGRESS == old.beat()

    old.join()
    old.sync()

    assert {"orders": (2, 3)} == {name: tuple(sorted(indexes)) for name, indexes in old.owned.items()}


def test_classic_words_are_checked(shell):
    """Are generation, protocol and member of the classic protocol checked in a consumer group?"""
    Consumer(shell, "n1").join()
    old = ClassicConsumer(shell)
    old.join(new_member_id="c1")

    assert ErrorCode.ILLEGAL_GENERATION == shell.heartbeat("c1", 9)
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.heartbeat("x", 3)
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.heartbeat("n1", 2)
    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == shell.error(shell.sync("c1", 3, protocol_name="other"))
    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == shell.error(shell.sync("c1", 3, protocol_type="connect"))
    other = ClassicConsumer(shell, protocols=("other",))
    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == other.join(new_member_id="c2").code
    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == shell.error(shell.join(protocols=(("cooperative", b"?"),)))


def test_stale_classic_member_cannot_sync(shell):
    """Is a member that fell behind between join and sync sent to join again, and removed if it does not?"""
    new = Consumer(shell, "n1")
    new.join()
    old = ClassicConsumer(shell)
    old.join(new_member_id="c1")
    Consumer(shell, "n2").join()

    assert ErrorCode.REBALANCE_IN_PROGRESS == old.sync()

    for _ in range(REBALANCE_MS // 5_000):
        shell.advance(5_000)
        old.beat()
        new.beat()

    assert "c1" not in shell.group().members


def test_classic_member_that_never_syncs_is_removed(shell):
    """Is a member removed that joined and did not ask for its assignment in time?"""
    new = Consumer(shell, "n1")
    new.join()
    old = ClassicConsumer(shell)
    old.join(new_member_id="c1")
    for _ in range(REBALANCE_MS // 5_000):
        shell.advance(5_000)
        old.beat()
        new.beat()

    assert {"n1"} == shell.group().members.keys()


def test_disabled_migration_keeps_classic_members_out():
    """Is a member of the classic protocol refused where the policy says so?"""
    shell = shell_with({"group.consumer.migration.policy": "disabled"})
    Consumer(shell, "n1").join()

    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == ClassicConsumer(shell).join().code


def test_member_changes_protocol_under_its_own_id(shell):
    """Does a member that comes back with the new protocol keep its place, with nothing to join or sync any more?"""
    Consumer(shell, "n1").join()
    old = ClassicConsumer(shell)
    old.join(new_member_id="c1")
    shell.beat("c1", 0)

    assert shell.group().members["c1"].classic is None
    assert ("consumer-sync", "g", "c1") not in shell.timers


def test_static_classic_member_is_replaced(shell):
    """Does a static member of the classic protocol keep its place when it is back under the new one?"""
    consumers = classic_group(shell, "c1", instance_id="one")
    Consumer(shell, "n2").join()
    back = Consumer(shell, "n1", instance_id="one")
    answer = back.join()

    assert {"n1", "n2"} == shell.group().members.keys()
    assert answer.assignment
    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.heartbeat(consumers[0].member_id, 1)


# --- down


def test_group_goes_down_with_the_last_new_member(shell):
    """Is the group classic again when nobody speaks the new protocol, calling its members to a rebalance?"""
    (old,) = classic_group(shell, "c1")
    new = Consumer(shell, "n1")
    new.join()
    for _ in range(2):
        old.join()
        old.sync()
    new.leave()
    group = shell.core.groups["g"]

    assert isinstance(group, ClassicGroup)
    assert "PreparingRebalance" == group.state_name
    assert group.generation_id == 2
    assert ErrorCode.REBALANCE_IN_PROGRESS == old.beat()

    joined = old.join()

    assert (3, "c1") == (joined.generation_id, joined.leader)
    assert not [key for key in shell.timers if key[0].startswith("consumer-")]


def test_session_of_the_last_new_member_takes_the_group_down(shell):
    """Does the group go down, too, when the last member of the new protocol falls silent?"""
    (old,) = classic_group(shell, "c1")
    new = Consumer(shell, "n1")
    new.join()
    for _ in range(9):
        old.join()
        old.sync()
        shell.advance(5_000)

    assert isinstance(shell.core.groups["g"], ClassicGroup)


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_policy_may_forbid_to_go_down(policy):
    """Does a group of classic members only stay a consumer group where the policy says so, and share out all?"""
    shell = shell_with()
    (old,) = classic_group(shell, "c1")
    new = Consumer(shell, "n1")
    new.join()
    old.join()
    old.sync()
    old.join()
    old.sync()
    shell.settings["group.consumer.migration.policy"] = policy
    new.leave()
    shell.advance(1)

    assert isinstance(shell.group(), ConsumerGroup)
    assert {shell.topic_id("orders"): frozenset(range(4))} == shell.group().targets["c1"]
    assert ErrorCode.REBALANCE_IN_PROGRESS == old.beat()


def test_static_member_takes_the_group_down_as_it_comes_back(shell):
    """Is the group classic, without a rebalance, when its last new member is back with the classic protocol?"""
    classic = ClassicConsumer(shell)
    new = Consumer(shell, "n1", instance_id="one")
    new.join()
    classic.join(new_member_id="c1")
    classic.sync()
    for _ in range(3):
        new.give_up()
        new.beat()
        classic.join()
        classic.sync()
    owned = by_topic_name(new.owned, shell.metadata)
    new.leave(-2)
    back = ClassicConsumer(shell, instance_id="one")
    joined = back.join(new_member_id="c2")
    group = shell.core.groups["g"]

    assert isinstance(group, ClassicGroup)
    assert "Stable" == group.state_name
    assert group.generation_id == joined.generation_id
    assert {"c1", "c2"} == group.members.keys()
    assert owned == {
        name: list(indexes) for name, indexes in read_assignment(group.members["c2"].assignment).partitions.items()
    }


def test_administrator_removes_members_of_either_protocol(shell):
    """Are members removed by id or instance id, and are errors told one by one?"""
    Consumer(shell, "n1", instance_id="one").join()
    Consumer(shell, "n2").join()
    Consumer(shell, "n3").join()

    assert [
        0,
        ErrorCode.UNKNOWN_MEMBER_ID,
        0,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ] == shell.leave("n2", "x", instances=[("", "one"), ("other", "one"), ("", "two")])
    assert {"n3"} == shell.group().members.keys()


def test_restart_in_the_middle_of_a_move(shell):
    """Does a group with members of both protocols go on after a restart?"""
    (old,) = classic_group(shell, "c1")
    new = Consumer(shell, "n1")
    new.join()
    shell.restart()
    old.join()
    old.sync()
    old.join()
    old.sync()
    new.beat()

    assert "Stable" == shell.group().state_name

    new.leave()
    shell.restart()

    assert ErrorCode.NONE == shell.error(old.token)
    assert isinstance(shell.core.groups["g"], ClassicGroup)
