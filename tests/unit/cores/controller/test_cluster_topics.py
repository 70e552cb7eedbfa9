"""Topics and partitions where brokers register."""

from uuid import UUID

from controller_shell import ControllerShell
from headrace.cores.controller.partitions import MorePartitions, create_partitions
from headrace.cores.controller.topics import CreatedTopic, Defaults, NewTopic, create_topics
from headrace.model.errors import ErrorCode

DEFAULTS = Defaults(partitions=3, replication_factor=2)


def create(cluster: ControllerShell, **fields):
    """What becomes of a topic `a`."""
    wanted = NewTopic(**{"name": "a", "topic_id": UUID(int=1_000_000), **fields})
    (result,) = cluster.run(create_topics, [wanted], defaults=DEFAULTS).values()
    return result if isinstance(result, CreatedTopic) else (result.code, result.message)


def grow(cluster: ControllerShell, count: int, assignments=None):
    """What becomes of more partitions of `a`."""
    wanted = MorePartitions(name="a", count=count, assignments=assignments)
    (error,) = cluster.run(create_partitions, [wanted]).values()
    return error and (error.code, error.message)


def test_replicas_go_to_registered_brokers_over_racks():
    """Are replicas spread over the racks the brokers registered with?"""
    cluster = ControllerShell(brokers=6, racks=2)

    assert 3 == create(cluster).partitions

    for state in cluster.metadata.topics["a"].partitions:
        assert 2 == len({cluster.metadata.brokers[replica].rack for replica in state.replicas})
        assert (state.replicas, state.replicas[0]) == (state.isr, state.leader)
        assert state.directories == tuple(cluster.metadata.brokers[each].log_dirs[0] for each in state.replicas)


def test_fenced_replicas_are_not_in_sync():
    """Is a replica on a broker that does not live placed, but not in sync?"""
    cluster = ControllerShell(brokers=2)
    cluster.silence(2)

    create(cluster)

    assert [((1, 2), (1,), 1)] * 3 == [
        (state.replicas, state.isr, state.leader) for state in cluster.metadata.topics["a"].partitions
    ]


def test_too_few_brokers_for_the_factor_are_told():
    """Is a factor above the registered brokers refused with Kafka's sentence?"""
    assert (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        (
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because "
            "only 2 broker(s) are registered."
        ),
    ) == create(ControllerShell(brokers=2), replication_factor=4)


def test_assignment_to_dead_brokers_only_is_refused():
    """Is a hand-made placement on fenced brokers refused, for new topics and new partitions?"""
    cluster = ControllerShell(brokers=3)
    cluster.silence(2)
    words = (
        "All brokers specified in the manual partition assignment for partition {} are fenced or in controlled "
        "shutdown."
    )

    assert (ErrorCode.INVALID_REPLICA_ASSIGNMENT, words.format(0)) == create(cluster, assignments=[(0, (2,))])
    assert isinstance(create(cluster, assignments=[(0, (3,))]), CreatedTopic)
    assert (ErrorCode.INVALID_REPLICA_ASSIGNMENT, words.format(1)) == grow(cluster, 2, [(2,)])
    assert None is grow(cluster, 2, [(1,)])


def test_topic_grows_over_live_brokers():
    """Are new partitions led by brokers that live, and refused when none does?"""
    cluster = ControllerShell(brokers=3)
    create(cluster, partitions=1, replication_factor=1)
    cluster.silence(3)

    assert None is grow(cluster, 5)
    assert {1, 2} == {state.leader for state in cluster.metadata.topics["a"].partitions[1:]}

    cluster.silence(1, 2)
    assert (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced.",
    ) == grow(cluster, 6)
