"""What the pages about brokers show: who is there, what each leads and holds, and how the controllers stand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.admin_values import (
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    LogDirDescription,
    QuorumDescription,
    QuorumReplica,
)
from headrace.client.fault import ClientFault
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import encode_uuid

if TYPE_CHECKING:
    from headrace.client.admin_values import ClusterDescription, TopicDescription
    from headrace.client.async_admin import AsyncKafkaAdmin
    from headrace.gateway.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """A broker, with what the cluster says of it."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    leaders: int
    replicas: int
    behind: int
    """Replicas of it that are not in sync."""
    size_bytes: int | None
    """None if it does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDetail:
    """One broker from near by."""

    broker: BrokerView
    log_dirs: tuple[LogDirDescription, ...]
    configs: tuple[ConfigEntry, ...]


async def load_brokers(services: Services) -> list[BrokerView]:
    """All brokers by their ids; one that does not answer is there without its size."""
    admin = services.admin
    cluster, topics, controller = await asyncio.gather(
        admin.describe_cluster(), admin.describe_topics(), _controller(admin)
    )
    held = await asyncio.gather(*(_log_dirs(admin, one.node_id) for one in cluster.brokers))
    sizes = {
        one.node_id: None if directories is None else _size(directories)
        for one, directories in zip(cluster.brokers, held, strict=True)
    }
    return broker_views(cluster, topics, controller=controller, sizes=sizes)


def broker_views(
    cluster: ClusterDescription,
    topics: Sequence[TopicDescription],
    *,
    controller: int | None,
    sizes: dict[int, int | None],
) -> list[BrokerView]:
    """Brokers with what is counted on them."""
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    behind: Counter[int] = Counter()
    for topic in topics:
        for one in topic.partitions:
            leaders[one.leader] += 1
            replicas.update(one.replicas)
            behind.update(set(one.replicas) - set(one.isr))
    return [
        BrokerView(
            node_id=one.node_id,
            host=one.host,
            port=one.port,
            rack=one.rack,
            is_controller=one.node_id == (cluster.controller_id if controller is None else controller),
            leaders=leaders[one.node_id],
            replicas=replicas[one.node_id],
            behind=behind[one.node_id],
            size_bytes=sizes.get(one.node_id),
        )
        for one in sorted(cluster.brokers, key=lambda broker: broker.node_id)
    ]


async def load_broker(services: Services, node_id: int) -> BrokerDetail:
    """One broker; KafkaError if there is none of that number."""
    found = {one.node_id: one for one in await load_brokers(services)}
    if node_id not in found:
        known = ", ".join(map(str, found))
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"There is no broker {node_id} here; there are {known}.")
    resource = ConfigResource(ConfigResourceType.BROKER, str(node_id))
    directories, (configs,) = await asyncio.gather(
        _log_dirs(services.admin, node_id), services.admin.describe_configs([resource])
    )
    return BrokerDetail(
        broker=found[node_id],
        log_dirs=tuple(directories or ()),
        configs=tuple(sorted(configs.values(), key=lambda one: one.name)),
    )


async def _controller(admin: AsyncKafkaAdmin) -> int | None:
    """Who leads the quorum; brokers name just any broker as the controller. None where nobody may ask."""
    try:
        return (await admin.describe_metadata_quorum()).leader_id
    except (KafkaError, ClientFault):
        return None


async def _log_dirs(admin: AsyncKafkaAdmin, node_id: int) -> list[LogDirDescription] | None:
    try:
        return (await admin.describe_log_dirs([node_id]))[node_id]
    except (KafkaError, ClientFault):
        return None


def _size(directories: Sequence[LogDirDescription]) -> int:
    return sum(replica.size_bytes for one in directories for replica in one.replicas)


# --- the quorum


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumRow:
    """A node of the quorum, beside its leader."""

    node_id: int
    role: str
    log_end_offset: int
    lag: int
    fetched_ms: int | None
    """How long ago it asked last; None for the leader, and where it is not known."""
    caught_up_ms: int | None
    directory_id: str | None
    """None of voters that a settings file names, which have none."""
    endpoints: str


def quorum_rows(quorum: QuorumDescription, now_ms: int) -> list[QuorumRow]:
    """The leader first, then those with a vote, then those without."""
    leader = next((one for one in quorum.voters if one.node_id == quorum.leader_id), None)
    end = leader.log_end_offset if leader is not None else quorum.high_watermark
    rows = [_quorum_row(one, "leader" if one is leader else "voter", end, now_ms) for one in quorum.voters]
    rows += [_quorum_row(one, "observer", end, now_ms) for one in quorum.observers]
    return sorted(rows, key=lambda row: (("leader", "voter", "observer").index(row.role), row.node_id))


def _quorum_row(replica: QuorumReplica, role: str, end: int, now_ms: int) -> QuorumRow:
    def ago(at_ms: int) -> int | None:
        return None if at_ms < 0 or role == "leader" else max(now_ms - at_ms, 0)

    return QuorumRow(
        node_id=replica.node_id,
        role=role,
        log_end_offset=replica.log_end_offset,
        lag=max(end - replica.log_end_offset, 0),
        fetched_ms=ago(replica.last_fetch_ms),
        caught_up_ms=ago(replica.last_caught_up_ms),
        directory_id=encode_uuid(replica.directory_id) if replica.directory_id.int else None,
        endpoints=", ".join(replica.endpoints),
    )
