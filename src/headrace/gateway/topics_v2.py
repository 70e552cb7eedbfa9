"""Topics and partitions in the shapes of REST v2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.gateway.formats import V2
from headrace.gateway.route import Call, Route

if TYPE_CHECKING:
    from headrace.client.admin_values import PartitionDescription


class Replica(Struct, frozen=True):
    """One replica of a partition."""

    broker: int
    leader: bool
    in_sync: bool


class PartitionDetail(Struct, frozen=True):
    """A partition and where its replicas are; the leader is -1 while there is none."""

    partition: int
    leader: int
    replicas: list[Replica]


class TopicDetail(Struct, frozen=True):
    """A topic, its settings and its partitions."""

    name: str
    configs: dict[str, str | None]
    partitions: list[PartitionDetail]


class PartitionOffsets(Struct, frozen=True):
    """The first offset of a partition, and the one behind its last record."""

    beginning_offset: int
    end_offset: int


async def _list(call: Call) -> list[str]:
    return sorted(await call.services.admin.list_topics())


async def _topic(call: Call) -> TopicDetail:
    name = call.path["topic"]
    found = await call.services.topic_lookup.topic(name)
    configs = await call.services.topic_lookup.configs(name)
    return TopicDetail(name, configs, [_detail(one) for one in found.partitions])


async def _partitions(call: Call) -> list[PartitionDetail]:
    found = await call.services.topic_lookup.topic(call.path["topic"])
    return [_detail(one) for one in found.partitions]


async def _partition(call: Call) -> PartitionDetail:
    return _detail(await call.services.topic_lookup.partition(call.path["topic"], call.path["partition"]))


def _detail(found: PartitionDescription) -> PartitionDetail:
    return PartitionDetail(
        found.partition,
        found.leader,
        [Replica(broker, broker == found.leader, broker in found.isr) for broker in found.replicas],
    )


async def _offsets(call: Call) -> PartitionOffsets:
    topic, partition = call.path["topic"], call.path["partition"]
    await call.services.topic_lookup.partition(topic, partition)
    place = (topic, partition)
    (first,) = (await call.services.admin.list_offsets({place: "earliest"})).values()
    (end,) = (await call.services.admin.list_offsets({place: "latest"})).values()
    return PartitionOffsets(first.offset, end.offset)


ROUTES = (
    Route(
        method="GET",
        path="/topics",
        handle=_list,
        tag="v2",
        summary="The names of all topics",
        answer=list[str],
        gives=V2,
    ),
    Route(
        method="GET",
        path="/topics/{topic}",
        handle=_topic,
        tag="v2",
        summary="A topic, its settings and partitions",
        answer=TopicDetail,
        gives=V2,
        problems=(403,),
    ),
    Route(
        method="GET",
        path="/topics/{topic}/partitions",
        handle=_partitions,
        tag="v2",
        summary="A topic's partitions",
        answer=list[PartitionDetail],
        gives=V2,
        problems=(403,),
    ),
    Route(
        method="GET",
        path="/topics/{topic}/partitions/{partition}",
        handle=_partition,
        tag="v2",
        summary="One partition",
        answer=PartitionDetail,
        gives=V2,
        problems=(403,),
    ),
    Route(
        method="GET",
        path="/topics/{topic}/partitions/{partition}/offsets",
        handle=_offsets,
        tag="v2",
        summary="Where a partition begins and ends",
        answer=PartitionOffsets,
        gives=V2,
        problems=(403,),
    ),
)
