"""Nodes of a cluster lose their power, one or all at once: what was acknowledged is on their disks."""

import os

import pytest

from crash.cluster_nodes import Node, Nodes
from crash.cluster_storm import GROUP_TOPIC, ClusterStorm
from crash.small_disk import Ext4Image

pytestmark = [pytest.mark.slow, pytest.mark.clients]

CUTS_LONG = int(os.environ.get("HEADRACE_CUTS", "40"))
ROUNDS_LONG = int(os.environ.get("HEADRACE_CUTS", "20"))
FLUSHED = {GROUP_TOPIC: 4}
"""When no node is left, only what was flushed is."""

Disks = dict[int, Ext4Image]


def cut_power(victims: list[Node], disks: Disks) -> None:
    """All of them lose their power at once, and their disks are as a machine finds them that starts again."""
    for node in victims:
        node.freeze()
    for node in victims:
        disks[node.node_id].cut_power()
    for node in victims:
        node.kill()
        disks[node.node_id].unmount()
        disks[node.node_id].mount()


def cut_one(storm: ClusterStorm, disks: Disks) -> str:
    """One node loses its power; the others go on without it, or it is back before they miss it."""
    chance, nodes = storm.chance, storm.nodes
    nodes.until_in_sync(storm.places)
    storm.wait_for_more(chance.randrange(1, 500))
    node = storm.victim()
    storm.note_loss(node)
    cut_power([node], disks)
    if missed := chance.random() < 0.5:
        storm.wait_for_more(chance.randrange(50, 300))
    node.start()
    return f"node {node.node_id}, {'missed' if missed else 'back at once'}"


def cut_every(storm: ClusterStorm, disks: Disks) -> None:
    """All nodes lose their power at once, whatever they are doing."""
    storm.wait_for_more(storm.chance.randrange(100, 1_000))
    cut_power(storm.chance.sample(list(storm.nodes), len(disks)), disks)
    storm.nodes.start()


def cut_nodes(nodes: Nodes, disks: Disks, chance, cuts: int) -> None:
    """So many cuts of one node's power, and the account."""
    with ClusterStorm(nodes, chance) as storm:
        for number in range(cuts):
            print(f"{number}: {cut_one(storm, disks)}, {storm.acks.count} acks so far", flush=True)
        storm.settle()
        print(f"{cuts} cuts, {storm.account()}")
    print(f"from the cut to the next acknowledgement: {storm.failovers()}")


def cut_all(nodes: Nodes, disks: Disks, chance, rounds: int) -> None:
    """So many times all nodes lose their power at once, and the account."""
    with ClusterStorm(nodes, chance, FLUSHED) as storm:
        for number in range(rounds):
            cut_every(storm, disks)
            print(f"{number}: all cut and back, {storm.acks.count} acks so far", flush=True)
        storm.settle()
        print(f"{rounds} times no power, {storm.account()}")


def test_power(powered_nodes, chance):
    """R2: Is everything that was acknowledged there after one node lost its power, and then all of them at once?"""
    nodes, disks = powered_nodes
    with ClusterStorm(nodes, chance, FLUSHED) as storm:
        print(cut_one(storm, disks))
        cut_every(storm, disks)
        storm.settle()
        print(storm.account())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_power_of_one_node(powered_nodes, chance):
    """Is nothing lost with the power of one node, forty times, in a topic that does not even flush?"""
    cut_nodes(*powered_nodes, chance, CUTS_LONG)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_power_of_all_nodes(powered_nodes, chance):
    """Is everything that was acknowledged there after all nodes lost their power, twenty times?"""
    cut_all(*powered_nodes, chance, ROUNDS_LONG)
