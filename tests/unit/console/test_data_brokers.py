"""What is counted on brokers, and how far the nodes of a quorum are."""

from uuid import UUID

from headrace.client.admin_values import (
    BrokerDescription,
    ClusterDescription,
    PartitionDescription,
    QuorumDescription,
    QuorumReplica,
    TopicDescription,
)
from headrace.console.data_brokers import broker_views, quorum_rows
from headrace.model.ids import encode_uuid

ID = UUID(int=7)


def partition(number, leader, replicas, isr):
    return PartitionDescription(
        partition=number, leader=leader, leader_epoch=0, replicas=replicas, isr=isr, offline_replicas=()
    )


CLUSTER = ClusterDescription(
    cluster_id="c",
    controller_id=1,
    brokers=tuple(BrokerDescription(node_id=one, host="h", port=9092, rack=None) for one in (2, 1)),
)
TOPICS = [
    TopicDescription(
        name="t",
        topic_id=ID,
        is_internal=False,
        partitions=(partition(0, 1, (1, 2), (1, 2)), partition(1, 1, (1, 2), (1,)), partition(2, -1, (2,), ())),
    )
]


def test_brokers_are_counted():
    """Is it counted what each leads and holds, and what of that is not in sync, also where nobody leads?"""
    one, two = broker_views(CLUSTER, TOPICS, controller=2, sizes={1: 10, 2: None})

    assert (1, 2, 2, 0, 10) == (one.node_id, one.leaders, one.replicas, one.behind, one.size_bytes)
    assert (2, 0, 3, 2, None) == (two.node_id, two.leaders, two.replicas, two.behind, two.size_bytes)


def test_the_controller_is_who_leads_the_quorum():
    """Is it the leader of the quorum, and what brokers say only where that is not known?"""
    for controller, expected in ((2, [False, True]), (None, [True, False])):
        views = broker_views(CLUSTER, TOPICS, controller=controller, sizes={})
        assert expected == [one.is_controller for one in views]


def replica(node_id, end, fetched_ms=-1, directory_id=ID):
    return QuorumReplica(
        node_id=node_id,
        directory_id=directory_id,
        log_end_offset=end,
        last_fetch_ms=fetched_ms,
        last_caught_up_ms=fetched_ms,
    )


def test_a_quorum_is_ordered():
    """Does the leader come first, and is everybody's lag counted from its end?"""
    quorum = QuorumDescription(
        leader_id=3,
        leader_epoch=5,
        high_watermark=90,
        voters=(replica(1, 90, 900), replica(2, 100, 1_200), replica(3, 100)),
        observers=(replica(8, 40, 500), replica(7, 99)),
    )

    rows = quorum_rows(quorum, 1_000)

    assert [(3, "leader", 0), (1, "voter", 10), (2, "voter", 0), (7, "observer", 1), (8, "observer", 60)] == [
        (row.node_id, row.role, row.lag) for row in rows
    ]
    assert [None, 100, 0, None, 500] == [row.fetched_ms for row in rows]


def test_voters_of_a_settings_file_have_no_directory():
    """Is the id of no directory not shown as one?"""
    voters = (replica(1, 5), replica(2, 5, directory_id=UUID(int=0)))
    quorum = QuorumDescription(leader_id=1, leader_epoch=6, high_watermark=5, voters=voters, observers=())

    assert [encode_uuid(ID), None] == [row.directory_id for row in quorum_rows(quorum, 0)]


def test_a_quorum_without_a_leader():
    """Is the lag counted from the high watermark while nobody leads?"""
    quorum = QuorumDescription(
        leader_id=-1, leader_epoch=6, high_watermark=50, voters=(replica(1, 40), replica(2, 60)), observers=()
    )

    assert [("voter", 10), ("voter", 0)] == [(row.role, row.lag) for row in quorum_rows(quorum, 0)]
