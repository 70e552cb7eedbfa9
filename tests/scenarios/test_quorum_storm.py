"""Crashes of a quorum's nodes by chance, with power cuts: nothing that was answered may be lost."""

import asyncio
import random

import pytest

from headrace.coordination.quorum.snapshot_policy import SnapshotPolicy
from headrace.model.errors import KafkaError
from headrace.storage.memory_files import MemoryFiles
from quorum_nodes import Nodes, creation

pytestmark = pytest.mark.slow

ROUNDS = 6
CLIENTS = 3
PATIENCE_S = 5.0
"""How long a client waits for an answer before it asks for something else."""


class Client:
    """Creates topics until it is told to stop, and remembers which it was told are there."""

    def __init__(self, name, nodes):
        self.name = name
        self.nodes = nodes
        self.created = set()
        self.stopped = False

    async def work(self):
        """Create one after the other."""
        number = 0
        while not self.stopped:
            number += 1
            topic = f"{self.name}-{number}"
            try:
                await asyncio.wait_for(self.nodes.run(creation(topic)), PATIENCE_S)
            except (KafkaError, TimeoutError):
                continue
            self.created.add(topic)


async def crash(nodes, chance, victim):
    """End one node, mostly by pulling its plug."""
    if chance.random() < 0.25:
        await victim.stop()
    else:
        victim.quorum.abandon()
        victim.files.power_cut(random.Random(chance.random()))
        await victim.kill()


async def storm(seed):
    """Let clients work while nodes come and go."""
    chance = random.Random(seed)
    nodes = Nodes(3, lambda _: MemoryFiles(), lambda _: "/data", segment_bytes=2000)
    nodes.options["snapshots"] = SnapshotPolicy(
        bytes_between=chance.choice([1, 3000]),
        interval_ms=0,
        retention_bytes=chance.choice([1, 10**9]),
        retention_ms=-1,
    )
    async with nodes:
        await nodes.start()
        clients = [Client(f"client-{n}", nodes) for n in range(CLIENTS)]
        working = [asyncio.create_task(client.work()) for client in clients]
        for _ in range(ROUNDS):
            await nodes.create(f"calm-{chance.random()}")
            victims = chance.sample(nodes.all, chance.choice([1, 1, 2, 3]))
            for victim in victims:
                await crash(nodes, chance, victim)
            for victim in victims:
                await nodes.start(victim.id)
        for client in clients:
            client.stopped = True
        await asyncio.gather(*working)

        assert 3 == len(nodes.running)
        assert await nodes.agree()
        created = set().union(*(client.created for client in clients))
        assert created <= set(nodes[1].quorum.metadata.topics)
        assert len(created) > ROUNDS


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_answered_is_lost(seed):
    """Do all nodes agree after crashes and power cuts, and has every topic that was answered stayed?"""
    asyncio.run(storm(seed))
