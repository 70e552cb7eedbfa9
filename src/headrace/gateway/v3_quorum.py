"""The controllers, in a shape of our own beside those of REST v3."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from headrace.client.admin_values import QuorumReplica
from headrace.gateway.route import Call, Route
from headrace.gateway.v3_address import CLUSTER, Metadata, Resource, cluster_of
from headrace.gateway.v3_clusters import ClusterId
from headrace.gateway.v3_partitions import Offset
from headrace.model.ids import encode_uuid

NodeId = Annotated[int, Meta(examples=[1])]
Time = Annotated[int, Meta(description="Milliseconds since 1970; null where it is not known.")]


class QuorumNodeData(Struct, frozen=True, kw_only=True):
    """A node with a copy of the metadata log."""

    node_id: NodeId
    directory_id: Annotated[str, Meta(examples=["GATTVRkjQ5WwX9VyCwtZDQ"])]
    endpoints: list[Annotated[str, Meta(examples=["CONTROLLER://localhost:9093"])]]
    log_end_offset: Offset
    last_fetch_timestamp: Time | None
    last_caught_up_timestamp: Time | None


class KafkaMetadataQuorum(Resource, frozen=True, kw_only=True):
    """Who leads the controllers, who votes, who only reads, and how far each has got."""

    cluster_id: ClusterId
    leader_id: NodeId
    leader_epoch: Annotated[int, Meta(examples=[7])]
    high_watermark: Offset
    voters: list[QuorumNodeData]
    observers: list[QuorumNodeData]


async def _get(call: Call) -> KafkaMetadataQuorum:
    cluster = await cluster_of(call)
    found = await call.services.admin.describe_metadata_quorum()
    return KafkaMetadataQuorum(
        metadata=Metadata(self=f"{cluster.url}/metadata-quorum", resource_name=f"{cluster.name}/metadata-quorum"),
        cluster_id=call.path["cluster_id"],
        leader_id=found.leader_id,
        leader_epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        voters=[_node(one) for one in found.voters],
        observers=[_node(one) for one in found.observers],
    )


def _node(one: QuorumReplica) -> QuorumNodeData:
    return QuorumNodeData(
        node_id=one.node_id,
        directory_id=encode_uuid(one.directory_id),
        endpoints=list(one.endpoints),
        log_end_offset=one.log_end_offset,
        last_fetch_timestamp=_known(one.last_fetch_ms),
        last_caught_up_timestamp=_known(one.last_caught_up_ms),
    )


def _known(at_ms: int) -> int | None:
    return None if at_ms < 0 else at_ms


ROUTES = (
    Route(
        method="GET",
        path=f"{CLUSTER}/metadata-quorum",
        handle=_get,
        tag="v3 cluster",
        summary="The quorum of controllers",
        detail="What kafka-metadata-quorum describe tells.",
        answer=KafkaMetadataQuorum,
        problems=(403,),
    ),
)
