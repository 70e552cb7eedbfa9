"""Where a consumer instance reads, in the shapes of REST v2: assignments, positions, committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from headrace.client.records import OffsetAndMetadata, TopicPartition
from headrace.gateway.formats import V2
from headrace.gateway.problem import ILLEGAL_STATE, Problem, bad_request
from headrace.gateway.reading import read_body, read_json
from headrace.gateway.route import NUMBER_MAX, Call, Handler, Route

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.gateway.instances import Instance

_PLACES_MAX = 10_000
Partition = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Place(Struct, frozen=True, forbid_unknown_fields=True):
    """One partition of a topic."""

    topic: str
    partition: Partition


class Places(Struct, frozen=True, forbid_unknown_fields=True):
    """Partitions."""

    partitions: Annotated[list[Place], Meta(max_length=_PLACES_MAX)]


class PlaceOffset(Struct, frozen=True, forbid_unknown_fields=True):
    """An offset in a partition: the one that is read next."""

    topic: str
    partition: Partition
    offset: Offset
    metadata: str = ""


class PlaceOffsets(Struct, frozen=True, forbid_unknown_fields=True):
    """Offsets of partitions."""

    offsets: Annotated[list[PlaceOffset], Meta(max_length=_PLACES_MAX)]


class PlaceQuery(Struct, frozen=True):
    """One topic, or one partition of it; all that is assigned if nothing is said."""

    topic: str | None = None
    partition: Partition | None = None


async def _assign(call: Call) -> None:
    places = _places(call.body)
    for place in places:
        await call.services.topic_lookup.partition(*place)
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        instance.check_kind("partitions")
        await instance.consumer.assign(places)
        instance.kind = "partitions"


async def _assignments(call: Call) -> Places:
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        return Places([Place(*place) for place in sorted(instance.consumer.assignment())])


async def _seek(call: Call) -> None:
    offsets = {TopicPartition(one.topic, one.partition): one.offset for one in call.body.offsets}
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        _check_assigned(instance, offsets)
        for place, offset in offsets.items():
            await instance.consumer.seek(place, offset)


async def _seek_to_beginning(call: Call) -> None:
    places = _places(call.body)
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        _check_assigned(instance, places)
        if places:
            await instance.consumer.seek_to_beginning(*places)


async def _seek_to_end(call: Call) -> None:
    places = _places(call.body)
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        _check_assigned(instance, places)
        if places:
            await instance.consumer.seek_to_end(*places)


async def _commit(call: Call) -> None:
    offsets = None
    if call.body is not None:
        offsets = {
            TopicPartition(one.topic, one.partition): OffsetAndMetadata(one.offset, one.metadata)
            for one in call.body.offsets
        }
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        await instance.consumer.commit(offsets)


async def _committed(call: Call) -> PlaceOffsets:
    # REST v2 asks with a body, which not every client can send with GET; the query says the same.
    raw = await read_body(call.request, call.services)
    if not raw and call.query.partition is not None and call.query.topic is None:
        raise bad_request("A partition belongs to a topic. Give topic as well.")
    asked = _places(read_json(raw, Places)) if raw else None
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        found: list[PlaceOffset] = []
        for place in _asked_in_query(call.query, instance) if asked is None else asked:
            committed = await instance.consumer.committed(place, metadata=True)
            if committed is not None:
                found.append(PlaceOffset(*place, committed.offset, committed.metadata))
        return PlaceOffsets(found)


def _asked_in_query(query: PlaceQuery, instance: Instance) -> list[TopicPartition]:
    if query.topic is not None and query.partition is not None:
        return [TopicPartition(query.topic, query.partition)]
    return sorted(place for place in instance.consumer.assignment() if query.topic in {None, place.topic})


def _places(asked: Places) -> list[TopicPartition]:
    return list(dict.fromkeys(TopicPartition(one.topic, one.partition) for one in asked.partitions))


def _check_assigned(instance: Instance, places: Iterable[TopicPartition]) -> None:
    assigned = instance.consumer.assignment()
    for place in places:
        if place not in assigned:
            raise Problem(
                409,
                ILLEGAL_STATE,
                f"{place.topic}-{place.partition} is not assigned to this instance. "
                "Assign it, or read once so that the group can.",
            )


_INSTANCE = "/consumers/{group}/instances/{instance}"


def _post(path: str, handle: Handler, summary: str, body: type[Struct], *, body_optional: bool = False) -> Route:
    return Route(
        method="POST",
        path=f"{_INSTANCE}/{path}",
        handle=handle,
        tag="v2 consumers",
        summary=summary,
        body=body,
        body_optional=body_optional,
        accepts=V2,
        gives=V2,
        problems=(403, 409),
    )


ROUTES = (
    _post("assignments", _assign, "Read exactly these partitions, without sharing them in the group", Places),
    Route(
        method="GET",
        path=f"{_INSTANCE}/assignments",
        handle=_assignments,
        tag="v2 consumers",
        summary="The partitions that an instance reads",
        answer=Places,
        gives=V2,
    ),
    _post("positions", _seek, "Go on at these offsets", PlaceOffsets),
    _post("positions/beginning", _seek_to_beginning, "Go to the first offsets of these partitions", Places),
    _post("positions/end", _seek_to_end, "Go behind the last records of these partitions", Places),
    _post("offsets", _commit, "Commit these offsets, or all that was read", PlaceOffsets, body_optional=True),
    Route(
        method="GET",
        path=f"{_INSTANCE}/offsets",
        handle=_committed,
        tag="v2 consumers",
        summary="The offsets that the group has committed",
        query=PlaceQuery,
        answer=PlaceOffsets,
        gives=V2,
        problems=(403, 413, 422),
    ),
)
