"""Consume, transform, produce over three brokers that die, stop and come back: every input is there exactly once."""

import os

import pytest

from cluster_shell import BrokerGroup
from crash.exactly_once import BROKER_SETTINGS
from scenarios.cluster_copy_job import ClusterCopyJob
from seeds import chance_for

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.heavy]

TRANSACTIONS = int(os.environ.get("HEADRACE_TRANSACTIONS", "60"))
TRANSACTIONS_LONG = int(os.environ.get("HEADRACE_TRANSACTIONS", "3000"))
BETWEEN_FAULTS = 30
NODES = (1, 2, 3)
SETTINGS = {
    **BROKER_SETTINGS,
    # Leaders go home soon after their broker is back, so that coordinators move in peace too.
    "leader.imbalance.check.interval.seconds": "1",
    "leader.imbalance.per.broker.percentage": "0",
}


@pytest.fixture
def chance(request):
    """The luck of this test."""
    return chance_for(request.node.name, campaign=request.node.get_closest_marker("long") is not None)


def one_dies(group, job, chance):
    """A broker is killed and comes back at once."""
    node = chance.choice(NODES)
    group.kill(node)
    group.start(node)


def one_is_missing(group, job, chance):
    """A broker is killed, and the others go on without it for a while."""
    node = chance.choice(NODES)
    group.kill(node)
    job.wait_for_commits(chance.randrange(BETWEEN_FAULTS))
    group.start(node)


def one_stops(group, job, chance):
    """A broker is stopped as it should be, and started again."""
    group.restart(chance.choice(NODES))


def most_die(group, job, chance):
    """Two of three brokers are killed, or all, so that there is no quorum, and come back together."""
    nodes = chance.sample(NODES, chance.choice((2, 3)))
    for node in nodes:
        group.kill(node)
    group.start(*nodes)


def worker_dies(group, job, chance):
    """A worker is killed in the middle of whatever it does."""
    job.kill_worker()


FAULTS = (one_dies, one_is_missing, one_stops, most_die, worker_dies)


def run(place, chance, *, transactions, protocol):
    """A copy job with a fault every few dozen transactions; then the account."""
    with (
        BrokerGroup(3, settings=SETTINGS) as group,
        ClusterCopyJob(group, place, chance, transactions=transactions, protocol=protocol) as job,
    ):
        faults = list(FAULTS)
        chance.shuffle(faults)
        while faults or not job.is_done():
            job.wait_for_commits(chance.randrange(BETWEEN_FAULTS))
            fault = faults.pop() if faults else chance.choice(FAULTS)
            print(f"{job.committed()} committed: {fault.__name__}")
            fault(group, job, chance)
        job.settle()
        print(job.account())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_exactly_once_in_a_storm(tmp_path, chance, protocol):
    """Is every input in the output exactly once, and nothing hanging, whichever brokers die, stop or move?"""
    run(tmp_path, chance, transactions=TRANSACTIONS, protocol=protocol)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_long_exactly_once_in_a_storm(tmp_path, chance, protocol):
    """The same for thousands of transactions: does it hold?"""
    run(tmp_path, chance, transactions=TRANSACTIONS_LONG, protocol=protocol)
