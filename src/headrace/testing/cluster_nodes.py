"""The nodes of a test's cluster: their ids, addresses, directories and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from headrace.model.ids import encode_uuid, usable_uuid
from headrace.settings.cluster_size import replication_settings, voters_among
from headrace.storage.files import RealFiles
from headrace.storage.meta_properties import MetaProperties, read_meta, write_meta
from headrace.testing.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# A test knows when its consumers are there; waiting for more would only cost it three seconds.
_ALWAYS = {"group.initial.rebalance.delay.ms": "0"}

_QUICK = {
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.request.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "100",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}
"""A cluster of several that notices within two seconds what happened to one of them, and has few topics to make."""

_EAGER = {"controller.quorum.election.timeout.ms": "200"}
"""One node that asks for votes soon spares a new cluster the wait until anybody does.

It waits as long for the votes, and those who give them write that down first: with 20 ms here a cluster whose disk
takes 30 ms for a write began elections without end.
"""


class ClusterNodes:
    """What each node of a cluster is started with."""

    def __init__(self, nodes: Sequence[int], settings: Mapping[str, str]) -> None:
        self.ports: dict[int, int] = {}
        """Where clients reach each node, from its first start on."""
        self._nodes = tuple(nodes)
        self._settings = settings
        self._voters = voters_among(nodes)
        self._controllers: dict[int, int] = {}
        self.choose_ports()

    def choose_ports(self) -> bool:
        """Choose new ports for those that must be known before anybody starts; whether there are any to choose."""
        if len(self._nodes) == 1 or self.ports:
            return False
        self._controllers = dict(zip(self._voters, free_ports(len(self._voters)), strict=True))
        return True

    def format(self, directory: Path) -> None:
        """Tell the log directories of several nodes that they belong together; one node alone tells itself."""
        if len(self._nodes) == 1:
            return
        files = RealFiles()
        metas = {node: read_meta(files, str(_log_dir(directory, node))) for node in self._nodes}
        cluster_id = next((meta.cluster_id for meta in metas.values() if meta), encode_uuid(_fresh_id()))
        for node, meta in metas.items():
            if meta is None:
                path = _log_dir(directory, node)
                path.mkdir(parents=True, exist_ok=True)
                new = MetaProperties(cluster_id=cluster_id, node_id=node, directory_id=_fresh_id())
                write_meta(files, str(path), new)

    def properties(self, node: int, directory: Path) -> dict[str, str]:
        """The settings of a node; the test's own come last."""
        port = self.ports.get(node, 0)
        if len(self._nodes) == 1:
            return {
                "process.roles": "broker,controller",
                "node.id": str(node),
                "controller.quorum.voters": f"{node}@127.0.0.1:9093",
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0",
                "log.dirs": str(directory),
                **_ALWAYS,
                **self._settings,
            }
        controller = self._controllers.get(node)
        mine = [f"PLAINTEXT://127.0.0.1:{port}", *([f"CONTROLLER://127.0.0.1:{controller}"] if controller else [])]
        return {
            "process.roles": "broker,controller" if controller else "broker",
            "node.id": str(node),
            "controller.quorum.voters": ",".join(f"{one}@127.0.0.1:{at}" for one, at in self._controllers.items()),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(mine),
            "log.dirs": str(_log_dir(directory, node)),
            **_ALWAYS,
            **_QUICK,
            **(_EAGER if node == self._nodes[0] else {}),
            **replication_settings(len(self._nodes)),
            **self._settings,
        }


def _log_dir(directory: Path, node: int) -> Path:
    return directory / f"node-{node}"


def _fresh_id() -> UUID:
    while not usable_uuid(value := uuid4()):
        pass
    return value
