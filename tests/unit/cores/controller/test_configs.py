"""Dynamic settings, as far as they touch leaders."""

import pytest

from controller_shell import ControllerShell
from headrace.cores.controller.configs import ConfigChange, change_configs
from headrace.cores.controller.policy import Policy
from headrace.cores.controller.producer_ids import PRODUCER_ID_BLOCK, allocate_producer_ids
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import ProducerIdsRecord, RegisterControllerRecord


def configure(cluster: ControllerShell, kind: int, name: str, values: dict[str, str]):
    """Set exactly these; the code and message of a refusal."""
    change = ConfigChange(resource_type=kind, resource_name=name, change=lambda _: values)
    (error,) = cluster.run(change_configs, [change])
    return error and (error.code, error.message)


def policy_of(cluster: ControllerShell, policy: Policy) -> tuple[int, bool]:
    """What holds for topic `a`."""
    topic = cluster.metadata.topics["a"]
    return policy.min_isr(cluster.metadata, topic), policy.is_unclean(cluster.metadata, topic)


def test_topic_goes_before_node_before_cluster_before_file():
    """Which of the places where a setting can stand counts?"""
    cluster = ControllerShell(brokers=3)
    cluster.create("a", (1, 2, 3))
    policy = Policy(min_insync_replicas=1, unclean_leader_election=True, node_id=3)
    names = ("min.insync.replicas", "unclean.leader.election.enable")
    seen = [policy_of(cluster, policy)]
    for kind, name, values in (
        (RESOURCE_BROKER, "", ("2", "false")),
        (RESOURCE_BROKER, "3", ("3", "true")),
        (RESOURCE_TOPIC, "a", ("2", "FALSE")),
    ):
        assert None is configure(cluster, kind, name, dict(zip(names, values, strict=True)))
        seen.append(policy_of(cluster, policy))

    assert [(1, True), (2, False), (3, True), (2, False)] == seen


def test_no_more_can_be_in_sync_than_there_are_replicas():
    """Is min.insync.replicas of a small topic bounded by its replicas?"""
    cluster = ControllerShell(brokers=1)
    cluster.create("a", (1,), min_insync_replicas="2")

    assert 1 == policy_of(cluster, Policy())[0]


def test_another_min_isr_makes_eligible_replicas_void():
    """Are those who were eligible under another number forgotten, of one topic or of all?"""
    for kind, name, left in ((RESOURCE_TOPIC, "a", [(), (2,)]), (RESOURCE_BROKER, "", [(), ()])):
        cluster = ControllerShell(brokers=2, elr=True)
        for topic in ("a", "b"):
            cluster.create(topic, (1, 2), min_insync_replicas="2")
            cluster.alter(cluster.isr_change(topic, 1))
            assert (2,) == cluster.partition(topic).elr

        assert None is configure(cluster, kind, name, {"min.insync.replicas": "3"})

        assert left == [cluster.partition(topic).elr for topic in ("a", "b")]


def test_min_isr_is_the_clusters_while_eligible_replicas_are_kept():
    """Can a single broker not have its own, and the cluster not have none?"""
    cluster = ControllerShell(brokers=1, elr=True)

    assert (
        ErrorCode.INVALID_CONFIG,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    ) == configure(cluster, RESOURCE_BROKER, "1", {"min.insync.replicas": "2"})
    assert (
        ErrorCode.INVALID_CONFIG,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    ) == configure(cluster, RESOURCE_BROKER, "", {})


def test_settings_of_every_kind_of_node_and_of_groups():
    """Can registered brokers, registered controllers and groups have settings, and unknown nodes not?"""
    cluster = ControllerShell(brokers=1)
    cluster.commit([RegisterControllerRecord(controller_id=100)])

    assert None is configure(cluster, RESOURCE_BROKER, "1", {"a": "1"})
    assert None is configure(cluster, RESOURCE_BROKER, "100", {"a": "1"})
    assert None is configure(cluster, RESOURCE_GROUP, "g", {"a": "1"})
    assert ErrorCode.BROKER_ID_NOT_REGISTERED == configure(cluster, RESOURCE_BROKER, "7", {"a": "1"})[0]


def test_producer_ids_go_to_who_is_registered():
    """Does each block start where the last ended, and does a stale broker get none?"""
    cluster = ControllerShell(brokers=1)
    epoch = cluster.metadata.brokers[1].broker_epoch

    blocks = [cluster.run(allocate_producer_ids, broker_id=1, broker_epoch=epoch) for _ in range(2)]

    assert [range(PRODUCER_ID_BLOCK), range(PRODUCER_ID_BLOCK, 2 * PRODUCER_ID_BLOCK)] == blocks
    with pytest.raises(KafkaError) as refused:
        cluster.run(allocate_producer_ids, broker_id=1, broker_epoch=epoch + 1)
    assert ErrorCode.STALE_BROKER_EPOCH == refused.value.code


def test_producer_ids_run_out_before_they_repeat():
    """Is the end of the ids an error rather than a beginning?"""
    cluster = ControllerShell()
    cluster.commit([ProducerIdsRecord(next_producer_id=2**63 - PRODUCER_ID_BLOCK)])

    with pytest.raises(KafkaError, match="Exhausted all producerIds"):
        cluster.run(allocate_producer_ids, broker_id=1, broker_epoch=1)
