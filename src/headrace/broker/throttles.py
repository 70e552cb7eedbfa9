"""How fast this broker's replicas may be copied: the quotas, and the settings that they follow (KIP-73, KIP-113)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.metadata import RESOURCE_TOPIC
from headrace.cores.replication.quota import ReplicationQuota

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.settings.broker import BrokerConfig

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
SECOND_MS = 1000


class Throttles:
    """The quotas of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        self.leader = _quota(config, "replication.quota")
        """What it sends to followers that are throttled."""
        self.follower = _quota(config, "replication.quota")
        """What it copies from leaders as one that is throttled."""
        self.moves = _quota(config, "alter.log.dirs.replication.quota")
        """What it copies from one of its log dirs to another."""

    def take_over_rates(self) -> None:
        """Follow the broker's settings."""
        config = self._broker.config
        self.leader.bound = config["leader.replication.throttled.rate"]
        self.follower.bound = config["follower.replication.throttled.rate"]
        self.moves.bound = config["replica.alter.log.dirs.io.max.bytes.per.second"]

    def take_over(self, topic: str) -> None:
        """Follow the settings of a topic; one that is gone has none."""
        configs = self._broker.metadata.configs(RESOURCE_TOPIC, topic)
        node_id = self._broker.node_id
        self.leader.throttle(topic, _entries(configs.get(LEADER_REPLICAS, "")), node_id)
        self.follower.throttle(topic, _entries(configs.get(FOLLOWER_REPLICAS, "")), node_id)


def _quota(config: BrokerConfig, prefix: str) -> ReplicationQuota:
    return ReplicationQuota(
        samples_max=config[f"{prefix}.window.num"], sample_ms=config[f"{prefix}.window.size.seconds"] * SECOND_MS
    )


def _entries(text: str) -> list[str]:
    """The entries of a list as it was set, which was checked then."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]
