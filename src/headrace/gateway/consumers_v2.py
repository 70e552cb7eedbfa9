"""Consumer instances in the shapes of REST v2: made, subscribed, read, removed."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from headrace.client.fault import BadOption
from headrace.gateway.formats import EMBEDDED, V2, FormatName
from headrace.gateway.hangup import unless_hung_up
from headrace.gateway.instances import InstanceOptions, SubscriptionKind
from headrace.gateway.misfit import forms
from headrace.gateway.problem import FORMAT_MISMATCH, Problem, unprocessable
from headrace.gateway.records_v2 import ShownRecord
from headrace.gateway.route import JSON, NUMBER_MAX, V2_JSON, Call, Route, encode

Flag = bool | Literal["true", "false"]
"""Clients of REST v2 write settings as they stand in files, or as JSON has them."""
Count = (
    Annotated[int, Meta(ge=-1, le=NUMBER_MAX)]
    | Annotated[str, Meta(pattern="^(-1|[0-9]{1,9})$", extra=forms("such a number of up to nine digits in quotes"))]
)

InstanceName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$",
        extra=forms("1 to 200 letters (a to z, A to Z), digits, '.', '_' and '-', of which '.' is not the first"),
    ),
]


class CreateInstance(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A consumer instance to make; its name is made up if there is none."""

    name: InstanceName | None = None
    format: FormatName = "binary"
    auto_offset_reset: Literal["earliest", "latest"] = msgspec.field(name="auto.offset.reset", default="latest")
    auto_commit: Flag | None = msgspec.field(name="auto.commit.enable", default=None)
    enable_auto_commit: Flag | None = msgspec.field(name="enable.auto.commit", default=None)
    fetch_min_bytes: Count = msgspec.field(name="fetch.min.bytes", default=1)
    timeout_ms: Count = msgspec.field(name="consumer.request.timeout.ms", default=1000)
    isolation_level: Literal["read_committed", "read_uncommitted"] = msgspec.field(
        name="isolation.level", default="read_committed"
    )


class CreatedInstance(Struct, frozen=True):
    """The instance, and where it is asked from now on."""

    instance_id: str
    base_uri: str


class Subscription(Struct, frozen=True, forbid_unknown_fields=True):
    """Topics by their names, or by a regular expression."""

    topics: Annotated[list[str], Meta(min_length=1, max_length=1000)] | None = None
    topic_pattern: Annotated[str, Meta(min_length=1, max_length=1000)] | None = None


class SubscribedTopics(Struct, frozen=True):
    """The topics; of a pattern, those that are being read."""

    topics: list[str]


class RecordsQuery(Struct, frozen=True):
    """How long to wait, in ms, and how much to give, in bytes."""

    timeout: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] | None = None
    max_bytes: Annotated[int, Meta(ge=1, le=NUMBER_MAX)] | None = None


async def _create(call: Call) -> CreatedInstance:
    group = call.path["group"]
    # The engine would take its time to find out that nobody is there.
    await call.services.cluster.any_channel()
    name = await call.services.instances.create(group, instance_options(call.body or CreateInstance()))
    where = f"/consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
    return CreatedInstance(name, f"{call.request.url.scheme}://{call.request.headers['host']}{where}")


def instance_options(asked: CreateInstance) -> InstanceOptions:
    """What was asked for, by its kinds."""
    if asked.auto_commit is not None and asked.enable_auto_commit is not None:
        raise unprocessable("auto.commit.enable and enable.auto.commit are one setting; give one of them.")
    commits = asked.enable_auto_commit if asked.auto_commit is None else asked.auto_commit
    return InstanceOptions(
        name=asked.name,
        form=asked.format,
        reset=asked.auto_offset_reset,
        auto_commit=commits in {None, True, "true"},
        min_bytes=max(int(asked.fetch_min_bytes), 1),
        timeout_ms=max(int(asked.timeout_ms), 0),
        isolation=asked.isolation_level,
    )


async def _delete(call: Call) -> None:
    await call.services.instances.remove(call.path["group"], call.path["instance"])


async def _subscribe(call: Call) -> None:
    asked: Subscription = call.body
    if (asked.topics is None) == (asked.topic_pattern is None):
        raise unprocessable("A subscription has either topics or a topic_pattern. Give one of them.")
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        kind: SubscriptionKind = "topics" if asked.topics is not None else "pattern"
        instance.check_kind(kind)
        try:
            await instance.consumer.subscribe(asked.topics or (), pattern=asked.topic_pattern)
        except BadOption:
            raise unprocessable(f"The {kind} cannot be subscribed to: no topic has such a name.") from None
        instance.kind = kind


async def _subscription(call: Call) -> SubscribedTopics:
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        topics = instance.consumer.subscription() if instance.kind == "topics" else None
        if instance.kind == "pattern":
            topics = {place.topic for place in instance.consumer.assignment()}
        return SubscribedTopics(sorted(topics or ()))


async def _unsubscribe(call: Call) -> None:
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        await instance.consumer.unsubscribe()
        instance.kind = None


def _check_reader(call: Call) -> None:
    """Reading moves an instance, so that neither HEAD nor a page of another site may do it."""
    headers, allowed = call.request.headers, call.services.config["access.control.allow.origin"]
    if call.request.method == "HEAD":
        raise Problem(405, 405, "Reading moves the instance. Use GET.", headers={"allow": "GET"})
    is_foreign = headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}
    if is_foreign and "*" not in allowed and headers.get("origin") not in allowed:
        raise Problem(403, 403, "A page of another site may not move an instance (access.control.allow.origin).")


async def _records(call: Call) -> Response:
    _check_reader(call)
    config = call.services.config
    async with call.services.instances.using(call.path["group"], call.path["instance"]) as instance:
        media = instance.format.media
        if call.gives not in {JSON, V2_JSON, media}:
            raise Problem(
                406,
                FORMAT_MISMATCH,
                f"This instance was made with the format {instance.format.name}. Accept {media}.",
            )
        asked_ms = instance.options.timeout_ms if call.query.timeout is None else call.query.timeout
        records = await unless_hung_up(
            call.request,
            instance.read(
                timeout_ms=min(asked_ms, config["read.timeout.max.ms"]),
                max_bytes=min(call.query.max_bytes or NUMBER_MAX, config["response.max.bytes"]),
            ),
        )
        call.services.meters.records_delivered += len(records)
        return Response(encode(records), headers={"cache-control": "no-store"}, media_type=media)


_INSTANCE = "/consumers/{group}/instances/{instance}"
ROUTES = (
    Route(
        method="POST",
        path="/consumers/{group}",
        handle=_create,
        tag="v2 consumers",
        summary="Make a consumer instance in a group",
        body=CreateInstance,
        body_optional=True,
        answer=CreatedInstance,
        accepts=V2,
        gives=V2,
        problems=(403, 409, 429),
    ),
    Route(
        method="DELETE",
        path=_INSTANCE,
        handle=_delete,
        tag="v2 consumers",
        summary="Remove an instance, which leaves its group",
        gives=V2,
    ),
    Route(
        method="POST",
        path=f"{_INSTANCE}/subscription",
        handle=_subscribe,
        tag="v2 consumers",
        summary="Read topics, shared with the others in the group",
        body=Subscription,
        accepts=V2,
        gives=V2,
        problems=(409,),
    ),
    Route(
        method="GET",
        path=f"{_INSTANCE}/subscription",
        handle=_subscription,
        tag="v2 consumers",
        summary="The topics that an instance is subscribed to",
        answer=SubscribedTopics,
        gives=V2,
    ),
    Route(
        method="DELETE",
        path=f"{_INSTANCE}/subscription",
        handle=_unsubscribe,
        tag="v2 consumers",
        summary="Read nothing any more, and leave the group",
        gives=V2,
    ),
    Route(
        method="GET",
        path=f"{_INSTANCE}/records",
        handle=_records,
        tag="v2 consumers",
        summary="The next records",
        query=RecordsQuery,
        answer=list[ShownRecord],
        gives=(V2_JSON, *EMBEDDED),
        problems=(403, 408),
    ),
)
