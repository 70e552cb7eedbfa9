"""Partitions in the shapes of REST v3: replicas, where their logs begin and end, and whether they move."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from headrace.client.admin_values import PartitionDescription, Reassignment
from headrace.client.records import TopicPartition
from headrace.gateway.moment import milliseconds
from headrace.gateway.problem import PARTITION_NOT_FOUND, Problem
from headrace.gateway.route import Call, Handler, Route
from headrace.gateway.v3_address import CLUSTER, Address, ListMetadata, Page, Related, Resource, cluster_of, turn
from headrace.gateway.v3_clusters import BrokerId, ClusterId, broker_address, broker_of
from headrace.gateway.v3_topics import TopicName, all_topics, topic_address, topic_of

PartitionId = Annotated[int, Meta(examples=[0])]
Offset = Annotated[int, Meta(examples=[1042])]


class OfPartition(Resource, frozen=True, kw_only=True):
    """What everything about a partition shows."""

    cluster_id: ClusterId
    topic_name: TopicName
    partition_id: PartitionId


class KafkaPartition(OfPartition, frozen=True, kw_only=True):
    """A partition."""

    leader: Related | None
    replicas: Related
    reassignment: Related


class KafkaReplica(OfPartition, frozen=True, kw_only=True):
    """A copy of a partition on a broker."""

    broker_id: BrokerId
    is_leader: bool
    is_in_sync: bool
    broker: Related


class KafkaPartitionOffset(OfPartition, frozen=True, kw_only=True):
    """Where a partition's log begins and ends, or has a point in time; null where it was not asked for."""

    earliest_offset: Offset | None = None
    latest_offset: Annotated[Offset | None, Meta(description="Behind the last record.")] = None
    offset: Annotated[
        Offset | None, Meta(description="Of the first record at or after the timestamp; null if there is none.")
    ] = None


class KafkaReassignment(OfPartition, frozen=True, kw_only=True):
    """A partition on its way to other brokers."""

    adding_replicas: list[BrokerId]
    removing_replicas: list[BrokerId]
    replicas: Related


class KafkaPartitionList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Partitions, by number."""

    metadata: ListMetadata
    data: list[KafkaPartition]


class KafkaReplicaList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Replicas."""

    metadata: ListMetadata
    data: list[KafkaReplica]


class KafkaReassignmentList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Partitions that move."""

    metadata: ListMetadata
    data: list[KafkaReassignment]


class OffsetQuestion(Struct, frozen=True, kw_only=True):
    """Which offsets; beginning and end if nothing is said."""

    offset_type: Annotated[
        Literal["earliest", "latest"] | None, Meta(description="Only where the log begins, or only where it ends.")
    ] = None
    timestamp: Annotated[
        Annotated[datetime, Meta(tz=True)] | None,
        Meta(description="Also the first record at or after this time.", examples=["2026-01-31T12:00:00Z"]),
    ] = None


# --- partitions


async def _list(call: Call) -> KafkaPartitionList:
    cluster, topic = await cluster_of(call), call.path["topic_name"]
    found = (await topic_of(call, topic)).partitions
    url = f"{topic_address(cluster, topic).url}/partitions"
    shown, metadata = turn(call, url, found, lambda one: [one.partition])
    return KafkaPartitionList(metadata=metadata, data=[_partition(call, cluster, topic, one) for one in shown])


async def _get(call: Call) -> KafkaPartition:
    cluster = await cluster_of(call)
    return _partition(call, cluster, call.path["topic_name"], await _partition_of(call))


def _partition(call: Call, cluster: Address, topic: str, one: PartitionDescription) -> KafkaPartition:
    own = partition_address(cluster, topic, one.partition)
    leads = own.under("replicas", "replica", one.leader)
    return KafkaPartition(
        **_place(call, own, topic, one.partition),
        leader=leads.related() if one.leader >= 0 else None,
        replicas=own.related("/replicas"),
        reassignment=own.related("/reassignment"),
    )


async def _partition_of(call: Call) -> PartitionDescription:
    topic, number = call.path["topic_name"], call.path["partition_id"]
    for one in (await topic_of(call, topic)).partitions:
        if one.partition == number:
            return one
    raise Problem(404, PARTITION_NOT_FOUND, f"Topic '{topic}' has no partition {number}.")


def partition_address(cluster: Address, topic: str, number: int) -> Address:
    """The address of a partition."""
    return topic_address(cluster, topic).under("partitions", "partition", number)


def _place(call: Call, own: Address, topic: str, number: int) -> dict[str, Any]:
    return {
        "metadata": own.metadata,
        "cluster_id": call.path["cluster_id"],
        "topic_name": topic,
        "partition_id": number,
    }


# --- replicas


async def _replicas(call: Call) -> KafkaReplicaList:
    cluster, one = await cluster_of(call), await _partition_of(call)
    topic = call.path["topic_name"]
    url = f"{partition_address(cluster, topic, one.partition).url}/replicas"
    return KafkaReplicaList(
        metadata=ListMetadata(self=url),
        data=[_replica(call, cluster, topic, one, broker_id) for broker_id in one.replicas],
    )


async def _one_replica(call: Call) -> KafkaReplica:
    cluster, one = await cluster_of(call), await _partition_of(call)
    if call.path["broker_id"] not in one.replicas:
        raise Problem(404, 404, f"Broker {call.path['broker_id']} has no copy of this partition.")
    return _replica(call, cluster, call.path["topic_name"], one, call.path["broker_id"])


async def _replicas_of_broker(call: Call) -> KafkaReplicaList:
    cluster = await cluster_of(call)
    broker_id = (await broker_of(call)).node_id
    found = [
        (topic.name, one) for topic in await all_topics(call) for one in topic.partitions if broker_id in one.replicas
    ]
    url = f"{broker_address(cluster, broker_id).url}/partition-replicas"
    shown, metadata = turn(call, url, found, lambda pair: [pair[0], pair[1].partition])
    return KafkaReplicaList(
        metadata=metadata, data=[_replica(call, cluster, topic, one, broker_id) for topic, one in shown]
    )


def _replica(call: Call, cluster: Address, topic: str, one: PartitionDescription, broker_id: int) -> KafkaReplica:
    own = partition_address(cluster, topic, one.partition).under("replicas", "replica", broker_id)
    return KafkaReplica(
        **_place(call, own, topic, one.partition),
        broker_id=broker_id,
        is_leader=broker_id == one.leader,
        is_in_sync=broker_id in one.isr,
        broker=broker_address(cluster, broker_id).related(),
    )


# --- offsets


async def _offset(call: Call) -> KafkaPartitionOffset:
    cluster = await cluster_of(call)
    asked: OffsetQuestion = call.query
    topic, number = call.path["topic_name"], (await _partition_of(call)).partition
    found: dict[str, int] = {}
    specs: dict[str, str | int] = {"earliest_offset": "earliest", "latest_offset": "latest"}
    if asked.offset_type is not None:
        specs = {f"{asked.offset_type}_offset": asked.offset_type}
    if asked.timestamp is not None:
        specs["offset"] = max(milliseconds(asked.timestamp), 0)
    place = TopicPartition(topic, number)
    for name, spec in specs.items():
        found[name] = (await call.services.admin.list_offsets({place: spec}))[place].offset
    own = partition_address(cluster, topic, number)
    own = Address(f"{own.url}/offset", f"{own.name}/offset")
    known: dict[str, Any] = {name: offset for name, offset in found.items() if offset >= 0}
    return KafkaPartitionOffset(**_place(call, own, topic, number), **known)


# --- reassignments


async def _all_moves(call: Call) -> KafkaReassignmentList:
    cluster = await cluster_of(call)
    found = await call.services.admin.list_partition_reassignments()
    return _moves(call, cluster, f"{cluster.url}/topics/-/partitions/-/reassignment", found)


async def _moves_of_topic(call: Call) -> KafkaReassignmentList:
    cluster = await cluster_of(call)
    topic = await topic_of(call, call.path["topic_name"])
    places = [(topic.name, one.partition) for one in topic.partitions]
    found = await call.services.admin.list_partition_reassignments(places)
    return _moves(call, cluster, f"{topic_address(cluster, topic.name).url}/partitions/-/reassignment", found)


async def _move(call: Call) -> KafkaReassignment:
    cluster = await cluster_of(call)
    place = TopicPartition(call.path["topic_name"], (await _partition_of(call)).partition)
    found = await call.services.admin.list_partition_reassignments([place])
    if place not in found:
        raise Problem(404, 404, f"{place.topic}-{place.partition} is not on its way to other brokers.")
    return _reassignment(call, cluster, place, found[place])


def _moves(call: Call, cluster: Address, url: str, found: dict[TopicPartition, Reassignment]) -> KafkaReassignmentList:
    shown, metadata = turn(call, url, sorted(found), list)
    return KafkaReassignmentList(
        metadata=metadata, data=[_reassignment(call, cluster, place, found[place]) for place in shown]
    )


def _reassignment(call: Call, cluster: Address, place: TopicPartition, moving: Reassignment) -> KafkaReassignment:
    partition = partition_address(cluster, *place)
    own = Address(f"{partition.url}/reassignment", f"{partition.name}/reassignment")
    return KafkaReassignment(
        **_place(call, own, *place),
        adding_replicas=list(moving.adding_replicas),
        removing_replicas=list(moving.removing_replicas),
        replicas=partition.related("/replicas"),
    )


_PARTITIONS = f"{CLUSTER}/topics/{{topic_name}}/partitions"
_PARTITION = f"{_PARTITIONS}/{{partition_id}}"

# The more particular ones stand first: a topic may be called "-".
_TABLE: tuple[tuple[str, Handler, str, type[Struct] | None, Any], ...] = (
    (
        f"{CLUSTER}/topics/-/partitions/-/reassignment",
        _all_moves,
        "All partitions that move",
        Page,
        KafkaReassignmentList,
    ),
    (f"{_PARTITIONS}/-/reassignment", _moves_of_topic, "A topic's partitions that move", Page, KafkaReassignmentList),
    (_PARTITIONS, _list, "A topic's partitions", Page, KafkaPartitionList),
    (_PARTITION, _get, "A partition", None, KafkaPartition),
    (f"{_PARTITION}/offset", _offset, "Where a partition begins and ends", OffsetQuestion, KafkaPartitionOffset),
    (f"{_PARTITION}/replicas", _replicas, "A partition's replicas", None, KafkaReplicaList),
    (f"{_PARTITION}/replicas/{{broker_id}}", _one_replica, "A partition's replica on a broker", None, KafkaReplica),
    (f"{_PARTITION}/reassignment", _move, "Where a partition moves", None, KafkaReassignment),
    (
        f"{CLUSTER}/brokers/{{broker_id}}/partition-replicas",
        _replicas_of_broker,
        "What lies on a broker",
        Page,
        KafkaReplicaList,
    ),
)

ROUTES = tuple(
    Route(
        method="GET",
        path=path,
        handle=handle,
        tag="v3 partitions",
        summary=summary,
        query=query,
        answer=answer,
        problems=(403,),
    )
    for path, handle, summary, query, answer in _TABLE
)
