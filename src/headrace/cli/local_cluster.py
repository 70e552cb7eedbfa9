"""A cluster of several nodes on this machine, as `headrace start -n` makes it.

    DIRECTORY/node-1/server.properties     what the node is, for people to read and change
    DIRECTORY/node-1/data/                 what it keeps
    DIRECTORY/node-1/server.log            what it says

The directories are the cluster: what is written there is started again. A node that has left keeps its directory, but
its settings have another name.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from headrace.cli.nodes import NodePlan, metrics_settings
from headrace.model.ids import encode_uuid, usable_uuid
from headrace.settings.cluster_size import replication_settings, voters_among
from headrace.settings.properties import load_properties, write_properties
from headrace.storage.files import RealFiles
from headrace.storage.meta_properties import MetaProperties, read_meta, write_meta

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.cli.running import RunningServer

PORT = 9092
PORT_MAX = 65_534
_PROPERTIES = "server.properties"
_LEFT = "server.properties.left"
_NODE = re.compile(r"node-([1-9][0-9]{0,8})\Z")


class NoPortFree(Exception):
    """There are no two neighbouring ports left for a node."""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """The nodes in a directory."""

    directory: Path

    def nodes(self) -> list[int]:
        """The ids of the nodes, in order; none where no cluster is."""
        return sorted(node for node in self._known() if self._config(node).is_file())

    def plans(self, nodes: Iterable[int] | None = None) -> list[NodePlan]:
        """The nodes as they are started."""
        return [self.plan(node) for node in (self.nodes() if nodes is None else nodes)]

    def plan(self, node: int) -> NodePlan:
        """One node as it is started."""
        return NodePlan(config=self._config(node), overrides={}, log=self._config(node).with_name("server.log"))

    def is_voter(self, node: int) -> bool:
        """Whether a node votes on metadata, so that the cluster cannot do without its address."""
        return "controller" in load_properties(self._config(node)).get("process.roles", "")

    def make(self, ports: Sequence[int]) -> None:
        """Write the settings of a new cluster, one node for each port; the controller of a node has the next port."""
        nodes = range(1, len(ports) + 1)
        at = dict(zip(nodes, ports, strict=True))
        voters = ",".join(f"{node}@localhost:{at[node] + 1}" for node in voters_among(nodes))
        cluster_id = encode_uuid(_fresh_id())
        for node, port in at.items():
            self._format(node, cluster_id)
            self._write(node, port, voters, replication_settings(len(ports)), votes=node in voters_among(nodes))

    def add(self, port: int) -> int:
        """Write the settings of one node more, which has the ways of the others; its id."""
        known = self.nodes()
        node = max(self._known()) + 1
        first = load_properties(self._config(known[0]))
        copies = {name: first[name] for name in replication_settings(1) if name in first}
        meta = read_meta(RealFiles(), str(self._data(known[0])))
        assert meta is not None, "a node of a cluster is formatted"
        self._format(node, meta.cluster_id)
        self._write(node, port, first["controller.quorum.voters"], copies, votes=False)
        return node

    def leave(self, node: int) -> None:
        """Take a node out of the cluster; its directory stays."""
        self._config(node).rename(self._config(node).with_name(_LEFT))

    def _known(self) -> list[int]:
        """Every node there ever was: an id is not given twice."""
        if not self.directory.is_dir():
            return []
        return [int(match[1]) for path in self.directory.iterdir() if (match := _NODE.match(path.name))]

    def _config(self, node: int) -> Path:
        return self.directory / f"node-{node}" / _PROPERTIES

    def _data(self, node: int) -> Path:
        return self.directory / f"node-{node}" / "data"

    def _format(self, node: int, cluster_id: str) -> None:
        path = self._data(node)
        path.mkdir(parents=True, exist_ok=True)
        meta = MetaProperties(cluster_id=cluster_id, node_id=node, directory_id=_fresh_id())
        write_meta(RealFiles(), str(path), meta)

    def _write(self, node: int, port: int, voters: str, copies: dict[str, str], *, votes: bool) -> None:
        names = ["PLAINTEXT", *(["CONTROLLER"] if votes else [])]
        at = {"PLAINTEXT": port, "CONTROLLER": port + 1}
        properties = {
            "process.roles": "broker,controller" if votes else "broker",
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "listeners": ",".join(f"{name}://:{at[name]}" for name in names),
            "advertised.listeners": ",".join(f"{name}://localhost:{at[name]}" for name in names),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._data(node)),
            "group.initial.rebalance.delay.ms": "0",
            **metrics_settings(port),
            **copies,
        }
        comment = f"Node {node} of a cluster that `headrace start -n` made; changes count from its next start on."
        write_properties(self._config(node), properties, comment=comment)


def cluster_of(server: RunningServer) -> LocalCluster | None:
    """The cluster a running server belongs to, if `headrace start -n` made it."""
    data = Path(server.data)
    if data.name != "data" or not _NODE.match(data.parent.name):
        return None
    cluster = LocalCluster(data.parents[1])
    return cluster if server.node_id in cluster.nodes() else None


def stopped_nodes(servers: Sequence[RunningServer]) -> list[RunningServer]:
    """The nodes that belong to what runs, and do not run themselves."""
    running = {(one.node_id, one.data) for one in servers}
    clusters = {cluster.directory: cluster for one in servers if (cluster := cluster_of(one))}
    all_nodes = [plan.expected() for cluster in clusters.values() for plan in cluster.plans()]
    return [replace(one, pid=0) for one in all_nodes if (one.node_id, one.data) not in running]


def free_ports(count: int, *, first: int = PORT) -> list[int]:
    """The first ports from `first` on, every other one, that are free together with the next one."""
    found: list[int] = []
    port = first
    while len(found) < count:
        if port > PORT_MAX:
            raise NoPortFree
        if is_free(port) and is_free(port + 1):
            found.append(port)
        port += 2
    return found


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    try:
        with socket.create_server(("", port)):
            return True
    except OSError:
        return False


def _fresh_id() -> UUID:
    while not usable_uuid(value := uuid4()):
        pass
    return value
