"""Nodes of a cluster that are stopped and started in turn, as in an upgrade: no client has anything to complain of."""

import os

import pytest

from crash.cluster_storm import ClusterStorm, spread

pytestmark = [pytest.mark.slow, pytest.mark.clients]

ROUNDS = int(os.environ.get("HEADRACE_KILLS", "1"))


def test_rolling_restart(nodes, chance):
    """Does no produce fail while every node is stopped by SIGTERM and started again?"""
    stops = []
    with ClusterStorm(nodes, chance) as storm:
        for _ in range(ROUNDS):
            for node in chance.sample(list(nodes), len(list(nodes))):
                nodes.until_in_sync(storm.places)
                storm.wait_for_more(chance.randrange(100, 400))
                storm.note_loss(node)
                stops.append(node.stop())
                storm.wait_for_more(chance.randrange(100, 400))
                node.start()
                print(f"node {node.node_id} again, {storm.acks.count} acks so far", flush=True)
        storm.settle()
        print(f"{len(stops)} restarts, {storm.account()}")
    print(f"from a send to its acknowledgement: {storm.latencies()}")
    print(f"a stop takes {spread(stops)}; from the stop of a leader to the next acknowledgement: {storm.failovers()}")

    assert storm.failures == []
    assert [line for node in nodes for line in node.said("controlled_shutdown_given_up")] == []
