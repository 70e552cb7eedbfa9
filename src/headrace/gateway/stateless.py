"""Reading a partition without an instance: the client knows its place, and any gateway can answer.

The path and the parameters are those of Redpanda's proxy. Its clients ask for a media type of REST v2 and get a list of
records, as they do there; with `application/json` the answer also says where to read on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from starlette.responses import Response

from headrace.client.fault import NoBroker
from headrace.client.records import TopicPartition
from headrace.gateway.formats import BY_MEDIA, EMBEDDED, FORMATS, FormatName
from headrace.gateway.hangup import unless_hung_up
from headrace.gateway.misfit import forms
from headrace.gateway.problem import Problem
from headrace.gateway.records_v2 import Page, ShownRecord
from headrace.gateway.route import JSON, NUMBER_MAX, Call, Route, encode
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.client.fetching import FetchedPartition, Fetcher
    from headrace.gateway.services import Services

_COMMITTED = "read_committed"
_SLICE_MS = 5000
"""How long one question to a broker waits; the next one follows."""


class ReadQuery(Struct, frozen=True):
    """From where, how long to wait (ms), and how much (bytes)."""

    offset: Annotated[
        str,
        Meta(
            pattern="^(earliest|latest|-?[0-9]{1,18})$",
            description="An offset, `earliest`, `latest`, or -N for the last N.",
            extra=forms("earliest", "latest", "an offset", "-N for the last N records"),
        ),
    ] = "earliest"
    timestamp: (
        Annotated[int, Meta(ge=0, le=2**53, description="Begin with the first record at or after this time (ms).")]
        | None
    ) = None
    timeout: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] = 1000
    max_bytes: Annotated[int, Meta(ge=1, le=NUMBER_MAX)] = 1024 * 1024
    format: FormatName | None = None


class ReadRecords(Struct, frozen=True):
    """Records, and the offset to ask for next."""

    records: list[ShownRecord]
    next_offset: int


async def _read(call: Call) -> Response:
    query: ReadQuery = call.query
    place = TopicPartition(call.path["topic"], call.path["partition"])
    form = BY_MEDIA[call.gives] if query.format is None else FORMATS[query.format]
    max_bytes = min(query.max_bytes, call.services.config["response.max.bytes"])
    try:
        start = await _start(call.services, place, query)
        part = await unless_hung_up(call.request, _fetch(call.services, place, start, query.timeout, max_bytes))
    except KafkaError as error:
        raise await _explained(call.services, place, error) from None
    page = Page(form, max_bytes)
    page.add(part.records)
    next_offset = page.records[-1].offset + 1 if page.is_full else part.position
    call.services.meters.records_delivered += len(page.records)
    answer = ReadRecords(page.records, next_offset) if call.gives == JSON else page.records
    headers = {"cache-control": "no-store", "next-offset": str(next_offset)}
    return Response(encode(answer), headers=headers, media_type=JSON if call.gives == JSON else form.media)


async def _start(services: Services, place: TopicPartition, query: ReadQuery) -> int:
    """The offset to begin with."""
    if query.timestamp is not None:
        found = await _offset_of(services, place, query.timestamp)
        return found if found >= 0 else await _offset_of(services, place, "latest")
    if query.offset in {"earliest", "latest"}:
        return await _offset_of(services, place, query.offset)
    offset = int(query.offset)
    if offset >= 0 and not query.offset.startswith("-"):
        return offset
    end = await _offset_of(services, place, "latest")
    return max(end + offset, await _offset_of(services, place, "earliest"))


async def _offset_of(services: Services, place: TopicPartition, spec: int | str) -> int:
    (found,) = (await services.admin.list_offsets({place: spec}, _COMMITTED)).values()
    return found.offset


async def _fetch(
    services: Services, place: TopicPartition, start: int, timeout_ms: int, max_bytes: int
) -> FetchedPartition:
    """What is there, or what comes in time."""
    found = await _ask(services, services.fetcher, {place: start}, max_wait_ms=0, max_bytes=max_bytes)
    wait_ms = min(timeout_ms, services.config["read.timeout.max.ms"])
    if found.records or not wait_ms:
        return found
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_ms / 1000
    async with services.waiting_reads.fetcher() as fetcher:
        while not found.records and (left_ms := int((deadline - loop.time()) * 1000)) > 0:
            found = await _ask(
                services,
                fetcher,
                {place: found.position},
                max_wait_ms=min(left_ms, _SLICE_MS),
                max_bytes=max_bytes,
            )
    return found


async def _ask(
    services: Services, fetcher: Fetcher, where: dict[TopicPartition, int], *, max_wait_ms: int, max_bytes: int
) -> FetchedPartition:
    """Ask the partition's leader, and its successor if it is gone."""

    async def attempt() -> FetchedPartition:
        try:
            found = await fetcher.fetch(where, max_wait_ms=max_wait_ms, max_bytes=max_bytes, partition_bytes=max_bytes)
        except NoBroker as gone:
            # If nobody else is there either, that is the answer.
            await services.cluster.metadata(())
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, str(gone)) from None
        (part,) = found.values()
        return part

    return await services.cluster.persist(attempt)


async def _explained(services: Services, place: TopicPartition, error: KafkaError) -> Exception:
    """What is not there: the topic, the partition, or the offset."""
    if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        await services.topic_lookup.partition(*place)
    elif error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
        first = await _offset_of(services, place, "earliest")
        end = await _offset_of(services, place, "latest")
        return Problem(
            400, 40003, f"{error.message} It begins with offset {first}, and the next record will have offset {end}."
        )
    return error


ROUTES = (
    Route(
        method="GET",
        path="/topics/{topic}/partitions/{partition}/records",
        handle=_read,
        tag="v2",
        summary="Read a partition from any place",
        query=ReadQuery,
        answer=ReadRecords | list[ShownRecord],
        gives=EMBEDDED,
        problems=(403, 408, 429),
    ),
)
