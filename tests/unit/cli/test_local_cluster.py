"""A cluster's directories on this machine: what is written for its nodes, and what is read from it again."""

import socket
from dataclasses import replace

import pytest

from headrace.cli.local_cluster import LocalCluster, NoPortFree, cluster_of, free_ports, stopped_nodes
from headrace.settings.broker import BrokerConfig
from headrace.storage.files import RealFiles
from headrace.storage.meta_properties import read_meta


@pytest.fixture
def cluster(tmp_path):
    """Four nodes, none of which is started."""
    cluster = LocalCluster(tmp_path)
    cluster.make([21092, 21094, 21096, 21098])
    return cluster


def config(cluster, node):
    """A node's settings as a broker reads them."""
    return BrokerConfig.load(cluster.plan(node).config, {})


def test_new_cluster(cluster, tmp_path):
    """Are four nodes of one cluster written, three of which vote, with three copies of everything?"""
    metas = [read_meta(RealFiles(), str(tmp_path / f"node-{node}" / "data")) for node in cluster.nodes()]
    one, four = config(cluster, 1), config(cluster, 4)

    assert cluster.nodes() == [1, 2, 3, 4]
    assert len({meta.cluster_id for meta in metas}) == 1
    assert len({meta.directory_id for meta in metas}) == 4
    assert [cluster.is_voter(node) for node in cluster.nodes()] == [True, True, True, False]
    assert [voter.node_id for voter in four.quorum_voters] == [1, 2, 3]
    assert {voter.port for voter in four.quorum_voters} == {21093, 21095, 21097}
    assert (one["default.replication.factor"], one["min.insync.replicas"]) == (3, 2)
    assert (four.roles, [listener.port for listener in four.listeners]) == ({"broker"}, [21098])


def test_one_more(cluster):
    """Has a node that is added the next id and the others' voters and copies, and does it not vote?"""
    assert cluster.add(21100) == 5
    five = config(cluster, 5)

    assert (five.roles, five.quorum_voters) == ({"broker"}, config(cluster, 1).quorum_voters)
    assert five["offsets.topic.replication.factor"] == 3


def test_one_less(cluster, tmp_path):
    """Is a node that has left not started again, its data still there, and its id not given to another?"""
    cluster.leave(4)

    assert cluster.nodes() == [1, 2, 3]
    assert (tmp_path / "node-4/data/meta.properties").exists()
    assert cluster.add(21098) == 5


def test_whose_a_server_is(cluster):
    """Is a running node found to be of the cluster, and are those named that do not run?"""
    one, two = (plan.expected() for plan in cluster.plans([1, 2]))

    assert cluster_of(one) == cluster
    assert cluster_of(replace(one, data="/somewhere/kraft-combined-logs")) is None
    assert [node.node_id for node in stopped_nodes([one, two])] == [3, 4]
    assert stopped_nodes([]) == []


def test_nothing_there(tmp_path):
    """Is a directory without a cluster, or without being there, one without nodes?"""
    (tmp_path / "node-x").mkdir()

    assert LocalCluster(tmp_path).nodes() == []
    assert LocalCluster(tmp_path / "none").nodes() == []


def test_ports_that_are_taken_are_left_out():
    """Is a port that is taken, or whose neighbour is, not given to a node?"""
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]

        assert port not in free_ports(2, first=port)
        assert port - 1 not in free_ports(2, first=port - 1)
    with pytest.raises(NoPortFree):
        free_ports(2, first=65_533)
