"""Clusters and brokers in the shapes of REST v3."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from headrace.client.admin_values import BrokerDescription
from headrace.gateway.problem import BROKER_NOT_FOUND, Problem
from headrace.gateway.route import Call, Route
from headrace.gateway.v3_address import (
    CLUSTER,
    Address,
    ListMetadata,
    Page,
    Related,
    Resource,
    cluster_address,
    cluster_of,
    clusters_url,
    turn,
)

ClusterId = Annotated[str, Meta(examples=["Rk5pWl2vTbGk0000000001"])]
BrokerId = Annotated[int, Meta(examples=[1])]


class KafkaCluster(Resource, frozen=True, kw_only=True):
    """The cluster behind this gateway."""

    cluster_id: ClusterId
    controller: Related | None
    acls: Related
    brokers: Related
    broker_configs: Related
    consumer_groups: Related
    topics: Related
    partition_reassignments: Related


class KafkaClusterList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """The one cluster behind this gateway, as a list."""

    metadata: ListMetadata
    data: list[KafkaCluster]


class KafkaBroker(Resource, frozen=True, kw_only=True):
    """A broker."""

    cluster_id: ClusterId
    broker_id: BrokerId
    host: Annotated[str, Meta(examples=["localhost"])]
    port: Annotated[int, Meta(examples=[9092])]
    rack: str | None
    configs: Related
    partition_replicas: Related


class KafkaBrokerList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """The brokers, by their ids."""

    metadata: ListMetadata
    data: list[KafkaBroker]


async def _clusters(call: Call) -> KafkaClusterList:
    return KafkaClusterList(metadata=ListMetadata(self=clusters_url(call)), data=[await _described(call)])


async def _cluster(call: Call) -> KafkaCluster:
    await cluster_of(call)
    return await _described(call)


async def _described(call: Call) -> KafkaCluster:
    found = await call.services.admin.describe_cluster()
    here = cluster_address(call, found.cluster_id)
    return KafkaCluster(
        metadata=here.metadata,
        cluster_id=found.cluster_id,
        controller=broker_address(here, found.controller_id).related() if found.controller_id >= 0 else None,
        acls=here.related("/acls"),
        brokers=here.related("/brokers"),
        broker_configs=here.related("/broker-configs"),
        consumer_groups=here.related("/consumer-groups"),
        topics=here.related("/topics"),
        partition_reassignments=here.related("/topics/-/partitions/-/reassignment"),
    )


async def _brokers(call: Call) -> KafkaBrokerList:
    here = await cluster_of(call)
    found = sorted((await call.services.admin.describe_cluster()).brokers, key=lambda one: one.node_id)
    shown, metadata = turn(call, f"{here.url}/brokers", found, lambda one: [one.node_id])
    return KafkaBrokerList(metadata=metadata, data=[_broker(call, here, one) for one in shown])


async def _one_broker(call: Call) -> KafkaBroker:
    here = await cluster_of(call)
    return _broker(call, here, await broker_of(call))


def _broker(call: Call, here: Address, broker: BrokerDescription) -> KafkaBroker:
    own = broker_address(here, broker.node_id)
    return KafkaBroker(
        metadata=own.metadata,
        cluster_id=call.path["cluster_id"],
        broker_id=broker.node_id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        configs=own.related("/configs"),
        partition_replicas=own.related("/partition-replicas"),
    )


def broker_address(cluster: Address, broker_id: int) -> Address:
    """The address of a broker."""
    return cluster.under("brokers", "broker", broker_id)


async def broker_of(call: Call) -> BrokerDescription:
    """The broker in the path; Problem(404) if it is not there."""
    broker_id: int = call.path["broker_id"]
    for one in (await call.services.admin.describe_cluster()).brokers:
        if one.node_id == broker_id:
            return one
    raise Problem(404, BROKER_NOT_FOUND, f"There is no broker {broker_id} in this cluster.")


ROUTES = (
    Route(
        method="GET",
        path="/v3/clusters",
        handle=_clusters,
        tag="v3 cluster",
        summary="The clusters, of which there is one",
        answer=KafkaClusterList,
    ),
    Route(
        method="GET",
        path=CLUSTER,
        handle=_cluster,
        tag="v3 cluster",
        summary="The cluster",
        answer=KafkaCluster,
    ),
    Route(
        method="GET",
        path=f"{CLUSTER}/brokers",
        handle=_brokers,
        tag="v3 cluster",
        summary="The brokers",
        query=Page,
        answer=KafkaBrokerList,
    ),
    Route(
        method="GET",
        path=f"{CLUSTER}/brokers/{{broker_id}}",
        handle=_one_broker,
        tag="v3 cluster",
        summary="A broker",
        answer=KafkaBroker,
    ),
)
