"""Asking a cluster about its nodes: what lies in their log directories, and how the controllers stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.client.admin_values import LogDirDescription, QuorumDescription, QuorumReplica, ReplicaSize
from headrace.client.answers import check, partitions_of
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headrace.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

DESCRIBE_LOG_DIRS, DESCRIBE_QUORUM = 35, 55
_METADATA_LOG = "__cluster_metadata"


class BrokerAdmin:
    """The part of the admin client that is about nodes."""

    _cluster: Cluster

    async def describe_log_dirs(self, brokers: Iterable[int] | None = None) -> dict[int, list[LogDirDescription]]:
        """The log directories of some brokers, or of all, with the replicas in them."""
        found = {}
        for node_id in await self._cluster.brokers() if brokers is None else brokers:
            answer = await self._cluster.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None), node_id=node_id)
            check(f"broker {node_id}", answer)
            found[node_id] = [_log_dir(one) for one in answer.results]
        return found

    async def describe_metadata_quorum(self) -> QuorumDescription:
        """Who leads the controllers, who votes, who follows, and how far each has got."""
        return await self._cluster.persist(self._quorum)

    async def _quorum(self) -> QuorumDescription:
        asked = RequestTopicData(topic_name=_METADATA_LOG, partitions=(RequestPartitionData(partition_index=0),))
        answer = await self._cluster.ask(DESCRIBE_QUORUM, DescribeQuorumRequest(topics=(asked,)))
        check("the quorum", answer)
        ((partition,),) = (topic.partitions for topic in answer.topics)
        check("the quorum", partition)
        endpoints = {node.node_id: tuple(map(_endpoint, node.listeners)) for node in answer.nodes}
        return QuorumDescription(
            leader_id=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            high_watermark=partition.high_watermark,
            voters=tuple(_replica(one, endpoints) for one in partition.current_voters),
            observers=tuple(_replica(one, endpoints) for one in partition.observers),
        )


def _log_dir(answer: Any) -> LogDirDescription:
    return LogDirDescription(
        path=answer.log_dir,
        error=ErrorCode(answer.error_code).name if answer.error_code else None,
        total_bytes=answer.total_bytes,
        usable_bytes=answer.usable_bytes,
        replicas=tuple(
            ReplicaSize(
                partition=place, size_bytes=one.partition_size, offset_lag=one.offset_lag, is_future=one.is_future_key
            )
            for place, one in partitions_of(answer)
        ),
    )


def _replica(state: Any, endpoints: dict[int, tuple[str, ...]]) -> QuorumReplica:
    return QuorumReplica(
        node_id=state.replica_id,
        directory_id=state.replica_directory_id,
        log_end_offset=state.log_end_offset,
        last_fetch_ms=state.last_fetch_timestamp,
        last_caught_up_ms=state.last_caught_up_timestamp,
        endpoints=endpoints.get(state.replica_id, ()),
    )


def _endpoint(listener: Any) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{listener.name}://{host}:{listener.port}"
