"""Nodes of a cluster that stand still for longer than their session, and go on as if nothing had been."""

import os
import time

import pytest

from crash.cluster_nodes import SESSION_S
from crash.cluster_storm import ClusterStorm
from crash.stale_writer import StaleWriter
from headrace.testing.history import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.clients]

PAUSES = int(os.environ.get("HEADRACE_KILLS", "2"))
PAUSES_LONG = int(os.environ.get("HEADRACE_KILLS", "50"))
STALE_SENDS = 5


def pause_one(storm: ClusterStorm, number: int) -> str:
    """Have a leader stand still until another has taken over, write to it meanwhile, and let it go on."""
    chance, nodes = storm.chance, storm.nodes
    nodes.until_in_sync(storm.places)
    storm.wait_for_more(chance.randrange(1, 300))
    place = chance.choice(storm.places)
    node = nodes.leader_of(place) if number % 2 == 0 else nodes.active_controller()
    writer = StaleWriter(node, place)
    storm.note_loss(node)
    node.freeze()
    try:
        storm.until_deposed(node)
        storm.wait_for_more(chance.randrange(50, 300))
        writer.send(storm.stale_numbers(STALE_SENDS))
        time.sleep(chance.uniform(0, SESSION_S))
    finally:
        node.go_on()
    told = writer.answers()
    storm.extra += told
    accepted = sum(send.outcome is Outcome.OK for send in told)
    return f"node {node.node_id} of {place}, {accepted} of {len(told)} late writes accepted"


def pause_nodes(nodes, chance, pauses: int) -> None:
    """So many pauses, and the account."""
    with ClusterStorm(nodes, chance) as storm:
        for number in range(pauses):
            print(f"{number}: {pause_one(storm, number)}, {storm.acks.count} acks so far", flush=True)
        storm.settle()
        print(f"{pauses} pauses, {storm.account()}")
    print(f"from the pause of a leader to the next acknowledgement: {storm.failovers()}")


def test_pauses(nodes, chance):
    """Does a leader that slept through its own deposition accept nothing that is lost afterwards?"""
    pause_nodes(nodes, chance, PAUSES)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_pauses(nodes, chance):
    """The same, fifty times: does it hold?"""
    pause_nodes(nodes, chance, PAUSES_LONG)
