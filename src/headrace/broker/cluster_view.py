"""The cluster as clients are told of it: who serves where, who leads, whom to ask for changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.features import KRAFT_VERSION
from headrace.cores.controller.placement import is_online
from headrace.model.metadata_records import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    from headrace.broker.broker import Broker
    from headrace.cores.metadata import PartitionState, Topic
    from headrace.model.metadata_records import BrokerEndpoint, ControllerEndpoint

    EndpointT = TypeVar("EndpointT", BrokerEndpoint, ControllerEndpoint)


class ToldNode(NamedTuple):
    """A node as a client of one listener reaches it."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class ClusterView:
    """What one node's metadata says of the cluster's nodes."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def live_brokers(self) -> list[int]:
        """Ids of the brokers that serve."""
        return sorted(node for node, one in self._broker.metadata.brokers.items() if not one.fenced)

    @property
    def controller_id(self) -> int:
        """The broker that clients take for the controller: the one that is asked.

        Every broker hands on what is the active controller's to decide, so that any that lives will do (KIP-590);
        Kafka names one by chance. Of this one it is certain, also in the seconds after the active controller's death.
        """
        return self._broker.node_id

    @property
    def features(self) -> dict[str, int]:
        """The levels the cluster runs at; that of the quorum is 1 where its log names the voters (KIP-853)."""
        levels = self._broker.metadata.features
        return levels if self._broker.quorum.settings.static_voters is not None else {**levels, KRAFT_VERSION: 1}

    def brokers(self, listener: str, *, with_fenced: bool = False) -> Iterator[ToldNode]:
        """Every broker that a client of this listener can reach, in the order of their ids."""
        for node_id, one in sorted(self._broker.metadata.brokers.items()):
            endpoint = _named(one.end_points, listener)
            if endpoint is not None and (with_fenced or not one.fenced):
                yield ToldNode(node_id, endpoint.host, endpoint.port, one.rack, one.fenced)

    def controllers(self, listener: str) -> Iterator[ToldNode]:
        """Every registered controller that a client of this listener can reach."""
        for node_id, one in sorted(self._broker.metadata.controllers.items()):
            endpoint = _named(one.end_points, listener)
            if endpoint is not None:
                yield ToldNode(node_id, endpoint.host, endpoint.port, None)

    def leads(self, topic: Topic, state: PartitionState) -> bool:
        """Whether the leader the metadata names serves the partition yet; its log may still be in the making."""
        if state.leader == NO_LEADER:
            return False
        if state.leader == self._broker.node_id:
            return self._broker.partitions.find((topic.topic_id, state.index)) is not None
        leader = self._broker.metadata.brokers.get(state.leader)
        return leader is not None and not leader.fenced

    def offline_replicas(self, state: PartitionState) -> tuple[int, ...]:
        """Replicas that cannot be read now: their brokers are fenced or gone, or their log dirs failed."""
        offline = []
        for place, node_id in enumerate(state.replicas):
            one = self._broker.metadata.brokers.get(node_id)
            directory = state.directories[place] if place < len(state.directories) else None
            if one is None or one.fenced or (directory is not None and not is_online(one, directory)):
                offline.append(node_id)
        return tuple(offline)


def _named(endpoints: Iterable[EndpointT], listener: str) -> EndpointT | None:
    return next((one for one in endpoints if one.name == listener), None)
