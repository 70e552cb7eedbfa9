"""Moving replicas."""

import pytest

from controller_shell import ControllerShell, directories
from headrace.cores.controller.policy import Policy
from headrace.cores.controller.reassignment import Reassignment, alter_reassignments, list_reassignments
from headrace.model.errors import ErrorCode


def move(cluster: ControllerShell, *replicas: int, cancel: bool = False, topic: str = "a", index: int = 0, **rest):
    """Ask for other replicas; the code and the message of a refusal."""
    wanted = Reassignment(topic=topic, partition=index, replicas=None if cancel else replicas)
    (result,) = cluster.run(alter_reassignments, [wanted], policy=cluster.policy, **rest)
    return result.error and (result.error.code, result.error.message)


def lists(cluster: ControllerShell):
    """Replicas, adding, removing, ISR."""
    state = cluster.partition("a")
    return state.replicas, state.adding_replicas, state.removing_replicas, state.isr


def started(**fields) -> ControllerShell:
    """A topic on 1 and 2."""
    cluster = ControllerShell(brokers=5, **fields)
    cluster.create("a", (1, 2))
    return cluster


def test_replicas_are_added_and_then_removed():
    """Do the new ones come first, and the old ones go when these are in sync?"""
    cluster = started()

    assert None is move(cluster, 3, 4)
    assert ((3, 4, 1, 2), (3, 4), (1, 2), (1, 2)) == lists(cluster)
    assert directories(3) + directories(4) + directories(1) + directories(2) == cluster.partition("a").directories
    assert 0 == cluster.partition("a").leader_epoch

    cluster.alter(cluster.isr_change("a", 1, 2, 3))
    assert ((3, 4, 1, 2), (3, 4), (1, 2), (1, 2, 3)) == lists(cluster)
    assert ErrorCode.NEW_LEADER_ELECTED == cluster.alter(cluster.isr_change("a", 1, 2, 3, 4)).error

    assert ((3, 4), (), (), (3, 4)) == lists(cluster)
    assert (3, 1) == (cluster.partition("a").leader, cluster.partition("a").leader_epoch)
    assert directories(3) + directories(4) == cluster.partition("a").directories


def test_taking_replicas_away_needs_no_waiting():
    """Is a smaller or reordered set of replicas in sync taken over at once?"""
    cluster = started()

    assert None is move(cluster, 2, 1)
    assert ((2, 1), (), (), (1, 2)) == lists(cluster)
    assert (1, 0) == (cluster.partition("a").leader, cluster.partition("a").leader_epoch)
    assert None is move(cluster, 2)
    assert ((2,), (), (), (2,)) == lists(cluster)
    assert (2, 1) == (cluster.partition("a").leader, cluster.partition("a").leader_epoch)


def test_reassignment_can_be_taken_back():
    """Does a cancelled reassignment leave what was before, also out of the ISR?"""
    cluster = started()
    move(cluster, 3, 4)
    cluster.alter(cluster.isr_change("a", 1, 2, 3))

    assert None is move(cluster, cancel=True)

    assert ((1, 2), (), (), (1, 2)) == lists(cluster)
    assert directories(1) + directories(2) == cluster.partition("a").directories


def test_target_may_change_on_the_way():
    """Does a second reassignment take the place of the first, and a cancellation lead back to the beginning?"""
    cluster = started()
    move(cluster, 1, 3)
    assert None is move(cluster, 1, 4)
    assert ((1, 4, 2, 3), (3, 4), (2, 3), (1, 2)) == lists(cluster)

    other = started()
    move(other, 1, 3)
    move(other, 1, 4)
    assert None is move(other, cancel=True)
    assert ((1, 2), (), (), (1, 2)) == lists(other)

    cluster.alter(cluster.isr_change("a", 1, 2, 4))
    assert ((1, 4), (), (), (1, 4)) == lists(cluster)


def test_cancellation_that_would_lose_records_is_refused():
    """Is a reassignment whose new replicas alone are in sync not taken back, unless the topic allows it?"""
    cluster = started()
    move(cluster, 3, 4)
    cluster.alter(cluster.isr_change("a", 1, 3))
    cluster.silence(1)
    assert (3,) == cluster.partition("a").isr

    assert (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Unable to revert partition assignment for a:0 because it would require an unclean leader election.",
    ) == move(cluster, cancel=True)

    cluster.policy = Policy(unclean_leader_election=True)
    assert None is move(cluster, cancel=True)
    state = cluster.partition("a")
    assert ((1, 2), (2,), 2, 1) == (state.replicas, state.isr, state.leader, state.leader_recovery_state)


@pytest.mark.parametrize(
    ("fields", "replicas", "code", "words"),
    [
        ({"topic": "x"}, (1,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named x."),
        ({"index": 3}, (1,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition a:3."),
        ({"cancel": True}, (), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."),
        ({}, (), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "includes an empty replica list."),
        ({}, (1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9, but no such broker is registered."),
        ({}, (1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the broker 1 more than once."),
        (
            {"allow_factor_change": False},
            (1,),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor is changed from 2 to 1",
        ),
    ],
)
def test_impossible_assignments_are_refused(fields, replicas, code, words):
    """Is each impossible reassignment refused in Kafka's words, and nothing changed?"""
    cluster = started()
    before = cluster.next_offset

    refused, message = move(cluster, *replicas, **fields)

    assert code == refused
    assert words in message
    assert before == cluster.next_offset


def test_factor_that_shall_not_change_is_that_of_the_end():
    """Does a reassignment under way count with the replicas it will leave?"""
    cluster = started()
    move(cluster, 3, 4)

    assert None is move(cluster, 4, 5, allow_factor_change=False)


def test_ongoing_reassignments_are_listed():
    """Are just the partitions that move listed, all or of those that are named?"""
    cluster = started()
    cluster.create("b", (1,), (2,))
    move(cluster, 3, topic="b", index=1)
    move(cluster, 3, 4)

    assert [("a", 0), ("b", 1)] == [(one.topic, one.state.index) for one in list_reassignments(cluster.metadata)]
    named = list_reassignments(cluster.metadata, [("b", [0, 1, 7]), ("x", [0])])
    assert [("b", 1, (3,), (2,))] == [
        (one.topic, one.state.index, one.state.adding_replicas, one.state.removing_replicas) for one in named
    ]
