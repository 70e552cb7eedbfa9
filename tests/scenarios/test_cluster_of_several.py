"""`Cluster(brokers=…)`: several real brokers in a test, which can be killed and brought back one by one."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from caught_up import caught_up
from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.settings.fault import ConfigFault
from headrace.testing import Cluster
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.list_offsets import ListOffsetsRequest
from wire_client import WireClient

BATCH = bytes(build_batch([NewRecord(timestamp=1_700_000_000_000, value=b"v")]))


@pytest.fixture(scope="module")
def running():
    """Three brokers with a topic."""
    with Cluster(brokers=3) as cluster:
        create(cluster, "orders", partitions=3)
        yield cluster


@pytest.fixture
def three(running):
    """The three, in sync; tests bring back what they kill."""
    until_in_sync(running)
    return running


def until_in_sync(cluster):
    """Wait until all replicas of the topic are in sync, and every broker knows it."""
    watcher = cluster.brokers[cluster.controller]
    cluster.call(watcher.until(lambda metadata: {len(one.isr) for one in metadata.topics["orders"].partitions} == {3}))
    cluster.call(caught_up(cluster.brokers.values()))


def create(cluster, name, *, partitions=1):
    """Make a topic with as many copies as the cluster thinks fit."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
    with WireClient(cluster.port) as client:
        (result,) = client.ask("CreateTopics", 7, CreateTopicsRequest(topics=(topic,), timeout_ms=30_000)).topics
    assert result.error_code == 0
    cluster.call(caught_up(cluster.brokers.values()))


def produce(cluster, topic="orders", partition=0):
    """Send a batch to whoever leads the partition, which must take it."""
    leader = cluster.leader_of(topic, partition)
    with WireClient(int(cluster.address(leader).rpartition(":")[2])) as client:
        assert client.produce(topic, BATCH, partition=partition).error_code == 0


def test_all_are_one_cluster(three):
    """Do all brokers know each other and keep copies of a topic whose creator did not say how many?"""
    known = three.ask(lambda broker: broker.live_brokers, node=3)
    partition = three.ask(lambda broker: broker.metadata.topics["orders"].partitions[0], node=2)

    assert three.nodes == (1, 2, 3)
    assert sorted(known) == [1, 2, 3]
    assert sorted(partition.replicas) == [1, 2, 3]
    assert three.bootstrap.split(",") == [three.address(node) for node in three.nodes]
    assert len(set(three.bootstrap.split(","))) == 3


def test_kill_and_restart(three):
    """Does another broker lead on after a kill, and is the killed one in sync again after its restart?"""
    leader = three.leader_of("orders", 1)
    produce(three, partition=1)
    address = three.address(leader)

    three.kill(leader)
    successor = three.leader_of("orders", 1)
    produce(three, partition=1)
    three.restart(leader)

    assert successor != leader
    assert three.address(leader) == address
    until_in_sync(three)
    with WireClient(int(three.address(three.leader_of("orders", 1)).rpartition(":")[2])) as client:
        found = client.list_offset("orders", -1, partition=1)
        assert (found.error_code, found.offset) == (0, 2)


def test_clean_stop_hands_over(three):
    """When a node stops cleanly, does another one lead before it is gone?"""
    leader = three.leader_of("orders", 2)
    three.stop_node(leader)
    after = three.ask(lambda broker: broker.metadata.topics["orders"].partitions[2].leader, node=three.controller)
    three.restart(leader)

    assert after != leader


def test_unknown_nodes_are_refused(three):
    """Is a node that is not there, or does not run, told in a sentence?"""
    with pytest.raises(ValueError, match="there is no node 4 in this cluster; there are 1, 2, 3"):
        three.kill(4)
    three.stop_node(3)
    with pytest.raises(ValueError, match="node 3 does not run"):
        three.stop_node(3)
    three.restart(3)


def test_faults_of_one_node(three):
    """Is a fault that names a node only that node's?"""
    three.fail_next("ListOffsets", node=2)
    closed = []
    for node in three.nodes:
        with WireClient(int(three.address(node).rpartition(":")[2])) as client:
            client.send("ListOffsets", 11, ListOffsetsRequest(replica_id=-1, topics=()))
            closed += [node] if client.is_closed_by_broker() else []

    assert closed == [2]


def test_two_brokers_need_only_one():
    """Of two brokers, can the one that does not vote be killed, and is the other written to?"""
    with Cluster(brokers=2) as cluster:
        create(cluster, "t")
        cluster.kill(2)

        assert cluster.leader_of("t", 0) == 1
        produce(cluster, "t")


def test_more_brokers_than_voters():
    """With four brokers, do three vote, and is the fourth a broker like them?"""
    with Cluster(brokers=4, node_id=11) as cluster:
        roles = {node: broker.config.roles for node, broker in cluster.brokers.items()}

        cluster.call(caught_up(cluster.brokers.values()))
        assert roles == {node: {"broker"} if node == 14 else {"broker", "controller"} for node in range(11, 15)}
        assert sorted(cluster.ask(lambda broker: broker.live_brokers)) == [11, 12, 13, 14]


def test_given_directory_is_found_again(tmp_path):
    """With a directory of one's own, does the next cluster find the data of all nodes?"""
    with Cluster(brokers=3, directory=tmp_path) as first:
        create(first, "kept")
        produce(first, "kept")
        cluster_id = first.broker.cluster_id
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node-1", "node-2", "node-3"]
    with Cluster(brokers=3, directory=tmp_path) as second:
        assert second.broker.cluster_id == cluster_id
        leader = second.leader_of("kept", 0)
        with WireClient(int(second.address(leader).rpartition(":")[2])) as client:
            # A new leader does not know yet what the others have.
            while (found := client.list_offset("kept", -1)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE:
                pass
            assert (found.error_code, found.offset) == (0, 1)


LEAVING = """
import gc, threading
from pathlib import Path
from headrace.testing import Cluster


def left():
    gc.collect()
    threads = {f"{thread.name} {thread.ident}" for thread in threading.enumerate()}
    files = {f"{path.name} {path.readlink()}" for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}
    return threads, {name for name in files if not name.endswith("/fd")}


with Cluster():
    "What the event loop keeps for the whole process is there from now on."
before = left()
with Cluster(brokers=3) as cluster:
    directory = cluster.directory
    cluster.kill(2)
print(cluster.directory, directory.exists(), [after - old for after, old in zip(left(), before)])
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
def test_leaves_nothing_behind():
    """After a stop, even with a node that was killed, are there no threads, no open files and no directory?"""
    # In a process of its own: brokers of other tests open and close connections here as they like.
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", LEAVING],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert done.stdout.splitlines()[-1] == "None False [set(), set()]"


class TestFixture:
    """The fixture that comes with the package, told to have several brokers."""

    @pytest.fixture
    def headrace_brokers(self):
        return 3

    def test_headrace_brokers(self, headrace_cluster):
        """Does the fixture have as many brokers as another fixture says?"""
        assert headrace_cluster.nodes == (1, 2, 3)
        headrace_cluster.call(caught_up(headrace_cluster.brokers.values()))
        assert sorted(headrace_cluster.ask(lambda broker: broker.live_brokers)) == [1, 2, 3]


def test_wrong_settings_are_told():
    """Is a setting that cannot be told as such, and is nothing started?"""
    before = clusters()
    with pytest.raises(ConfigFault), Cluster({"broker.session.timeout.ms": "soon"}, brokers=3):
        pass

    assert clusters() == before


def clusters():
    """The threads of clusters; what the brokers of one that runs start meanwhile is theirs."""
    return {thread.ident for thread in threading.enumerate() if thread.name == "headrace-cluster"}
