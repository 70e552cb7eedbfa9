"""kill -9 of nodes of a cluster under load: nothing acknowledged is lost, doubled or reordered, by record or by key."""

import os

import pytest

from crash.cluster_storm import ClusterStorm

pytestmark = [pytest.mark.slow, pytest.mark.clients]

KILLS = int(os.environ.get("HEADRACE_KILLS", "3"))
KILLS_LONG = int(os.environ.get("HEADRACE_KILLS", "100"))
ROUNDS = int(os.environ.get("HEADRACE_KILLS", "2"))


def kill_one(storm: ClusterStorm) -> str:
    """Kill a node at a moment of chance, have the others go on without it, and start it again; says what was done."""
    chance = storm.chance
    if patient := chance.random() < 0.7:
        storm.nodes.until_in_sync(storm.places)
    storm.wait_for_more(chance.randrange(1, 500) if patient else 1)
    node = storm.victim()
    storm.note_loss(node)
    node.kill()
    if patient:
        # With two of three left, the cluster writes on.
        storm.wait_for_more(chance.randrange(50, 500))
    if chance.random() < 0.2:
        node.start_and_kill(chance.uniform(0.2, 1.5))
    node.start()
    return f"node {node.node_id}, {'the others in sync' if patient else 'the others perhaps not in sync'}"


def kill_nodes(nodes, chance, kills: int) -> None:
    """So many kills, and the account."""
    with ClusterStorm(nodes, chance) as storm:
        for number in range(kills):
            print(f"{number}: {kill_one(storm)}, {storm.acks.count} acks so far", flush=True)
        storm.settle()
        print(f"{kills} kills, {storm.account()}")
    print(f"from the kill of a leader to the next acknowledgement: {storm.failovers()}")


def test_kill_storm_of_a_cluster(nodes, chance):
    """Does a cluster whose nodes are killed again and again keep everything it acknowledged, once and in order?"""
    kill_nodes(nodes, chance, KILLS)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_kill_storm_of_a_cluster(nodes, chance):
    """The same, a hundred times: does it hold?"""
    kill_nodes(nodes, chance, KILLS_LONG)


def test_all_nodes_killed_at_once(nodes, chance):
    """Is everything acknowledged still there when no node was left?"""
    with ClusterStorm(nodes, chance) as storm:
        for number in range(ROUNDS):
            storm.wait_for_more(chance.randrange(100, 1_000))
            for node in chance.sample(nodes.up, len(nodes.up)):
                node.kill()
            nodes.start()
            print(f"{number}: all killed and back, {storm.acks.count} acks so far", flush=True)
        storm.settle()
        print(f"{ROUNDS} times all killed, {storm.account()}")
