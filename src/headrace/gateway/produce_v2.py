"""Producing in the shapes of REST v2, with Strimzi's timestamp, headers and `async`.

All records of a request are checked before the first one is sent: what is wrong with one of them is the request's
fault, and nothing of it is produced. What the cluster refuses afterwards stands beside the record it refused; only if
nothing at all was stored, the request as a whole has failed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from headrace.gateway.formats import BY_MEDIA, EMBEDDED, V2, Format, Misfit, from_base64
from headrace.gateway.problem import CONVERSION, RECORD_TOO_LARGE, Problem, problem_of, unprocessable
from headrace.gateway.records_v2 import RecordHeader
from headrace.gateway.route import NUMBER_MAX, Call, Route
from headrace.gateway.topic_lookup import partition_not_found
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.client.async_producer import AsyncKafkaProducer, Stored
    from headrace.client.records import RecordMetadata
    from headrace.gateway.topic_lookup import ProduceTarget

logger = logging.getLogger(__name__)

_NULL = b"null"
_TIMESTAMP_MAX = 253_402_300_799_999
"""The end of the year 9999."""
_OVERHEAD_LEAST = 68
"""What the smallest batch around one record has besides its key, value and headers."""
_REFUSES_BATCH = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_RECORD,
    }
)
"""What is wrong with one record, and is said of all that came with it."""

Outcome: TypeAlias = "RecordMetadata | BaseException"


def _null() -> Raw:
    return Raw(_NULL)


class ProduceRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A record to store: key and value in the format of the content type, null for none."""

    key: Raw = msgspec.field(default_factory=_null)
    value: Raw = msgspec.field(default_factory=_null)
    partition: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] | None = None
    timestamp: Annotated[int, Meta(ge=1, le=_TIMESTAMP_MAX)] | None = None
    headers: list[RecordHeader] | None = None


class ProduceRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Records for one topic, or for one partition of it."""

    records: Annotated[list[ProduceRecord], Meta(min_length=1)]


class ProducedOffset(Struct, frozen=True, kw_only=True):
    """Where a record is, or why it is not there."""

    partition: int | None = None
    offset: int | None = None
    error_code: int | None = None
    error: str | None = None


class ProduceResponse(Struct, frozen=True):
    """One line for each record, in the order of the records."""

    offsets: list[ProducedOffset]
    key_schema_id: int | None = None
    value_schema_id: int | None = None


class ProduceQuery(Struct, frozen=True):
    """How to produce."""

    is_async: bool = msgspec.field(name="async", default=False)


class Outgoing(Struct, frozen=True):
    """A record as it is sent."""

    key: bytes | None
    value: bytes | None
    partition: int | None
    timestamp: int | None
    headers: list[tuple[str, bytes | str | None]]

    @property
    def size_least(self) -> int:
        """No batch with this record is smaller."""
        own = len(self.key or b"") + len(self.value or b"")
        return _OVERHEAD_LEAST + own + sum(len(key) + len(value or b"") + 2 for key, value in self.headers)


async def _produce(call: Call) -> ProduceResponse | None:
    records, topic, services = call.body.records, call.path["topic"], call.services
    most = services.config["produce.records.max"]
    if len(records) > most:
        raise Problem(413, 413, f"One request may have {most} records, not {len(records)} (produce.records.max).")
    outgoing = outgoing_records(records, BY_MEDIA[call.media], call.path.get("partition"))
    highest = max((-1 if one.partition is None else one.partition) for one in outgoing)
    before = services.topic_lookup.known_target(topic)
    target = await services.topic_lookup.target(topic, partition=highest)
    check_target(outgoing, topic, target)
    producer = await services.producer()
    if before is not None and before.partitions != target.partitions:
        # The engine believes for minutes what it once heard of a topic, unless it is made to ask again.
        await producer.partitions_for(topic)
    sent = [await _send(producer, topic, record) for record in outgoing]
    if call.query.is_async:
        services.later(_watch(producer, topic, outgoing, sent))
        return None
    outcomes = await _outcomes(producer, topic, outgoing, sent)
    failures = [one for one in outcomes if isinstance(one, BaseException)]
    if len(failures) == len(outcomes):
        raise failures[0]
    return ProduceResponse([_refused(one) if isinstance(one, BaseException) else _stored(one) for one in outcomes])


def outgoing_records(records: Sequence[ProduceRecord], form: Format, partition: int | None) -> list[Outgoing]:
    """The records as they are sent; Problem(422) names the first thing that is wrong."""
    found: list[Outgoing] = []
    for number, record in enumerate(records):
        if partition is not None and record.partition is not None:
            raise unprocessable(f"records[{number}].partition: the path says which partition it is.")
        found.append(
            Outgoing(
                _converted(f"records[{number}].key", record.key, form),
                _converted(f"records[{number}].value", record.value, form),
                record.partition if partition is None else partition,
                record.timestamp,
                [_header(f"records[{number}].headers[{place}]", one) for place, one in enumerate(record.headers or ())],
            )
        )
    return found


def _converted(where: str, raw: Raw, form: Format) -> bytes | None:
    text = bytes(raw)
    if text == _NULL:
        return None
    try:
        return form.to_bytes(text)
    except Misfit as misfit:
        raise unprocessable(f"{where} {misfit}, as the content type says.", CONVERSION) from None


def _header(where: str, header: RecordHeader) -> tuple[str, bytes | str | None]:
    try:
        return header.key, None if header.value is None else from_base64(header.value)
    except Misfit as misfit:
        raise unprocessable(f"{where}.value {misfit}.", CONVERSION) from None


def check_target(outgoing: Sequence[Outgoing], topic: str, target: ProduceTarget) -> None:
    """Problem if a record goes to a partition that is not there, or is larger than the topic takes."""
    limit = target.record_bytes_max
    for number, record in enumerate(outgoing):
        if record.partition is not None and record.partition >= target.partitions:
            raise partition_not_found(topic, record.partition)
        if limit is not None and record.size_least > limit:
            raise Problem(
                413,
                RECORD_TOO_LARGE,
                f"records[{number}] is too large: topic '{topic}' takes {limit} bytes (max.message.bytes).",
            )


async def _send(producer: AsyncKafkaProducer, topic: str, record: Outgoing) -> Stored:
    return await producer.send(
        topic,
        record.value,
        record.key,
        partition=record.partition,
        timestamp_ms=record.timestamp,
        headers=record.headers,
    )


async def _outcomes(
    producer: AsyncKafkaProducer, topic: str, outgoing: Sequence[Outgoing], sent: Sequence[Stored]
) -> list[Outcome]:
    """What became of each record.

    A broker refuses a batch as a whole, and the engine fills batches without knowing what the topic takes: what was
    refused in the company of others is sent again alone, so that only those are refused that deserve it.
    """
    outcomes: list[Outcome] = await asyncio.gather(*sent, return_exceptions=True)
    for number, outcome in enumerate(outcomes):
        if len(outgoing) > 1 and isinstance(outcome, KafkaError) and outcome.code in _REFUSES_BATCH:
            stored = await _send(producer, topic, outgoing[number])
            (outcomes[number],) = await asyncio.gather(stored, return_exceptions=True)
    return outcomes


def _stored(found: RecordMetadata) -> ProducedOffset:
    return ProducedOffset(partition=found.partition, offset=found.offset)


def _refused(error: BaseException) -> ProducedOffset:
    problem = problem_of(error) if isinstance(error, Exception) else None
    if problem is None:
        raise error
    return ProducedOffset(error_code=problem.code, error=problem.message)


async def _watch(
    producer: AsyncKafkaProducer, topic: str, outgoing: Sequence[Outgoing], sent: Sequence[Stored]
) -> None:
    """Nobody waits for records that were sent with `async`; that one is lost is said in the log."""
    for outcome in await _outcomes(producer, topic, outgoing, sent):
        if isinstance(outcome, BaseException):
            logger.warning("record_lost topic=%s error=%s", topic, outcome)


def _route(path: str, summary: str) -> Route:
    return Route(
        method="POST",
        path=path,
        handle=_produce,
        tag="v2",
        summary=summary,
        query=ProduceQuery,
        body=ProduceRequest,
        answer=ProduceResponse,
        accepts=EMBEDDED,
        # Some clients want the answer in the type of what they send.
        gives=(*V2, *EMBEDDED[1:]),
        problems=(403,),
        may_give_nothing=True,
    )


ROUTES = (
    _route("/topics/{topic}", "Store records in a topic"),
    _route("/topics/{topic}/partitions/{partition}", "Store records in one partition"),
)
