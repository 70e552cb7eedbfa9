"""Epochs and targets: when they are made, and what is written of them."""

import pytest

from consumer_shell import Consumer, ConsumerShell, settle
from headrace.cores.groups.assignment import group_spec
from headrace.cores.groups.consumer_limits import ConsumerLimits, limits_of
from headrace.cores.groups.subscription import NO_TOPICS_HASH, metadata_hash, topic_ids
from headrace.model.group_records import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)


@pytest.fixture
def shell():
    """A coordinator with two topics."""
    return ConsumerShell(topics={"orders": 3, "bills": 3})


def targets_written(shell, start):
    return [key.member_id for key, _, _ in shell.log[start:] if isinstance(key, ConsumerGroupTargetAssignmentMemberKey)]


def test_only_targets_that_changed_are_written(shell):
    """Is the target of a member that keeps what it had not written again?"""
    first, second, third = (Consumer(shell, name) for name in "abc")
    first.join()
    second.join()
    third.join()
    settle(first, second, third, rounds=6)
    before = len(shell.log)
    Consumer(shell, "d", topics=("orders", "bills")).join()

    assert {"d"} == set(targets_written(shell, before))


def test_target_tells_its_epoch_and_time(shell):
    """Is the epoch of a target written after the targets of the members, with the time it was made?"""
    Consumer(shell, "a").join()
    kinds = [type(key) for key, _, _ in shell.log]
    value = next(value for key, value, _ in shell.log if isinstance(key, ConsumerGroupTargetAssignmentMetadataKey))

    assert (2, shell.now_ms) == (value.assignment_epoch, value.assignment_timestamp)
    assert kinds.index(ConsumerGroupTargetAssignmentMemberKey) < kinds.index(ConsumerGroupTargetAssignmentMetadataKey)


def test_groups_are_the_same_for_all_or_not(shell):
    """Is a group told apart in which all want the same from one in which they do not?"""
    wants = {"topics": None, "regex": "orders|bills"}
    shell.beat("a", 0, **wants)
    shell.beat("b", 0, **wants)

    assert group_spec(shell.group(), shell.metadata).homogeneous

    shell.beat("c", 0, topics=("orders",))

    assert not group_spec(shell.group(), shell.metadata).homogeneous
    assert frozenset({shell.topic_id("orders")}) == group_spec(shell.group(), shell.metadata).members["c"].topics


def test_hash_sees_what_assigning_depends_on(shell):
    """Does the hash change with partitions and ids of topics that are read, and with nothing else?"""
    before = metadata_hash(["orders", "later"], shell.metadata)
    shell.grow_topic("bills", 4)

    assert before == metadata_hash(["later", "orders"], shell.metadata)

    shell.grow_topic("orders", 4)
    grown = metadata_hash(["orders"], shell.metadata)

    assert before != grown

    shell.delete_topic("orders")
    shell.create_topic("orders", 4)

    assert grown != metadata_hash(["orders"], shell.metadata)
    assert NO_TOPICS_HASH == metadata_hash(["later"], shell.metadata)
    assert frozenset() == topic_ids(["later"], shell.metadata)


def test_limits_without_settings_are_kafkas(shell):
    """Are the defaults of the limits those of the settings?"""
    shell.settings.pop("group.consumer.assignment.interval.ms")

    assert ConsumerLimits() == limits_of(shell.core, "g")


def test_groups_own_settings_stay_within_bounds(shell):
    """Is a group's own setting held to what the broker allows?"""
    shell.configure_group("g", "consumer.session.timeout.ms", "1")
    shell.configure_group("g", "consumer.heartbeat.interval.ms", "999999")

    assert (45_000, 15_000) == (
        limits_of(shell.core, "g").session_timeout_ms,
        limits_of(shell.core, "g").heartbeat_interval_ms,
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("BIDIRECTIONAL", (True, True, True)),
        ("upgrade", (True, False, True)),
        ("downgrade", (False, True, True)),
        ("Disabled", (False, False, False)),
    ],
)
def test_policy_is_read_in_any_case(shell, policy, expected):
    """Is the migration policy read whatever the case of its letters?"""
    shell.settings["group.consumer.migration.policy"] = policy
    limits = limits_of(shell.core, "g")

    assert expected == (limits.may_upgrade, limits.may_downgrade, limits.may_mix)
