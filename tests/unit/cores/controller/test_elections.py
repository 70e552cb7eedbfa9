"""Elections that are asked for, and those the controller holds by itself."""

import pytest

from controller_shell import ControllerShell
from headrace.cores.controller import Policy
from headrace.cores.controller.elections import ElectionType, balance_leaders, elect_leaders, elect_unclean_leaders
from headrace.cores.metadata import RESOURCE_TOPIC
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import ConfigRecord


def moved(**fields) -> ControllerShell:
    """Broker 1 was away and is in sync again, but 2 leads."""
    cluster = ControllerShell(brokers=3, **fields)
    cluster.create("a", (1, 2), (2, 3))
    cluster.silence(1)
    cluster.beat(1)
    assert ErrorCode.NONE == cluster.alter(cluster.isr_change("a", 2, 1)).error
    assert 2 == cluster.partition("a").leader
    return cluster


def elect(cluster: ControllerShell, kind: ElectionType, *partitions: tuple[str, int]):
    """Codes by partition."""
    results = cluster.run(elect_leaders, election_type=kind, partitions=partitions or None, policy=cluster.policy)
    return {(one.topic, one.partition): one.error and (one.error.code, one.error.message) for one in results}


def test_preferred_leader_leads_again():
    """Is the first replica elected where it is in sync, and are partitions that need nothing left out of 'all'?"""
    cluster = moved()

    assert {("a", 0): None} == elect(cluster, ElectionType.PREFERRED)
    assert (1, 2) == (cluster.partition("a").leader, cluster.partition("a").leader_epoch)


def test_answers_by_name_are_kafkas():
    """Does each partition that is named get its answer, in Kafka's words?"""
    cluster = moved()
    cluster.silence(3)
    cluster.create("b", (1,))
    cluster.beat(1, wants_fence=True)

    assert {
        ("x", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as x"),
        ("a", 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as a-7"),
        ("a", 0): (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."),
        ("a", 1): (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."),
    } == elect(cluster, ElectionType.PREFERRED, ("x", 0), ("a", 7), ("a", 0), ("a", 1))
    assert {
        ("a", 0): (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."),
        ("b", 0): (
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "Eligible topic partition leaders are not available.",
        ),
    } == elect(cluster, ElectionType.UNCLEAN, ("a", 0), ("b", 0))


def test_unknown_kind_of_election_is_refused():
    """Is a kind of election that is not there refused as a whole?"""
    with pytest.raises(KafkaError, match="Unknown election type 2") as refused:
        elect(ControllerShell(), 2)
    assert ErrorCode.INVALID_REQUEST == refused.value.code


def test_unclean_election_on_request():
    """Does whoever lives lead when an operator says so, whatever the topic says?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", (1, 2))
    cluster.alter(cluster.isr_change("a", 1))
    cluster.silence(1)
    assert -1 == cluster.partition("a").leader

    assert {("a", 0): None} == elect(cluster, ElectionType.UNCLEAN)
    state = cluster.partition("a")
    assert (2, (2,), 1) == (state.leader, state.isr, state.leader_recovery_state)


def test_leaders_are_balanced_a_few_at_a_time():
    """Do preferred replicas lead again by themselves, in turns of bounded size, and only where they are in sync?"""
    cluster = ControllerShell(brokers=2)
    cluster.create("a", *[(1, 2)] * 5)
    cluster.silence(1)
    cluster.beat(1)
    for index in range(4):
        cluster.alter(cluster.isr_change("a", 2, 1, index=index))
    assert 5 == len(cluster.metadata.index.imbalanced)

    more = [cluster.run(balance_leaders, elections_max=3) for _ in range(3)]

    assert [True, False, False] == more
    assert [1, 1, 1, 1, 2] == [state.leader for state in cluster.metadata.topics["a"].partitions]


def test_leaderless_partitions_are_led_once_their_topic_allows_it():
    """Is an unclean leader elected in the controller's own round, and only for topics that want it?"""
    cluster = ControllerShell(brokers=2)
    for name in ("a", "b"):
        cluster.create(name, (1, 2))
        cluster.alter(cluster.isr_change(name, 1))
    cluster.silence(1)
    cluster.run(elect_unclean_leaders)
    assert [-1, -1] == [cluster.partition(name).leader for name in ("a", "b")]

    name = "unclean.leader.election.enable"
    cluster.commit([ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name="b", name=name, value="true")])
    assert cluster.run(elect_unclean_leaders, elections_max=0), "there may be more"
    assert not cluster.run(elect_unclean_leaders)

    assert [-1, 2] == [cluster.partition(name).leader for name in ("a", "b")]


def test_controllers_file_may_allow_unclean_elections():
    """Does the controller's own setting hold for topics that say nothing?"""
    cluster = ControllerShell(brokers=2, policy=Policy(unclean_leader_election=True))
    cluster.create("a", (1, 2))
    cluster.alter(cluster.isr_change("a", 1))

    cluster.silence(1)

    assert 2 == cluster.partition("a").leader
