"""A group's offsets, moved and forgotten: shapes of our own, beside those of REST v3."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from headrace.gateway.offset_resets import Scenario, apply_reset, plan_reset
from headrace.gateway.problem import PARTITION_NOT_FOUND, Problem, unprocessable
from headrace.gateway.route import Call, Route
from headrace.gateway.v3_address import ListMetadata, cluster_of
from headrace.gateway.v3_clusters import ClusterId
from headrace.gateway.v3_groups import GROUP_PATH, GroupId, group_address, group_of
from headrace.gateway.v3_partitions import Offset, PartitionId
from headrace.gateway.v3_topics import NewTopicName, TopicName

PartitionNumber = Annotated[int, Meta(ge=0, le=2**31 - 1, examples=[0])]


class TopicScope(Struct, frozen=True, kw_only=True):
    """A topic, or some partitions of it."""

    topic_name: NewTopicName
    partitions: Annotated[
        Annotated[list[PartitionNumber], Meta(min_length=1, max_length=10_000)] | None,
        Meta(description="All if absent."),
    ] = None


class ResetOffsets(Struct, frozen=True, kw_only=True):
    """Where a group's offsets shall stand."""

    scenario: Scenario
    topics: Annotated[
        Annotated[list[TopicScope], Meta(min_length=1, max_length=1000)] | None,
        Meta(description="Everything the group has committed if absent."),
    ] = None
    execute: Annotated[bool, Meta(description="Do it; otherwise it is only shown what would be done.")] = False


class PlannedOffsetData(Struct, frozen=True, kw_only=True):
    """Where a partition stands, and where it shall stand."""

    topic_name: TopicName
    partition_id: PartitionId
    current_offset: Offset | None
    new_offset: Offset
    note: str | None


class KafkaOffsetReset(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A plan, and whether it was carried out."""

    metadata: ListMetadata
    cluster_id: ClusterId
    consumer_group_id: GroupId
    executed: bool
    data: list[PlannedOffsetData]


class ForgetOffsets(Struct, frozen=True, kw_only=True):
    """What to forget."""

    topic_name: Annotated[NewTopicName, Meta(description="Of which topic.")]
    partition_id: Annotated[
        PartitionNumber | None, Meta(description="Of which partition; of all if absent.", examples=[0])
    ] = None


async def _reset(call: Call) -> KafkaOffsetReset:
    own = group_address(await cluster_of(call), call.path["consumer_group_id"])
    asked: ResetOffsets = call.body
    topics = None if asked.topics is None else {one.topic_name: one.partitions for one in asked.topics}
    if topics is not None and len(topics) != len(asked.topics or ()):
        raise unprocessable("A topic is there twice.")
    group_id = call.path["consumer_group_id"]
    plan = await plan_reset(call.services, group_id, asked.scenario, topics)
    if asked.execute:
        await apply_reset(call.services, group_id, plan)
    return KafkaOffsetReset(
        metadata=ListMetadata(self=f"{own.url}/offsets:reset"),
        cluster_id=call.path["cluster_id"],
        consumer_group_id=group_id,
        executed=asked.execute,
        data=[
            PlannedOffsetData(
                topic_name=one.place.topic,
                partition_id=one.place.partition,
                current_offset=one.current,
                new_offset=one.target,
                note=one.note,
            )
            for one in plan
        ],
    )


async def _forget(call: Call) -> None:
    await cluster_of(call)
    asked: ForgetOffsets = call.query
    admin, group_id = call.services.admin, (await group_of(call)).group_id
    places = [
        place
        for place in await admin.list_group_offsets(group_id)
        if place.topic == asked.topic_name and asked.partition_id in {None, place.partition}
    ]
    if not places:
        raise Problem(404, PARTITION_NOT_FOUND, f"The group has committed nothing for '{asked.topic_name}' there.")
    await admin.delete_group_offsets(group_id, places)


ROUTES = (
    Route(
        method="POST",
        path=f"{GROUP_PATH}/offsets:reset",
        handle=_reset,
        tag="v3 groups",
        summary="Move a group's offsets, or see what would be done",
        detail="The plan is the one of kafka-consumer-groups --reset-offsets. The group must have no members.",
        body=ResetOffsets,
        example={"scenario": {"type": "to-earliest"}, "topics": [{"topic_name": "trucks"}], "execute": False},
        answer=KafkaOffsetReset,
        problems=(403, 409),
    ),
    Route(
        method="DELETE",
        path=f"{GROUP_PATH}/offsets",
        handle=_forget,
        tag="v3 groups",
        summary="Forget what a group has committed for a topic",
        detail="No member of the group may be subscribed to the topic.",
        query=ForgetOffsets,
        status=204,
        problems=(403, 409),
    ),
)
