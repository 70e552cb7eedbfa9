"""What the Overview shows: brokers, health, and how much there is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.fault import NotServed
from headrace.client.health import Health, look

if TYPE_CHECKING:
    from headrace.client.admin_values import ClusterDescription
    from headrace.gateway.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster at a glance."""

    cluster: ClusterDescription
    health: Health
    topics: int
    """Those that people made."""
    partitions: int
    """Of those topics."""
    groups: int


async def load_cluster(services: Services) -> ClusterView:
    """Ask for all of it."""
    cluster, health, metadata, groups = await asyncio.gather(
        services.admin.describe_cluster(),
        look(services.cluster),
        services.cluster.metadata(),
        _groups(services),
    )
    topics = [one for one in metadata.topics if not one.is_internal and not (one.name or "").startswith("__")]
    return ClusterView(
        cluster=cluster,
        health=health,
        topics=len(topics),
        partitions=sum(len(one.partitions) for one in topics),
        groups=groups,
    )


async def _groups(services: Services) -> int:
    try:
        return len(await services.admin.list_groups())
    except NotServed:
        return 0
