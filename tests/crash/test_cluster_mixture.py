"""Kills, pauses and broken-off stops of one, two or all nodes of a cluster, in any order and too soon after another."""

import os
import time
from collections.abc import Callable

import pytest

from crash.cluster_nodes import SESSION_S
from crash.cluster_storm import ClusterStorm

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.long]

FAULTS = int(os.environ.get("HEADRACE_KILLS", "100"))


def kill_one(storm: ClusterStorm) -> None:
    """One dies, and perhaps once more while it starts."""
    node = storm.victim()
    storm.note_loss(node)
    node.kill()
    if storm.chance.random() < 0.3:
        node.start_and_kill(storm.chance.uniform(0.2, 1.5))
    time.sleep(storm.chance.choice((0, 0.5, 1.5 * SESSION_S)))
    node.start()


def kill_two(storm: ClusterStorm) -> None:
    """Two die at once: there is no quorum until one is back."""
    for node in storm.chance.sample(storm.nodes.up, 2):
        node.kill()
    time.sleep(storm.chance.choice((0, 0.5, 1.5 * SESSION_S)))
    storm.nodes.start()


def kill_all(storm: ClusterStorm) -> None:
    """All die at once."""
    for node in storm.nodes.up:
        node.kill()
    storm.nodes.start()


def pause_one(storm: ClusterStorm) -> None:
    """One stands still, for a moment or for longer than its session."""
    node = storm.victim()
    storm.note_loss(node)
    node.freeze()
    time.sleep(storm.chance.choice((0.2, 0.8, 1.2, 2.2, 3.5)))
    node.go_on()


def pause_one_and_kill_another(storm: ClusterStorm) -> None:
    """One wakes up in a cluster that another has left meanwhile."""
    sleeper, victim = storm.chance.sample(storm.nodes.up, 2)
    sleeper.freeze()
    time.sleep(storm.chance.uniform(0, 2 * SESSION_S))
    victim.kill()
    sleeper.go_on()
    victim.start()


def stop_and_kill(storm: ClusterStorm) -> None:
    """One is killed in the middle of handing over."""
    node = storm.victim()
    node.stop_and_kill(storm.chance.uniform(0, 0.8))
    node.start()


def stop_one(storm: ClusterStorm) -> None:
    """One stops as it should, whatever state the others are in."""
    node = storm.victim()
    node.stop()
    node.start()


WAYS: dict[Callable[[ClusterStorm], None], int] = {
    kill_one: 5,
    kill_two: 2,
    kill_all: 1,
    pause_one: 3,
    pause_one_and_kill_another: 2,
    stop_and_kill: 2,
    stop_one: 1,
}
"""What may happen, and how often compared with the rest."""


@pytest.mark.timeout(7200)
def test_mixture(nodes, chance):
    """Does a cluster keep what it acknowledged, and go on by itself, whatever happens to its nodes?"""
    with ClusterStorm(nodes, chance) as storm:
        for number in range(FAULTS):
            (way,) = chance.choices(list(WAYS), list(WAYS.values()))
            way(storm)
            print(f"{number}: {way.__name__}, {storm.acks.count} acks so far", flush=True)
            storm.wait_for_more(chance.choice((1, 100, 500)))
        storm.settle()
        print(f"{FAULTS} faults, {storm.account()}")
    print(f"from the loss of a leader to the next acknowledgement: {storm.failovers()}")
