"""Producing in the shapes of REST v3: one record, several in a batch, or as many as come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from headrace.gateway.problem import bad_request, unprocessable
from headrace.gateway.reading import read_body, read_json
from headrace.gateway.route import JSON, NDJSON, Call, Route
from headrace.gateway.v3_address import CLUSTER, cluster_of
from headrace.gateway.v3_record import (
    ProduceRecord,
    ProduceReport,
    failure,
    hand_over,
    prepare,
    report,
)
from headrace.gateway.v3_record_stream import RecordStream

ENTRIES_MAX = 10_000
_PIECE_BYTES = 64 * 1024
_WHOLE = msgspec.json.Decoder(Raw)
EntryId = Annotated[str, Meta(min_length=1, max_length=80, examples=["1"])]


class BatchEntry(ProduceRecord, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record of a batch."""

    id: Annotated[EntryId, Meta(description="By which its result is found.")]


class ProduceBatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several records."""

    entries: Annotated[list[BatchEntry], Meta(min_length=1, max_length=ENTRIES_MAX)]


class BatchSuccess(ProduceReport, frozen=True, kw_only=True):
    """Where a record of a batch was stored."""

    id: EntryId


class BatchFailure(Struct, frozen=True, kw_only=True):
    """Why a record of a batch was not stored."""

    id: EntryId
    error_code: Annotated[int, Meta(examples=[40402])]
    message: str


class BatchResult(Struct, frozen=True, kw_only=True):
    """What became of each record."""

    successes: list[BatchSuccess]
    failures: list[BatchFailure]


async def _produce(call: Call) -> Any:
    await cluster_of(call)
    topic: str = call.path["topic_name"]
    await call.services.topics.partitions_of(topic)
    limit = call.services.config["request.max.bytes"]
    declared = call.request.headers.get("content-length", "")
    if not (declared.isdigit() and int(declared[:20]) <= limit):
        if not declared and "transfer-encoding" not in call.request.headers:
            raise bad_request("The body is empty; a record belongs there.")
        return RecordStream(call, topic, call.request.stream())
    body = await read_body(call.request, call.services)
    if _is_several(body):
        return RecordStream(call, topic, _in_pieces(body))
    prepared = prepare(read_json(body, ProduceRecord))
    return report(call.path["cluster_id"], prepared, await (await hand_over(call.services, topic, prepared)))


def _is_several(body: bytes) -> bool:
    """Whether an object is followed by something; what else may be wrong is said by whoever reads it."""
    try:
        _WHOLE.decode(body)
    except msgspec.DecodeError as fault:
        return body.lstrip().startswith(b"{") and "trailing characters" in str(fault)
    except RecursionError:
        return False
    return False


async def _in_pieces(body: bytes) -> AsyncIterator[bytes]:
    """As it would have come, so that nobody waits while all of it is looked through."""
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]


async def _batch(call: Call) -> BatchResult:
    await cluster_of(call)
    asked: ProduceBatch = call.body
    if len({one.id for one in asked.entries}) != len(asked.entries):
        raise unprocessable("An id is there twice; each entry needs one of its own.")
    await call.services.topics.partitions_of(call.path["topic_name"])
    result = BatchResult(successes=[], failures=[])
    waiting = [await _hand_over(call, one) for one in asked.entries]
    for outcome in await asyncio.gather(*waiting):
        (result.successes if isinstance(outcome, BatchSuccess) else result.failures).append(outcome)
    return result


async def _hand_over(call: Call, entry: BatchEntry) -> Any:
    """What will become of an entry; entries are handed over in their order."""
    try:
        prepared = prepare(entry)
        stored = await hand_over(call.services, call.path["topic_name"], prepared)
    except Exception as error:  # noqa: BLE001 - a mistake of ours flies on from there
        return _failed(entry, error)

    async def outcome() -> BatchSuccess | BatchFailure:
        try:
            made = report(call.path["cluster_id"], prepared, await stored)
        except Exception as error:  # noqa: BLE001 - a mistake of ours flies on from there
            return await _failed(entry, error)
        return BatchSuccess(id=entry.id, **{name: getattr(made, name) for name in made.__struct_fields__})

    return outcome()


async def _failed(entry: BatchEntry, error: Exception) -> BatchFailure:
    return BatchFailure(id=entry.id, **failure(error))


_RECORDS = f"{CLUSTER}/topics/{{topic_name}}/records"
_EXAMPLE = {
    "key": {"type": "STRING", "data": "truck-7"},
    "value": {"type": "JSON", "data": {"truck": 7, "speed_kmh": 62.5}},
    "headers": [{"name": "source", "value": "Z3Bz"}],
}
_STREAMING = """\
One record, answered with its delivery report.

With `Transfer-Encoding: chunked`, or with several objects one after another in one body (on lines of their own or not),
it is a stream: the status is 200 as soon as the stream begins, and each record gets one report, in order, on a line of
its own, while the body is still being sent. `error_code` in the report decides: 200, or why this record was not stored;
the stream goes on. What is not JSON ends it, after a report that says so. `request.max.bytes` bounds each record, not
the body. Reports that nobody reads stop the gateway from reading more records.
"""

ROUTES = (
    Route(
        method="POST",
        path=_RECORDS,
        handle=_produce,
        tag="v3 records",
        summary="Produce a record, or a stream of them",
        detail=_STREAMING,
        body=ProduceRecord,
        example=_EXAMPLE,
        answer=ProduceReport,
        accepts=(JSON, NDJSON),
        gives=(JSON, NDJSON),
        reads_body_itself=True,
        problems=(403, 429),
    ),
    Route(
        method="POST",
        path=f"{_RECORDS}:batch",
        handle=_batch,
        tag="v3 records",
        summary="Produce several records",
        detail="Each is stored or not for itself; `id` says which result is whose.",
        body=ProduceBatch,
        example={"entries": [{"id": "1", **_EXAMPLE}, {"id": "2", "value": {"type": "STRING", "data": "hello"}}]},
        answer=BatchResult,
        status=207,
        problems=(403,),
    ),
)
