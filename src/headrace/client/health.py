"""Is a cluster well: every partition led and fully replicated, every log directory there?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.client.fault import ClientFault, NotServed
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_cluster import DescribeClusterRequest
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

DESCRIBE_LOG_DIRS, DESCRIBE_CLUSTER = 35, 60
_TELLS_FENCED = 2
"""The version of DescribeCluster that knows of brokers which do not serve (KIP-1073)."""


@dataclass(slots=True, kw_only=True)
class Health:
    """What was found; nothing in the lists means that all is well."""

    unreachable: str = ""
    brokers: list[int] = field(default_factory=list)
    silent_brokers: list[int] = field(default_factory=list)
    topics: int = 0
    partitions: int = 0
    leaderless: list[str] = field(default_factory=list)
    under_replicated: list[str] = field(default_factory=list)
    offline_log_dirs: list[str] = field(default_factory=list)
    gateways: list[str] = field(default_factory=list)
    """Those of this machine before this cluster, where somebody looked at them."""
    silent_gateways: list[str] = field(default_factory=list)

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to complain of."""
        return not (
            self.unreachable
            or self.silent_brokers
            or self.leaderless
            or self.under_replicated
            or self.offline_log_dirs
            or self.silent_gateways
        )


async def look(cluster: Cluster) -> Health:
    """Ask the cluster how it is."""
    metadata = await cluster.metadata()
    health = Health(brokers=sorted(broker.node_id for broker in metadata.brokers), topics=len(metadata.topics))
    for topic in metadata.topics:
        for partition in topic.partitions:
            place = f"{topic.name}-{partition.partition_index}"
            health.partitions += 1
            if partition.leader_id < 0:
                health.leaderless.append(place)
            if len(partition.isr_nodes) < len(partition.replica_nodes):
                health.under_replicated.append(place)
    health.silent_brokers += await _fenced(cluster)
    for node_id in health.brokers:
        await _look_at_disks(cluster, node_id, health)
    return health


async def _fenced(cluster: Cluster) -> list[int]:
    """Brokers that belong to the cluster and do not serve, as far as this cluster tells."""
    request = DescribeClusterRequest(include_fenced_brokers=True)
    try:
        channel = await cluster.any_channel()
        if channel.versions.get(DESCRIBE_CLUSTER, (0, 0))[1] < _TELLS_FENCED:
            return []
        answer = await cluster.ask(DESCRIBE_CLUSTER, request)
    except NotServed:
        return []
    return sorted(broker.broker_id for broker in answer.brokers if broker.is_fenced)


async def _look_at_disks(cluster: Cluster, node_id: int, health: Health) -> None:
    try:
        answer = await cluster.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=()), node_id=node_id)
    except NotServed:
        return
    except (ClientFault, KafkaError):
        if node_id not in health.silent_brokers:
            health.silent_brokers.append(node_id)
        return
    health.offline_log_dirs += [
        f"{directory.log_dir} (broker {node_id})"
        for directory in answer.results
        if directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    ]
