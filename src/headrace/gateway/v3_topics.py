"""Topics in the shapes of REST v3: seen, created, grown and deleted."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from headrace.client.admin_topics import topic_description
from headrace.client.admin_values import NewTopic, TopicDescription
from headrace.gateway.known_topics import refusal
from headrace.gateway.misfit import forms
from headrace.gateway.problem import TOPIC_NAME, unprocessable
from headrace.gateway.route import Answer, Call, Route
from headrace.gateway.v3_address import CLUSTER, Address, ListMetadata, Page, Related, Resource, cluster_of, turn
from headrace.gateway.v3_clusters import ClusterId
from headrace.gateway.v3_configs import SettingName
from headrace.model.errors import ErrorCode, KafkaError

PARTITIONS_MAX = 10_000
"""As many as a controller makes at once."""
_LOOK_AGAIN_S = 0.05
_BROKER_DEFAULT = -1

TopicName = Annotated[str, Meta(examples=["trucks"])]
NewTopicName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=249,
        pattern=r"^[a-zA-Z0-9._\-]+$",
        examples=["trucks"],
        extra=forms(TOPIC_NAME),
    ),
]


class KafkaTopic(Resource, frozen=True, kw_only=True):
    """A topic."""

    cluster_id: ClusterId
    topic_name: TopicName
    is_internal: bool
    replication_factor: Annotated[int, Meta(description="-1 if it was left to the broker, and only checked.")]
    partitions_count: Annotated[int, Meta(description="-1 if it was left to the broker, and only checked.")]
    partitions: Related
    configs: Related
    partition_reassignments: Related


class KafkaTopicList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Topics, by name."""

    metadata: ListMetadata
    data: list[KafkaTopic]


class TopicSetting(Struct, frozen=True, kw_only=True):
    """What a setting of the new topic shall be."""

    name: SettingName
    value: Annotated[str, Meta(max_length=32_000, examples=["604800000"])]


BrokerNumber = Annotated[int, Meta(ge=0, le=2**31 - 1, examples=[1])]


class PartitionReplicas(Struct, frozen=True, kw_only=True):
    """On which brokers a partition shall lie; the first leads it."""

    partition_id: Annotated[int, Meta(ge=0, le=PARTITIONS_MAX - 1, examples=[0])]
    broker_ids: Annotated[list[BrokerNumber], Meta(min_length=1, max_length=100)]


class CreateTopic(Struct, frozen=True, kw_only=True):
    """A topic to create: partitions and copies by number, or broker by broker."""

    topic_name: NewTopicName
    partitions_count: Annotated[
        Annotated[int, Meta(ge=1, le=PARTITIONS_MAX)] | None, Meta(description="The broker's default if absent.")
    ] = None
    replication_factor: Annotated[
        Annotated[int, Meta(ge=1, le=32_767)] | None, Meta(description="The broker's default if absent.")
    ] = None
    replicas_assignments: Annotated[
        list[PartitionReplicas], Meta(max_length=PARTITIONS_MAX, description="Instead of both numbers.")
    ] = []
    configs: Annotated[list[TopicSetting], Meta(max_length=1000)] = []
    validate_only: Annotated[bool, Meta(description="Check, and create nothing.")] = False


class GrowTopic(Struct, frozen=True, kw_only=True):
    """How many partitions a topic shall have; never fewer than it has."""

    partitions_count: Annotated[int, Meta(ge=1, le=PARTITIONS_MAX, examples=[6])]


async def _list(call: Call) -> KafkaTopicList:
    here = await cluster_of(call)
    shown, metadata = turn(call, f"{here.url}/topics", await all_topics(call), lambda one: [one.name])
    return KafkaTopicList(metadata=metadata, data=[topic_shown(call, here, one) for one in shown])


async def _get(call: Call) -> KafkaTopic:
    here = await cluster_of(call)
    return topic_shown(call, here, await topic_of(call, call.path["topic_name"]))


async def _create(call: Call) -> Answer:
    here = await cluster_of(call)
    asked: CreateTopic = call.body
    await call.services.admin.create_topics([_new_topic(asked)], validate_only=asked.validate_only)
    if asked.validate_only:
        return Answer(_checked(call, here, asked), 200)
    found = await _appeared(call, asked.topic_name, 1)
    shown = topic_shown(call, here, found)
    return Answer(shown, 201, {"location": shown.metadata.self})


def _new_topic(asked: CreateTopic) -> NewTopic:
    assignments = {one.partition_id: one.broker_ids for one in asked.replicas_assignments}
    if len(assignments) != len(asked.replicas_assignments):
        raise unprocessable("A partition is twice in replicas_assignments.")
    if assignments and not (asked.partitions_count is None and asked.replication_factor is None):
        raise unprocessable("Give replicas_assignments, or partitions_count and replication_factor, not both.")
    configs = {one.name: one.value for one in asked.configs}
    if len(configs) != len(asked.configs):
        raise unprocessable("A setting is twice in configs.")
    return NewTopic(
        asked.topic_name,
        _BROKER_DEFAULT if asked.partitions_count is None else asked.partitions_count,
        _BROKER_DEFAULT if asked.replication_factor is None else asked.replication_factor,
        assignments,
        configs,
    )


def _checked(call: Call, here: Address, asked: CreateTopic) -> KafkaTopic:
    assigned = asked.replicas_assignments
    copies = len(assigned[0].broker_ids) if assigned else asked.replication_factor
    return _topic(
        call,
        here,
        name=asked.topic_name,
        partitions=len(assigned) or asked.partitions_count or _BROKER_DEFAULT,
        copies=copies or _BROKER_DEFAULT,
        is_internal=False,
    )


async def _grow(call: Call) -> KafkaTopic:
    here = await cluster_of(call)
    name, count = call.path["topic_name"], call.body.partitions_count
    await call.services.admin.create_partitions({name: count})
    call.services.topics.forget(name)
    return topic_shown(call, here, await _appeared(call, name, count))


async def _delete(call: Call) -> None:
    await cluster_of(call)
    name = call.path["topic_name"]
    await topic_of(call, name)
    await call.services.admin.delete_topics([name])
    call.services.topics.forget(name)


async def _appeared(call: Call, name: str, partitions: int) -> TopicDescription:
    """The topic as soon as the broker we ask has heard of what the controller did."""
    async with asyncio.timeout(call.services.config["request.timeout.ms"] / 1000):
        while True:
            try:
                found = await topic_of(call, name)
            except KafkaError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
            else:
                if len(found.partitions) >= partitions:
                    return found
            await asyncio.sleep(_LOOK_AGAIN_S)


async def all_topics(call: Call) -> list[TopicDescription]:
    """All topics by name, but for those that nothing is known about at the moment."""
    found = (await call.services.cluster.metadata()).topics
    return sorted((topic_description(one) for one in found if not one.error_code), key=lambda one: one.name)


async def topic_of(call: Call, name: str) -> TopicDescription:
    """A topic; KafkaError with a sentence if it is not there."""
    try:
        (found,) = await call.services.admin.describe_topics([name])
    except KafkaError as error:
        raise KafkaError(error.code, refusal(name, error.code)) from None
    return found


def topic_shown(call: Call, cluster: Address, topic: TopicDescription) -> KafkaTopic:
    """A topic as v3 shows it."""
    copies = len(topic.partitions[0].replicas) if topic.partitions else 0
    return _topic(
        call,
        cluster,
        name=topic.name,
        partitions=len(topic.partitions),
        copies=copies,
        is_internal=topic.is_internal,
    )


def _topic(call: Call, cluster: Address, *, name: str, partitions: int, copies: int, is_internal: bool) -> KafkaTopic:
    own = topic_address(cluster, name)
    return KafkaTopic(
        metadata=own.metadata,
        cluster_id=call.path["cluster_id"],
        topic_name=name,
        is_internal=is_internal,
        replication_factor=copies,
        partitions_count=partitions,
        partitions=own.related("/partitions"),
        configs=own.related("/configs"),
        partition_reassignments=own.related("/partitions/-/reassignment"),
    )


def topic_address(cluster: Address, name: str) -> Address:
    """The address of a topic."""
    return cluster.under("topics", "topic", name)


_TOPICS = f"{CLUSTER}/topics"
_TOPIC = f"{CLUSTER}/topics/{{topic_name}}"

ROUTES = (
    Route(
        method="GET",
        path=_TOPICS,
        handle=_list,
        tag="v3 topics",
        summary="The topics",
        query=Page,
        answer=KafkaTopicList,
    ),
    Route(
        method="POST",
        path=_TOPICS,
        handle=_create,
        tag="v3 topics",
        summary="Create a topic",
        detail="Answered with 201 when the topic is there, with 200 if it was only checked (validate_only).",
        body=CreateTopic,
        example={
            "topic_name": "trucks",
            "partitions_count": 3,
            "replication_factor": 1,
            "configs": [{"name": "retention.ms", "value": "604800000"}],
        },
        answer=KafkaTopic,
        status=201,
        statuses=(200,),
        problems=(403,),
    ),
    Route(
        method="GET",
        path=_TOPIC,
        handle=_get,
        tag="v3 topics",
        summary="A topic",
        answer=KafkaTopic,
        problems=(403,),
    ),
    Route(
        method="PATCH",
        path=_TOPIC,
        handle=_grow,
        tag="v3 topics",
        summary="Give a topic more partitions",
        body=GrowTopic,
        answer=KafkaTopic,
        problems=(403,),
    ),
    Route(
        method="DELETE",
        path=_TOPIC,
        handle=_delete,
        tag="v3 topics",
        summary="Delete a topic, and its records with it",
        status=204,
        problems=(403,),
    ),
)
