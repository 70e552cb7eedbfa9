"""Committed offsets: what is kept, for whom, and how long."""

from functools import partial
from uuid import UUID

import pytest

from group_shell import SESSION_MS, GroupShell
from headrace.cores.groups import offsets
from headrace.cores.groups.offsets import CommitCommand, FetchCommand, FetchedOffset, FetchedTopic, NewOffset, fetch
from headrace.model.errors import ErrorCode
from headrace.model.group_records import OffsetCommitKey, OffsetCommitValue
from headrace.model.ids import ZERO_ID

RETENTION_MS = 1_000_000
CHECK_MS = 1_000
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
ONE, TWO = UUID(int=1), UUID(int=2)


def subscription(*topics):
    """A consumer's metadata."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


@pytest.fixture
def shell():
    """A coordinator without groups, that looks for expired offsets every second."""
    return GroupShell(offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=CHECK_MS)


def readers_of(shell, *topics, session_timeout_ms=1_800_000, **fields):
    """A stable group with one member that reads some topics."""
    protocols = (("range", subscription(*topics)),)
    return shell.settle("a", protocols=protocols, session_timeout_ms=session_timeout_ms, **fields)[0]


# --- commit and fetch


def test_anyone_commits_to_a_group_without_members(shell):
    """Can offsets of a group that never had members be committed and fetched, also after a restart?"""
    assert [0, 0] == shell.commit({T0: 5, U0: 7})

    shell.restart()

    assert {T0: 5, T1: -1} == shell.fetch(T0, T1)
    assert {T0: 5, U0: 7} == shell.fetch()
    assert ("Empty", "") == (shell.core.groups["g"].state_name, shell.core.groups["g"].protocol_type)


def test_all_that_is_committed_comes_back(shell):
    """Do leader epoch and metadata come back as they were committed?"""
    offset = NewOffset(topic="t", partition=0, offset=5, leader_epoch=3, metadata="a note: é")
    shell.do_commit(CommitCommand(group_id="g", offsets=(offset,)))
    command = FetchCommand(group_id="g", topics=(FetchedTopic(topic="t", partitions=(0,)),))
    ((_, fetched),) = shell.answers[shell.ask(partial(fetch, command=command))]

    assert (FetchedOffset(partition=0, offset=5, leader_epoch=3, metadata="a note: é"),) == fetched


def test_long_metadata_is_refused_by_itself(shell):
    """Is an offset with a note that is too long refused, and the others of the same commit taken?"""
    wanted = [("t", "x" * 4096), ("u", "x" * 4097)]
    command = CommitCommand(
        group_id="g",
        offsets=tuple(NewOffset(topic=topic, partition=0, offset=1, metadata=note) for topic, note in wanted),
    )

    assert [0, ErrorCode.OFFSET_METADATA_TOO_LARGE] == shell.do_commit(command)
    assert {T0: 1} == shell.fetch()


def test_commit_larger_than_a_write(shell):
    """Is a commit refused as a whole that cannot be written at once, before anything has changed?"""
    shell = GroupShell(write_bytes_max=1_000)

    assert ErrorCode.INVALID_COMMIT_OFFSET_SIZE == shell.commit({("t", number): 1 for number in range(20)})
    assert {} == shell.core.groups


def test_empty_commit_makes_no_group(shell):
    """Does a commit of nothing leave no group behind?"""
    assert [] == shell.commit({})
    assert {} == shell.core.groups


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, ErrorCode.ILLEGAL_GENERATION),
        ({"unknown_group": ErrorCode.GROUP_ID_NOT_FOUND}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_member_of_an_unknown_group(shell, fields, error):
    """Is a commit of a member refused if its group is not there, in the words its client knows?"""
    assert error == shell.commit({T0: 1}, member_id="a", generation_id=1, **fields)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": "a", "generation_id": 1}, [0]),
        ({"member_id": "a", "generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "a", "generation_id": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x", "generation_id": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a", "generation_id": 1, "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_commit_to_a_stable_group(shell, fields, error):
    """Can only members commit to a group that has some, and only in their generation?"""
    shell.settle("a")

    assert error == shell.commit({T0: 1}, **fields)


def test_fenced_instance_cannot_commit(shell):
    """Is a static member whose instance id was taken over kept from committing?"""
    shell.settle("a", instance_id="i")
    shell.join(instance_id="i", new_member_id="b")

    assert ErrorCode.FENCED_INSTANCE_ID == shell.commit({T0: 1}, member_id="a", generation_id=1, instance_id="i")


def test_commit_during_a_rebalance(shell):
    """Can members commit while others join, but not between join and sync?"""
    a, b = shell.settle("a", "b")
    shell.join(member_id=a)

    assert [0] == shell.commit({T0: 1}, member_id=b, generation_id=1)

    shell.join(member_id=b)

    assert ErrorCode.REBALANCE_IN_PROGRESS == shell.commit({T0: 2}, member_id=b, generation_id=2)


def test_commit_is_a_sign_of_life(shell):
    """Does a member that commits stay in its group?"""
    a = shell.settle("a")[0]
    for _ in range(3):
        shell.advance(SESSION_MS - 1)
        shell.commit({T0: 1}, member_id=a, generation_id=1)

    assert 0 == shell.heartbeat(a, 1)


def test_topic_of_the_same_name(shell):
    """Is an offset of a topic that was deleted not taken for one of a later topic of that name?"""
    shell.do_commit(CommitCommand(group_id="g", offsets=(NewOffset(topic="t", topic_id=ONE, partition=0, offset=5),)))

    def fetched(topic_id):
        topics = (FetchedTopic(topic="t", topic_id=topic_id, partitions=(0,)),)
        answer = shell.answers[shell.ask(partial(fetch, command=FetchCommand(group_id="g", topics=topics)))]
        return answer[0][1][0].offset

    assert [5, -1, 5] == [fetched(topic_id) for topic_id in (ONE, TWO, ZERO_ID)]


# --- transactions


def test_transaction_commits(shell):
    """Does an offset committed in a transaction count when the transaction commits, and is it unstable before?"""
    shell.commit({T0: 1})
    shell.commit({T0: 5, T1: 6}, producer=7)

    assert {T0: 1, T1: -1} == shell.fetch(T0, T1)
    assert {T0: ErrorCode.UNSTABLE_OFFSET_COMMIT, T1: ErrorCode.UNSTABLE_OFFSET_COMMIT, U0: -1} == shell.fetch(
        T0, T1, U0, require_stable=True
    )
    assert {T0: ErrorCode.UNSTABLE_OFFSET_COMMIT} == shell.fetch(require_stable=True)

    shell.end_transaction(7, commit=True)

    assert {T0: 5, T1: 6} == shell.fetch(T0, T1, require_stable=True)


def test_transaction_aborts(shell):
    """Does an offset committed in a transaction vanish when the transaction aborts, also over a restart?"""
    shell.commit({T0: 1})
    shell.commit({T0: 5}, producer=7)
    shell.restart()
    shell.end_transaction(7, commit=False)
    shell.restart()

    assert {T0: 1} == shell.fetch(require_stable=True)


@pytest.mark.parametrize("plain_first", [True, False])
def test_the_log_decides_who_was_last(shell, plain_first):
    """Of a plain commit and one in a transaction, does the later in the log stay, whenever the marker comes? (A21)"""
    for is_plain in [True, False] if plain_first else [False, True]:
        shell.commit({T0: 1 if is_plain else 2}, producer=None if is_plain else 7)
    shell.end_transaction(7, commit=True)

    assert {T0: 2 if plain_first else 1} == shell.fetch()

    shell.restart()

    assert {T0: 2 if plain_first else 1} == shell.fetch()


def test_two_transactions(shell):
    """Do two producers' pending offsets of one partition end each for itself, the later commit staying?"""
    shell.commit({T0: 1}, producer=7)
    shell.commit({T0: 2}, producer=8)
    shell.end_transaction(8, commit=True)

    assert {T0: ErrorCode.UNSTABLE_OFFSET_COMMIT} == shell.fetch(T0, require_stable=True)

    shell.end_transaction(7, commit=True)

    assert {T0: 2} == shell.fetch(T0, require_stable=True)


def test_records_of_a_transaction_are_the_producers(shell):
    """Are the records of a transactional commit written in the producer's name, and its plain ones not?"""
    shell.commit({T0: 1}, producer=7)
    shell.commit({T1: 1})

    assert [7, -1] == [producer_id for _, _, producer_id in shell.log]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, [0]),
        ({"member_id": "a", "generation_id": 1}, [0]),
        ({"member_id": "a", "generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x", "generation_id": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other", "member_id": "a", "generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_transactional_commit_to_a_stable_group(shell, fields, error):
    """Is a transactional commit checked against the group if it names a member, and only then?"""
    shell.settle("a")

    assert error == shell.commit({T0: 1}, producer=7, **fields)


# --- deleting


def test_deleted_offset(shell):
    """Is an offset gone once deleted, the pending ones too, and nothing written for what was not there?"""
    shell.commit({T0: 1})
    shell.commit({T0: 2}, producer=7)

    assert [0, 0] == shell.delete_offsets(T0, T1)

    shell.end_transaction(7, commit=True)
    tombstones = [key for key, value, *_ in shell.log if value is None]

    assert {} == shell.fetch()
    assert [OffsetCommitKey(group="g", topic="t", partition=0)] == tombstones


def test_offsets_of_a_subscribed_topic_stay(shell):
    """Can offsets be deleted only of topics that no consumer of the group reads?"""
    a = readers_of(shell, "t")
    shell.commit({T0: 1, U0: 2}, member_id=a, generation_id=1)

    assert [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0] == shell.delete_offsets(T0, U0)
    assert {T0: 1} == shell.fetch()


def test_offsets_of_an_unreadable_subscription_stay(shell):
    """If a consumer's subscription cannot be read, is every topic taken to be read?"""
    shell.settle("a", protocols=(("range", b"?"),))

    assert [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] == shell.delete_offsets(T0)


@pytest.mark.parametrize(
    ("group_id", "error"),
    [("", ErrorCode.INVALID_GROUP_ID), ("x", ErrorCode.GROUP_ID_NOT_FOUND), ("g", ErrorCode.NON_EMPTY_GROUP)],
)
def test_refused_deletion_of_offsets(shell, group_id, error):
    """Is deleting offsets refused without a group, and for members whose metadata nobody can read?"""
    shell.settle("a", protocol_type="connect")

    assert error == shell.delete_offsets(T0, group_id=group_id)


def test_deleted_group(shell):
    """Is a deleted group gone with all its offsets, also those that a transaction was about to commit?"""
    a = shell.settle("a")[0]
    shell.commit({T0: 1}, member_id=a, generation_id=1)
    shell.commit({T1: 1}, producer=7)

    assert ErrorCode.NON_EMPTY_GROUP == shell.delete_group()

    shell.leave(a)

    assert 0 == shell.delete_group()

    shell.end_transaction(7, commit=True)

    assert ({}, {}) == (shell.core.groups, shell.fetch())
    assert ErrorCode.GROUP_ID_NOT_FOUND == shell.delete_group()


def test_deleted_topics(shell):
    """Do offsets of deleted topics go, pending ones too, but not those of a topic that has come again since?"""
    shell.commit({U0: 1})
    shell.commit({T1: 3}, producer=7)
    again = NewOffset(topic="t", topic_id=TWO, partition=0, offset=5)
    shell.do_commit(CommitCommand(group_id="h", offsets=(again,)))
    shell.commit({T0: 2})
    shell.act(partial(offsets.forget_topics, topics=[("t", ONE)]))
    shell.end_transaction(7, commit=True)

    assert ({U0: 1}, {T0: 5}) == (shell.fetch(), shell.fetch(group_id="h"))


# --- expiry


def test_offset_of_a_simple_group_expires(shell):
    """Does an offset of a group without members expire with its retention after its own last commit, and no sooner?"""
    shell.commit({T0: 1, T1: 1})
    shell.advance(RETENTION_MS // 2)
    shell.commit({T1: 2})
    shell.advance(RETENTION_MS // 2 - 1)

    assert {T0: 1, T1: 2} == shell.fetch()

    shell.advance(CHECK_MS)

    assert {T1: 2} == shell.fetch()

    shell.advance(RETENTION_MS)

    assert ({}, {}) == (shell.fetch(), shell.core.groups)


def test_retention_of_a_client(shell):
    """Does a retention that a client asked for take the place of the broker's, shorter or longer?"""
    for place, retention_ms in ((T0, 5_000), (T1, 2 * RETENTION_MS)):
        shell.commit({place: 1}, retention_ms=retention_ms)
    shell.advance(5_000 + CHECK_MS)

    assert {T1: 1} == shell.fetch()

    shell.advance(RETENTION_MS)

    assert {T1: 1} == shell.fetch()


def test_subscribed_offset_never_expires(shell):
    """Do offsets of topics that a live member reads stay for ever, and others of its group expire?"""
    a = readers_of(shell, "t")
    shell.commit({T0: 1, U0: 1}, member_id=a, generation_id=1)
    for _ in range(4):
        shell.advance(RETENTION_MS // 2)
        shell.heartbeat(a, 1)

    assert {T0: 1} == shell.fetch()


def test_retention_begins_when_the_group_is_empty(shell):
    """Does the retention count from when the last member left, however old the commit is?"""
    a = readers_of(shell, "t")
    shell.commit({T0: 1}, member_id=a, generation_id=1)
    shell.advance(RETENTION_MS)
    shell.leave(a)
    shell.advance(RETENTION_MS - 1)

    assert {T0: 1} == shell.fetch()

    shell.advance(CHECK_MS)

    assert ({}, {}) == (shell.fetch(), shell.core.groups)


def test_commit_to_a_long_empty_group(shell):
    """Is what is committed to a group that has long been empty kept for the full retention?"""
    a = readers_of(shell, "t")
    shell.commit({T0: 1}, member_id=a, generation_id=1)
    shell.leave(a)
    shell.advance(RETENTION_MS - 1)
    shell.commit({T0: 2})
    shell.advance(RETENTION_MS - 1)

    assert {T0: 2} == shell.fetch()


def test_restart_does_not_expire_early(shell):
    """Does a restart shortly before the retention ends take nothing early, and the group not with it? (A22)"""
    a = readers_of(shell, "t")
    shell.commit({T0: 1}, member_id=a, generation_id=1)
    shell.advance(RETENTION_MS // 2)
    shell.heartbeat(a, 1)
    shell.leave(a)
    shell.advance(RETENTION_MS - CHECK_MS)
    shell.restart()

    assert {T0: 1} == shell.fetch()

    shell.advance(CHECK_MS - 1)

    assert {T0: 1} == shell.fetch()

    shell.advance(2 * CHECK_MS)

    assert {} == shell.fetch()


def test_group_metadata_without_a_time(shell):
    """Are offsets of an empty group whose record tells no time, as old ones do, kept from their commit on? (A22)"""
    a = readers_of(shell, "t")
    shell.leave(a)
    shell.commit({T0: 1})
    key, value, _ = shell.log[-2]
    shell.log[-2] = (key, type(value)(protocol_type="consumer", generation=value.generation), -1)
    shell.restart()
    shell.advance(RETENTION_MS - 1)

    assert {T0: 1} == shell.fetch()

    shell.advance(CHECK_MS)

    assert {} == shell.fetch()


def test_nothing_expires_during_a_rebalance(shell):
    """Are offsets kept while a group has members that may read the topic next?"""
    a = readers_of(shell, "t", rebalance_timeout_ms=10 * RETENTION_MS)
    shell.commit({U0: 1}, member_id=a, generation_id=1)
    shell.join(new_member_id="b", rebalance_timeout_ms=10 * RETENTION_MS, protocols=(("range", subscription("u")),))
    for _ in range(4):
        shell.advance(RETENTION_MS // 2)
        shell.heartbeat(a, 1)

    assert {U0: 1} == shell.fetch()


def test_pending_offset_keeps_the_partition_and_its_group(shell):
    """Is an expired offset kept as long as a transaction is about to replace it, and an empty group too? (A21)"""
    shell.commit({T0: 1})
    shell.commit({T0: 2}, producer=7)
    shell.commit({T1: 3}, group_id="h", producer=7)
    shell.advance(2 * RETENTION_MS)

    assert {T0: 1} == shell.fetch()

    shell.end_transaction(7, commit=True)

    assert ({T0: 2}, {T1: 3}) == (shell.fetch(), shell.fetch(group_id="h"))


def test_empty_group_without_offsets_goes(shell):
    """Is a group that has neither members nor offsets forgotten at the next check?"""
    shell.leave(shell.settle("a")[0])
    shell.advance(CHECK_MS)

    assert {} == shell.core.groups


def test_many_offsets_expire_in_steps(shell, monkeypatch):
    """Do so many offsets that they would not fit into one write expire in several, the group with the last?"""
    monkeypatch.setattr(offsets, "TOMBSTONES_MAX", 3)
    for group_id in ("g", "h"):
        shell.commit({("t", partition): 1 for partition in range(4)}, group_id=group_id)
    shell.advance(RETENTION_MS - CHECK_MS)
    before = len(shell.log)
    shell.advance(CHECK_MS)

    assert {} == shell.core.groups
    assert 10 == len(shell.log) - before


def test_record_of_a_commit(shell):
    """Is a commit written as Kafka writes it?"""
    shell.do_commit(
        CommitCommand(
            group_id="g",
            offsets=(NewOffset(topic="t", topic_id=ONE, partition=2, offset=5, leader_epoch=3, metadata="m"),),
            retention_ms=1_000,
        )
    )
    value = OffsetCommitValue(
        offset=5,
        leader_epoch=3,
        metadata="m",
        commit_timestamp=shell.now_ms,
        expire_timestamp=shell.now_ms + 1_000,
        topic_id=ONE,
    )

    assert [(OffsetCommitKey(group="g", topic="t", partition=2), value, -1)] == shell.log
