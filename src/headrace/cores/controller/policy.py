"""Settings that decide about leaders: of the topic, else of the cluster, else of the controller's own file."""

from __future__ import annotations

from msgspec import Struct

from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC, Metadata, Topic

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
ELR_VERSION = "eligible.leader.replicas.version"
"""The feature that keeps eligible leader replicas (KIP-966)."""


def elr_enabled(metadata: Metadata) -> bool:
    """Whether eligible leader replicas are kept in this cluster."""
    return metadata.features.get(ELR_VERSION, 0) > 0


class Policy(Struct, frozen=True, kw_only=True):
    """What the active controller's file says, for topics about which nobody said otherwise."""

    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    node_id: int = -1
    """The controller itself: settings made for this node at runtime go before those of the whole cluster."""

    def min_isr(self, metadata: Metadata, topic: Topic) -> int:
        """How many replicas in sync a topic wants; no more than it has replicas."""
        told = self._told(metadata, topic.name, MIN_INSYNC_REPLICAS)
        wanted = self.min_insync_replicas if told is None else int(told)
        return min(wanted, len(topic.partitions[0].replicas))

    def is_unclean(self, metadata: Metadata, topic: Topic) -> bool:
        """Whether a topic would rather lose records than stand still."""
        told = self._told(metadata, topic.name, UNCLEAN_LEADER_ELECTION)
        return self.unclean_leader_election if told is None else told.lower() == "true"

    def _told(self, metadata: Metadata, topic: str, name: str) -> str | None:
        for kind, resource in ((RESOURCE_TOPIC, topic), (RESOURCE_BROKER, str(self.node_id)), (RESOURCE_BROKER, "")):
            value = metadata.configs(kind, resource).get(name)
            if value is not None:
                return value
        return None


DEFAULT_POLICY = Policy()
"""Kafka's own defaults."""
