"""Networks that are cut: nodes of a cluster on hosts of their own lose their cable, each other, or one direction."""

import os
import time
from collections.abc import Callable

import pytest

from crash.cluster_nodes import SESSION_S
from crash.cluster_storm import ClusterStorm
from crash.stale_writer import StaleWriter
from headrace.testing.history import Outcome
from network_hosts import CONTROLLERS, Host, Hosts

pytestmark = [pytest.mark.slow, pytest.mark.clients]

CUTS = int(os.environ.get("HEADRACE_CUTS", "2"))
CUTS_LONG = int(os.environ.get("HEADRACE_CUTS", "70"))
STALE_SENDS = 5
APART = "with all nodes apart"

Cut = Callable[[Hosts, Host], object]

DEPOSING: dict[str, Cut] = {
    "whose cable is pulled": lambda hosts, host: host.unplug(),
    "which only clients reach": lambda hosts, host: hosts.cut([host], hosts.others(host)),
    "which the others do not hear": lambda hosts, host: host.drop_to(hosts.others(host)),
    "which does not hear the others": lambda hosts, host: [other.drop_to([host]) for other in hosts.others(host)],
    "which no controller reaches": lambda hosts, host: hosts.cut([host], hosts.others(host), [CONTROLLERS]),
}
"""Cuts after which the others, who are the majority, go on without the node."""
LASTING: dict[str, Cut] = {
    "which has lost one of the others": lambda hosts, host: hosts.cut([host], hosts.others(host)[:1]),
    APART: lambda hosts, host: [hosts.cut([one], hosts.others(one)) for one in hosts],
}
"""Cuts after which the node may well go on to lead: one link of three is not enough, or nobody has a majority."""
KINDS = DEPOSING | LASTING


def cut_one(storm: ClusterStorm, hosts: Hosts, kind: str) -> str:
    """Cut the network around a leader, write to it meanwhile, and put the network right; says what was done."""
    chance, nodes = storm.chance, storm.nodes
    nodes.until_in_sync(storm.places)
    storm.wait_for_more(chance.randrange(1, 300))
    place = chance.choice(storm.places)
    node = nodes.leader_of(place)
    host = hosts[node.node_id]
    with host.entered():
        # From its own host: whatever is cut, somebody there still takes it for the leader.
        writer = StaleWriter(node, place)
    storm.note_loss(node)
    KINDS[kind](hosts, host)
    try:
        if kind in DEPOSING:
            storm.until_deposed(node)
            storm.wait_for_more(chance.randrange(50, 300))
        writer.send(storm.stale_numbers(STALE_SENDS))
        time.sleep(chance.uniform(0, SESSION_S))
        assert kind != APART or not writer.is_answered(), f"node {node.node_id} alone, {kind}, acknowledged"
    except BaseException:
        writer.close()
        raise
    finally:
        hosts.heal()
    told = writer.answers()
    storm.extra += told
    accepted = [send for send in told if send.outcome is Outcome.OK]
    assert kind in LASTING or accepted == [], f"node {node.node_id}, {kind}, did not lead {place} any more"
    return f"node {node.node_id}, {kind}: {len(accepted)} of {len(told)} writes to it accepted"


def cut_networks(nodes, hosts, chance, kinds: list[str]) -> None:
    """These cuts one after the other, and the account."""
    with ClusterStorm(nodes, chance) as storm:
        for number, kind in enumerate(kinds):
            print(f"{number}: {cut_one(storm, hosts, kind)}, {storm.acks.count} acks so far", flush=True)
        storm.settle()
        print(f"{len(kinds)} cuts, {storm.account()}")
    print(f"from the cut to the next acknowledgement: {storm.failovers()}")


def test_cuts(distant_nodes, hosts, chance):
    """R2, R5: Do nodes on several hosts keep everything they acknowledged when the network between them is cut?"""
    cut_networks(distant_nodes, hosts, chance, chance.sample(sorted(KINDS), min(CUTS, len(KINDS))))


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_long_cuts(distant_nodes, hosts, chance):
    """The same, with every kind of cut ten times: does it hold?"""
    kinds = sorted(KINDS)
    rounds = [kinds[number % len(kinds)] for number in range(CUTS_LONG)]
    cut_networks(distant_nodes, hosts, chance, chance.sample(rounds, len(rounds)))
