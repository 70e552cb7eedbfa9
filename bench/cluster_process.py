"""Three brokers that are one cluster, each a process of its own, combined broker and controller."""

import random
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from uuid import uuid4

from headrace.model.ids import encode_uuid, usable_uuid
from headrace.settings.cluster_size import replication_settings
from headrace.testing.broker_process import BrokerProcess

NODES: Final = (1, 2, 3)
Maker = Callable[..., BrokerProcess]

# Below those the kernel gives to clients: none of them can take the port of a node that is down.
_PORTS: Final = range(15_000, 32_000)


class ClusterProcess:
    """The nodes of one cluster, looked at as if they were one broker."""

    def __init__(self, make: Maker, directory: Path, *, settings: dict[str, str] | None = None) -> None:
        self.directory = directory
        ports = _free_ports(2 * len(NODES))
        controllers = dict(zip(NODES, ports[len(NODES) :], strict=True))
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in controllers.items())
        self.nodes: dict[int, BrokerProcess] = {}
        for node, port in zip(NODES, ports, strict=False):
            own = {
                "node.id": str(node),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controllers[node]}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
                **replication_settings(len(NODES)),
                **(settings or {}),
            }
            broker = make(directory / f"node-{node}", settings=own)
            broker.port = port
            self.nodes[node] = broker

    @property
    def name(self) -> str:
        """Whose brokers they are."""
        return self.nodes[NODES[0]].name

    @property
    def bootstrap(self) -> str:
        """Every node, whether it runs or not."""
        return ",".join(broker.bootstrap for broker in self.nodes.values())

    @property
    def pids(self) -> str:
        """The process of each node, as the Java programs that end one of them take them."""
        return ",".join(f"{node}={broker.pid}" for node, broker in self.nodes.items())

    def format(self) -> None:
        """Prepare all nodes for one new cluster."""
        cluster_id = _fresh_id()
        for broker in self.nodes.values():
            broker.format(cluster_id)

    def start(self) -> None:
        """Start all at once, as none serves before most are there, and wait until all answer."""
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            list(threads.map(lambda broker: broker.start(), self.nodes.values()))

    def start_again(self, node: int) -> None:
        """Bring back a node that somebody else has ended."""
        broker = self.nodes[node]
        broker.stop()
        broker.start()

    def cpu_seconds(self) -> float:
        """What all nodes together have used so far."""
        return sum(broker.cpu_seconds() for broker in self.nodes.values())

    def pss_bytes(self) -> int:
        """The memory of all nodes together; what they share counts once."""
        return sum(broker.memory().pss_bytes for broker in self.nodes.values())

    def remove(self) -> None:
        """End all nodes, whatever state they are in, and delete what they wrote."""
        for broker in self.nodes.values():
            broker.remove()


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, 50 * count):
        with socket.socket() as probe:
            if len(found) < count and probe.connect_ex(("127.0.0.1", port)) != 0:
                found.append(port)
    assert len(found) == count, "no free ports"
    return found


def _fresh_id() -> str:
    """An id that is no option: one that begins with a dash would be taken for one by somebody."""
    while not usable_uuid(value := uuid4()):
        pass
    return encode_uuid(value)
