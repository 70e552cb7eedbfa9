"""What `headrace health` makes of a cluster's answers; real clusters are asked in tests/scenarios/test_umbrella.py."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.client.fault import ConnectionEnded, NotServed
from headrace.client.health import DESCRIBE_CLUSTER, look


class Cluster:
    """A cluster of two brokers with one topic, whose partitions and disks are as a test has them."""

    def __init__(self, *partitions, disks=None, fenced=()) -> None:
        self._partitions = [
            SimpleNamespace(partition_index=index, leader_id=leader, replica_nodes=(1, 2), isr_nodes=isr)
            for index, (leader, isr) in enumerate(partitions)
        ]
        self._disks = disks or {}
        self._fenced = fenced

    async def metadata(self):
        return SimpleNamespace(
            brokers=[SimpleNamespace(node_id=2), SimpleNamespace(node_id=1)],
            topics=[SimpleNamespace(name="orders", partitions=self._partitions)],
        )

    async def any_channel(self):
        return SimpleNamespace(versions={DESCRIBE_CLUSTER: (0, 2)})

    async def ask(self, api_key, message, *, node_id=None):
        if api_key == DESCRIBE_CLUSTER:
            brokers = [SimpleNamespace(broker_id=one, is_fenced=one in self._fenced) for one in (1, 2, 3)]
            return SimpleNamespace(brokers=brokers)
        found = self._disks.get(node_id, 0)
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(results=[SimpleNamespace(log_dir="/disk", error_code=found)])


def seen(cluster):
    """What is found."""
    return asyncio.run(look(cluster))


def test_all_is_well():
    """Is a cluster whose partitions are led and in sync well?"""
    health = seen(Cluster((1, (1, 2)), (2, (2, 1))))

    assert (health.is_well, health.brokers, health.topics, health.partitions) == (True, [1, 2], 1, 2)


def test_leaderless_and_behind():
    """Are a partition without a leader and one that lacks a replica in sync both named, and neither well?"""
    health = seen(Cluster((-1, (1, 2)), (1, (1,)), (1, (1, 2))))

    assert (health.leaderless, health.under_replicated) == (["orders-0"], ["orders-1"])
    assert not health.is_well


def test_a_broker_that_does_not_serve():
    """Is a broker that belongs to the cluster and is fenced one that does not answer?"""
    health = seen(Cluster((1, (1, 2)), fenced=(3,)))

    assert (health.silent_brokers, health.is_well) == ([3], False)


@pytest.mark.parametrize(
    ("found", "offline", "silent", "well"),
    [
        (56, ["/disk (broker 2)"], [], False),
        (ConnectionEnded("gone"), [], [2], False),
        (NotServed("unknown"), [], [], True),
    ],
)
def test_disks(found, offline, silent, well):
    """Are a lost disk and a broker that hangs up told, while one that cannot be asked about disks is no matter?"""
    health = seen(Cluster((1, (1, 2)), disks={2: found}))

    assert (health.offline_log_dirs, health.silent_brokers, health.is_well) == (offline, silent, well)
