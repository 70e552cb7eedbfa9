"""How far groups lie behind, in the shapes of REST v3."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from headrace.client.admin_values import MemberDescription
from headrace.client.records import TopicPartition
from headrace.gateway.problem import Problem
from headrace.gateway.route import Call, Route
from headrace.gateway.services import Services
from headrace.gateway.v3_address import Address, ListMetadata, Page, Related, Resource, cluster_of, turn
from headrace.gateway.v3_clusters import ClusterId
from headrace.gateway.v3_groups import (
    GROUP_PATH,
    ClientId,
    ConsumerId,
    GroupId,
    consumer_address,
    group_address,
    group_of,
    lag_address,
)
from headrace.gateway.v3_partitions import Offset, PartitionId, partition_address
from headrace.gateway.v3_topics import TopicName

Lag = Annotated[int, Meta(description="Records committed to the log and not to the group.", examples=[17])]


class KafkaConsumerLag(Resource, frozen=True, kw_only=True):
    """How far a group lies behind in a partition; the consumer is empty where nobody reads."""

    cluster_id: ClusterId
    consumer_group_id: GroupId
    topic_name: TopicName
    partition_id: PartitionId
    consumer_id: ConsumerId
    instance_id: str | None
    client_id: ClientId
    current_offset: Offset
    log_end_offset: Offset
    lag: Lag


class KafkaConsumerLagList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A group's lag by partition, where it has committed something."""

    metadata: ListMetadata
    data: list[KafkaConsumerLag]


class KafkaConsumerGroupLagSummary(Resource, frozen=True, kw_only=True):
    """How far a group lies behind in all, and where most; null where it has committed nothing."""

    cluster_id: ClusterId
    consumer_group_id: GroupId
    max_lag_consumer_id: ConsumerId | None
    max_lag_instance_id: str | None
    max_lag_client_id: ClientId | None
    max_lag_topic_name: TopicName | None
    max_lag_partition_id: PartitionId | None
    max_lag: Lag
    total_lag: Lag
    max_lag_consumer: Related | None
    max_lag_partition: Related | None


async def _lags(call: Call) -> KafkaConsumerLagList:
    own = group_address(await cluster_of(call), call.path["consumer_group_id"])
    found = await _lags_of(call, own)
    shown, metadata = turn(call, f"{own.url}/lags", found, lambda one: [one.topic_name, one.partition_id])
    return KafkaConsumerLagList(metadata=metadata, data=list(shown))


async def _lag(call: Call) -> KafkaConsumerLag:
    own = group_address(await cluster_of(call), call.path["consumer_group_id"])
    place = TopicPartition(call.path["topic_name"], call.path["partition_id"])
    for one in await _lags_of(call, own):
        if (one.topic_name, one.partition_id) == place:
            return one
    raise Problem(404, 404, f"The group has committed nothing for {place.topic[:249]}-{place.partition}.")


async def _summary(call: Call) -> KafkaConsumerGroupLagSummary:
    cluster = await cluster_of(call)
    own = group_address(cluster, call.path["consumer_group_id"])
    found = await _lags_of(call, own)
    worst = max(found, key=lambda one: one.lag, default=None)
    reads = worst is not None and worst.consumer_id != ""
    return KafkaConsumerGroupLagSummary(
        metadata=Address(f"{own.url}/lag-summary", f"{own.name}/lag-summary").metadata,
        cluster_id=call.path["cluster_id"],
        consumer_group_id=call.path["consumer_group_id"],
        max_lag_consumer_id=worst.consumer_id if worst else None,
        max_lag_instance_id=worst.instance_id if worst else None,
        max_lag_client_id=worst.client_id if worst else None,
        max_lag_topic_name=worst.topic_name if worst else None,
        max_lag_partition_id=worst.partition_id if worst else None,
        max_lag=worst.lag if worst else 0,
        total_lag=sum(one.lag for one in found),
        max_lag_consumer=consumer_address(own, worst.consumer_id).related() if worst and reads else None,
        max_lag_partition=partition_address(cluster, worst.topic_name, worst.partition_id).related() if worst else None,
    )


async def _lags_of(call: Call, group: Address) -> list[KafkaConsumerLag]:
    described = await group_of(call)
    services = call.services
    commits = await services.admin.list_group_offsets(described.group_id)
    ends = await log_ends(services, list(commits))
    readers = {place: member for member in described.members for place in member.assignment}
    return [
        _shown(call, group, place, commits[place].offset, ends[place], readers.get(place)) for place in sorted(ends)
    ]


def _shown(
    call: Call, group: Address, place: TopicPartition, offset: int, end: int, reader: MemberDescription | None
) -> KafkaConsumerLag:
    return KafkaConsumerLag(
        metadata=lag_address(group, place).metadata,
        cluster_id=call.path["cluster_id"],
        consumer_group_id=call.path["consumer_group_id"],
        topic_name=place.topic,
        partition_id=place.partition,
        consumer_id=reader.member_id if reader else "",
        instance_id=reader.group_instance_id if reader else None,
        client_id=reader.client_id if reader else "",
        current_offset=offset,
        log_end_offset=end,
        lag=max(end - offset, 0),
    )


async def log_ends(services: Services, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions end; those that are gone, or that nobody leads now, are left out."""
    if not places:
        return {}
    topics = (await services.cluster.metadata(sorted({place.topic for place in places}))).topics
    led = {
        TopicPartition(topic.name or "", one.partition_index)
        for topic in topics
        for one in topic.partitions
        if not topic.error_code and one.leader_id >= 0
    }
    found = await services.admin.list_offsets({place: "latest" for place in places if place in led})
    return {place: one.offset for place, one in found.items()}


ROUTES = (
    Route(
        method="GET",
        path=f"{GROUP_PATH}/lag-summary",
        handle=_summary,
        tag="v3 groups",
        summary="How far a group lies behind in all",
        answer=KafkaConsumerGroupLagSummary,
        problems=(403,),
    ),
    Route(
        method="GET",
        path=f"{GROUP_PATH}/lags",
        handle=_lags,
        tag="v3 groups",
        summary="How far a group lies behind, by partition",
        query=Page,
        answer=KafkaConsumerLagList,
        problems=(403,),
    ),
    Route(
        method="GET",
        path=f"{GROUP_PATH}/lags/{{topic_name}}/partitions/{{partition_id}}",
        handle=_lag,
        tag="v3 groups",
        summary="How far a group lies behind in a partition",
        answer=KafkaConsumerLag,
        problems=(403,),
    ),
)
