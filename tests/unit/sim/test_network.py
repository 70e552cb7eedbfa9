"""The simulated network."""

import pytest

from headrace.sim.network import Network, Weather
from headrace.sim.scheduler import Scheduler


@pytest.fixture
def arrivals():
    """What has arrived, in order."""
    return []


@pytest.fixture
def network(arrivals):
    """A network between nodes 1 and 2."""
    return Network(Scheduler(7), lambda sender, receiver, message: arrivals.append((sender, receiver, message)))


def send_all(network, messages=range(100)):
    """Send from 1 to 2, and let everything arrive."""
    for message in messages:
        network.send(1, 2, message)
    network._scheduler.run(60_000)


def test_calm(network, arrivals):
    """Does everything arrive once in good weather?"""
    send_all(network)
    assert sorted(arrivals) == [(1, 2, message) for message in range(100)]


@pytest.mark.parametrize(
    ("weather", "at_least", "at_most"),
    [(Weather(loss=0.5), 20, 80), (Weather(repeats=0.5), 120, 180), (Weather(loss=1.0), 0, 0)],
)
def test_weather(network, arrivals, weather, at_least, at_most):
    """Are messages lost and repeated as often as the weather says?"""
    network.weather = weather
    send_all(network)
    assert at_least <= len(arrivals) <= at_most


def test_reorders(network, arrivals):
    """Do messages overtake each other where their delays differ?"""
    network.weather = Weather(delay_ms=(1, 100))
    send_all(network)
    assert [message for _, _, message in arrivals] != sorted(range(100))


def test_cut_one_way(network, arrivals):
    """Does a cut stop one direction only, also for what is under way, until it is healed?"""
    network.send(1, 2, "under way")
    network.cut(1, 2)
    network.send(2, 1, "back")
    network._scheduler.run(100)
    assert arrivals == [(2, 1, "back")]
    network.heal()
    send_all(network, ["again"])
    assert arrivals == [(2, 1, "back"), (1, 2, "again")]


def test_same_seed_same_run(arrivals):
    """Do two runs of one seed go the same way?"""
    runs = []
    for _ in range(2):
        arrivals.clear()
        network = Network(Scheduler(3), lambda *what: arrivals.append(what))
        network.weather = Weather(delay_ms=(1, 50), loss=0.2, repeats=0.2, slow=0.1)
        send_all(network)
        runs.append(list(arrivals))
    assert runs[0] == runs[1]
