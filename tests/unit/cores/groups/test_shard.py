"""All groups of a partition: records, timers and kinds find their way."""

from functools import partial

import pytest

from group_shell import GroupShell
from headrace.cores.groups.group import GroupType
from headrace.cores.groups.limits import GroupLimits, limits_from
from headrace.cores.groups.offsets import CommitCommand, NewOffset, commit_in_transaction
from headrace.cores.groups.shard import KINDS, Groups
from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import ConsumerGroupMetadataKey, GroupMetadataKey, OffsetCommitKey
from headrace.settings.broker import BrokerConfig


class FakeGroup:
    """A group of any kind that has members, and checks commits as it is told."""

    def __init__(self, kind, check_commit=None, check_fetch=None):
        self.group_id = "g"
        self.kind = kind
        self.check_commit = check_commit
        self.check_fetch = check_fetch

    def is_empty(self):
        """It never is."""
        return False

    def hard_state(self):
        """That of a group that has offsets only."""


def test_no_two_kinds_want_the_same():
    """Does every record and every timer belong to one kind only?"""
    for table in ("REPLAY", "TIMERS"):
        names = [name for kind in KINDS for name in getattr(kind, table)]

        assert sorted(map(str, set(names))) == sorted(map(str, names))


def test_records_of_other_kinds_are_passed_over():
    """Is a record that no kind knows read over, so that the others still load?"""
    core = Groups(Metadata(), GroupLimits)
    before = core.hard_state()

    class Unheard:
        """A record of the future."""

    core.replay(Unheard(), None)

    assert before == core.hard_state()


def test_loading_sets_every_kinds_timers():
    """Does a log that has been read set the timers of members and of expiry, counted from now?"""
    shell = GroupShell(offsets_retention_check_interval_ms=77)
    shell.settle("a", session_timeout_ms=10_000)
    shell.restart()

    assert {("classic-session", "g", "a"): 10_000, ("offset-expiry",): 77} == {
        key: at_ms - shell.now_ms for key, at_ms in shell.timers.items()
    }


def test_find():
    """Is a group that is not there GROUP_ID_NOT_FOUND?"""
    core = Groups(Metadata(), GroupLimits)

    with pytest.raises(KafkaError) as caught:
        core.find("g")

    assert ErrorCode.GROUP_ID_NOT_FOUND == caught.value.code


def test_limits_come_from_the_settings():
    """Are the limits what the broker's settings say, in the core's units?"""
    config = BrokerConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "log.dirs": "/data",
            "offsets.retention.minutes": "2",
            "group.max.size": "3",
            "group.initial.rebalance.delay.ms": "4",
        }
    )
    limits = limits_from(config)

    assert (120_000, 3, 4) == (limits.offsets_retention_ms, limits.members_max, limits.initial_rebalance_delay_ms)
    assert GroupLimits().session_timeout_ms_max == limits.session_timeout_ms_max
    assert config is limits.settings


def test_tombstone_of_a_group_keeps_its_offsets():
    """When a group is forgotten because it changes its kind, do its offsets stay?"""
    shell = GroupShell()
    shell.commit({("t", 0): 5})
    shell.log.append((GroupMetadataKey(group="g"), None, -1))
    shell.restart()

    assert {} == shell.core.groups
    assert {("t", 0): 5} == shell.fetch()


def test_empty_consumer_group_becomes_classic():
    """Does a join to an empty group of the consumer protocol put a classic group in its place, offsets and all?"""
    shell = GroupShell()
    shell.commit({("t", 0): 5})
    shell.core.groups["g"] = group = FakeGroup(GroupType.CONSUMER)
    group.is_empty = lambda: True
    key = ConsumerGroupMetadataKey(group_id="g")
    group.tombstones = lambda: [(key, None)]
    shell.replayed = lambda: shell.core

    assert ErrorCode.UNKNOWN_MEMBER_ID == shell.error(shell.join(member_id="a"))

    shell.join()

    assert [(key, None), GroupMetadataKey(group="g")] == [shell.log[1][:2], shell.log[2][0]]
    assert GroupType.CLASSIC == shell.core.groups["g"].kind
    assert {("t", 0): 5} == shell.fetch()


def test_share_group_has_no_offsets_to_delete():
    """Is deleting the offsets of a share group GROUP_ID_NOT_FOUND, as its own API does that?"""
    shell = GroupShell()
    shell.core.groups["g"] = FakeGroup(GroupType.SHARE)

    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.delete_offsets(("t", 0))


def test_tombstone_within_a_transaction():
    """Does a removal count at once, even if the log has it in somebody's transaction?"""
    shell = GroupShell()
    shell.commit({("t", 0): 5})
    shell.log.append((OffsetCommitKey(group="g", topic="t", partition=0), None, 7))
    shell.restart()

    assert {} == shell.fetch()


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda shell: shell.error(shell.join()), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (lambda shell: shell.error(shell.sync("a", 1)), ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda shell: shell.heartbeat("a", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda shell: shell.leave("a")[0], ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda shell: shell.describe().code, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_classic_words_to_a_group_of_another_kind(ask, error):
    """Are the classic protocol's words refused by groups that never let such members in?"""
    shell = GroupShell()
    shell.core.groups["g"] = FakeGroup(GroupType.SHARE)

    assert error == ask(shell)


def test_stale_epoch_in_a_transaction():
    """Is a stale member epoch told to a transaction as ILLEGAL_GENERATION, which its producer understands?"""
    shell = GroupShell()

    def stale(*_, **__):
        raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    shell.core.groups["g"] = FakeGroup(GroupType.CONSUMER, stale)
    command = CommitCommand(group_id="g", offsets=(NewOffset(topic="t", partition=0, offset=1),))
    token = shell.ask(partial(commit_in_transaction, command=command, producer_id=1, producer_epoch=0))

    assert ErrorCode.ILLEGAL_GENERATION == shell.error(token)


def test_partition_by_partition():
    """Can a kind of group refuse some partitions of a commit and take the others?"""
    shell = GroupShell()

    def check(topic, _topic_id, _partition):
        if topic == "u":
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    shell.core.groups["g"] = FakeGroup(GroupType.CLASSIC, lambda *_, **__: check)

    assert [0, ErrorCode.STALE_MEMBER_EPOCH] == shell.commit({("t", 0): 6, ("u", 0): 7})


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, {("t", 0): -1}),
        (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH),
        (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_kind_that_checks_who_fetches(error, answer):
    """Is a refusal to fetch told as it is, but that of a kind without offsets answered as for no group at all?"""
    shell = GroupShell()

    def refuse(*_):
        raise KafkaError(error)

    shell.core.groups["g"] = FakeGroup(GroupType.CLASSIC, check_fetch=refuse)
    shell.replayed = lambda: shell.core

    assert answer == shell.fetch(("t", 0), member_id="a", member_epoch=3)
