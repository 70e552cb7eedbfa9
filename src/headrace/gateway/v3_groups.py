"""Consumer groups, their members and what these hold, in the shapes of REST v3."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from headrace.client.admin_values import GroupDescription, MemberDescription
from headrace.client.cluster import GROUP
from headrace.client.records import TopicPartition
from headrace.gateway.problem import GROUP_NOT_FOUND, Problem
from headrace.gateway.route import Call, Route
from headrace.gateway.v3_address import CLUSTER, Address, ListMetadata, Page, Related, Resource, cluster_of, turn
from headrace.gateway.v3_clusters import ClusterId, broker_address
from headrace.gateway.v3_partitions import PartitionId, partition_address
from headrace.gateway.v3_topics import TopicName
from headrace.model.errors import ErrorCode, KafkaError

_AT_ONCE = 16
_TYPES = ("classic", "consumer")
_PROTOCOLS = frozenset({"", "consumer"})
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
DEAD = "Dead"

GroupId = Annotated[str, Meta(examples=["panel"])]
ConsumerId = Annotated[str, Meta(examples=["rdkafka-0b2f6a52-7a43-4d0e-b1cd-3a3b7f9d6f10"])]
ClientId = Annotated[str, Meta(examples=["rdkafka"])]


class KafkaConsumerGroup(Resource, frozen=True, kw_only=True):
    """A group of consumers."""

    cluster_id: ClusterId
    consumer_group_id: GroupId
    is_simple: Annotated[bool, Meta(description="Whether somebody only commits offsets under this name.")]
    partition_assignor: Annotated[str, Meta(examples=["range"])]
    state: Annotated[str, Meta(examples=["STABLE"])]
    type: Annotated[str, Meta(description="CLASSIC or CONSUMER, the newer protocol.", examples=["CLASSIC"])]
    coordinator: Related
    consumers: Related
    lag_summary: Related


class KafkaConsumerGroupList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Groups of consumers, by name."""

    metadata: ListMetadata
    data: list[KafkaConsumerGroup]


class KafkaConsumer(Resource, frozen=True, kw_only=True):
    """A member of a group."""

    cluster_id: ClusterId
    consumer_group_id: GroupId
    consumer_id: ConsumerId
    instance_id: str | None
    client_id: ClientId
    assignments: Related


class KafkaConsumerList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A group's members."""

    metadata: ListMetadata
    data: list[KafkaConsumer]


class KafkaConsumerAssignment(Resource, frozen=True, kw_only=True):
    """A partition that a member reads."""

    cluster_id: ClusterId
    consumer_group_id: GroupId
    consumer_id: ConsumerId
    topic_name: TopicName
    partition_id: PartitionId
    partition: Related
    lag: Related


class KafkaConsumerAssignmentList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """The partitions that a member reads."""

    metadata: ListMetadata
    data: list[KafkaConsumerAssignment]


# --- groups


async def _list(call: Call) -> KafkaConsumerGroupList:
    cluster = await cluster_of(call)
    listed = await call.services.admin.list_groups()
    names = [
        one.group_id for one in listed if one.protocol_type in _PROTOCOLS and one.group_type.lower() in {"", *_TYPES}
    ]
    shown, metadata = turn(call, f"{cluster.url}/consumer-groups", sorted(names), lambda name: [name])
    return KafkaConsumerGroupList(metadata=metadata, data=await _groups(call, cluster, shown))


async def _groups(call: Call, cluster: Address, names: Sequence[str]) -> list[KafkaConsumerGroup]:
    """All at once, a few at a time; one that went away meanwhile is left out."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> KafkaConsumerGroup | None:
        async with gate:
            try:
                return await _group(call, cluster, await described(call, name))
            except Problem:
                return None

    return [found for found in await asyncio.gather(*map(one, names)) if found is not None]


async def _get(call: Call) -> KafkaConsumerGroup:
    cluster = await cluster_of(call)
    return await _group(call, cluster, await group_of(call))


async def _group(call: Call, cluster: Address, group: GroupDescription) -> KafkaConsumerGroup:
    own = group_address(cluster, group.group_id)
    coordinator = await call.services.cluster.coordinator_of(GROUP, group.group_id)
    return KafkaConsumerGroup(
        metadata=own.metadata,
        cluster_id=call.path["cluster_id"],
        consumer_group_id=group.group_id,
        is_simple=group.group_type == "classic" and not group.assignor and not group.members,
        partition_assignor=group.assignor,
        state=_HUMP.sub("_", group.state).upper(),
        type=group.group_type.upper(),
        coordinator=broker_address(cluster, coordinator).related(),
        consumers=own.related("/consumers"),
        lag_summary=own.related("/lag-summary"),
    )


async def _delete(call: Call) -> None:
    await cluster_of(call)
    await call.services.admin.delete_groups([(await group_of(call)).group_id])


async def group_of(call: Call) -> GroupDescription:
    """The group in the path; Problem(404) if it is not there."""
    return await described(call, call.path["consumer_group_id"])


async def described(call: Call, group_id: str) -> GroupDescription:
    """A group; Problem(404) if it is not there."""
    missing = Problem(404, GROUP_NOT_FOUND, f"There is no consumer group '{group_id[:249]}'.")
    try:
        found = (await call.services.admin.describe_groups([group_id]))[group_id]
    except KafkaError as error:
        if error.code in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID}:
            raise missing from None
        raise
    if found.state == DEAD:
        raise missing
    return found


def group_address(cluster: Address, group_id: str) -> Address:
    """The address of a group."""
    return cluster.under("consumer-groups", "consumer-group", group_id)


# --- members


async def _consumers(call: Call) -> KafkaConsumerList:
    own = group_address(await cluster_of(call), call.path["consumer_group_id"])
    members = sorted((await group_of(call)).members, key=lambda one: one.member_id)
    shown, metadata = turn(call, f"{own.url}/consumers", members, lambda one: [one.member_id])
    return KafkaConsumerList(metadata=metadata, data=[_consumer(call, own, one) for one in shown])


async def _one_consumer(call: Call) -> KafkaConsumer:
    own = group_address(await cluster_of(call), call.path["consumer_group_id"])
    return _consumer(call, own, await _member_of(call))


def _consumer(call: Call, group: Address, member: MemberDescription) -> KafkaConsumer:
    own = consumer_address(group, member.member_id)
    return KafkaConsumer(
        metadata=own.metadata,
        cluster_id=call.path["cluster_id"],
        consumer_group_id=call.path["consumer_group_id"],
        consumer_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        assignments=own.related("/assignments"),
    )


async def _member_of(call: Call) -> MemberDescription:
    wanted: str = call.path["consumer_id"]
    for one in (await group_of(call)).members:
        if one.member_id == wanted:
            return one
    raise Problem(404, 404, f"The group has no member '{wanted[:249]}'.")


def consumer_address(group: Address, member_id: str) -> Address:
    """The address of a member."""
    return group.under("consumers", "consumer", member_id)


# --- assignments


async def _assignments(call: Call) -> KafkaConsumerAssignmentList:
    cluster = await cluster_of(call)
    member = await _member_of(call)
    own = consumer_address(group_address(cluster, call.path["consumer_group_id"]), member.member_id)
    shown, metadata = turn(call, f"{own.url}/assignments", sorted(member.assignment), list)
    return KafkaConsumerAssignmentList(
        metadata=metadata, data=[_assignment(call, cluster, own, place) for place in shown]
    )


async def _one_assignment(call: Call) -> KafkaConsumerAssignment:
    cluster = await cluster_of(call)
    member = await _member_of(call)
    place = TopicPartition(call.path["topic_name"], call.path["partition_id"])
    if place not in member.assignment:
        raise Problem(404, 404, f"This member does not read {place.topic[:249]}-{place.partition}.")
    own = consumer_address(group_address(cluster, call.path["consumer_group_id"]), member.member_id)
    return _assignment(call, cluster, own, place)


def _assignment(call: Call, cluster: Address, consumer: Address, place: TopicPartition) -> KafkaConsumerAssignment:
    own = consumer.under("assignments", "assignment", place.topic).under("partitions", "partition", place.partition)
    group = group_address(cluster, call.path["consumer_group_id"])
    return KafkaConsumerAssignment(
        metadata=own.metadata,
        cluster_id=call.path["cluster_id"],
        consumer_group_id=call.path["consumer_group_id"],
        consumer_id=call.path["consumer_id"],
        topic_name=place.topic,
        partition_id=place.partition,
        partition=partition_address(cluster, *place).related(),
        lag=lag_address(group, place).related(),
    )


def lag_address(group: Address, place: TopicPartition) -> Address:
    """The address of a group's lag in a partition."""
    return group.under("lags", "lag", place.topic).under("partitions", "partition", place.partition)


_GROUPS = f"{CLUSTER}/consumer-groups"
GROUP_PATH = f"{_GROUPS}/{{consumer_group_id}}"
_CONSUMER = f"{GROUP_PATH}/consumers/{{consumer_id}}"
_TABLE = (
    ("GET", _GROUPS, _list, "The consumer groups", Page, KafkaConsumerGroupList),
    ("GET", GROUP_PATH, _get, "A consumer group", None, KafkaConsumerGroup),
    ("DELETE", GROUP_PATH, _delete, "Delete a group that has no members, and its offsets with it", None, None),
    ("GET", f"{GROUP_PATH}/consumers", _consumers, "A group's members", Page, KafkaConsumerList),
    ("GET", _CONSUMER, _one_consumer, "A member of a group", None, KafkaConsumer),
    ("GET", f"{_CONSUMER}/assignments", _assignments, "What a member reads", Page, KafkaConsumerAssignmentList),
    (
        "GET",
        f"{_CONSUMER}/assignments/{{topic_name}}/partitions/{{partition_id}}",
        _one_assignment,
        "A partition that a member reads",
        None,
        KafkaConsumerAssignment,
    ),
)

ROUTES = tuple(
    Route(
        method=method,
        path=path,
        handle=handle,
        tag="v3 groups",
        summary=summary,
        query=query,
        answer=answer,
        status=200 if method == "GET" else 204,
        problems=(403,) if method == "GET" else (403, 409),
    )
    for method, path, handle, summary, query, answer in _TABLE
)
