"""A record as REST v3 takes it, and what becomes of it: the delivery report."""

from __future__ import annotations

import asyncio
import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from headrace.client.records import RecordMetadata
from headrace.gateway.moment import milliseconds, moment_of
from headrace.gateway.problem import CONVERSION, PARTITION_NOT_FOUND, Problem, problem_of, unprocessable
from headrace.gateway.services import Services
from headrace.gateway.v3_clusters import ClusterId

Base64 = Annotated[
    str | None,
    Meta(description="Bytes, in base64.", extra_json_schema={"contentEncoding": "base64"}, examples=["aGk="]),
]
DataType = Literal["BINARY", "JSON", "STRING"]


class BinaryData(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="BINARY"):
    """Bytes."""

    data: Base64


class JsonData(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="JSON"):
    """JSON, stored as it is written here but for blanks; null is no value at all."""

    data: Annotated[Raw, Meta(examples=[{"truck": 7, "speed_kmh": 62.5}])]


class StringData(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="STRING"):
    """Text, stored as UTF-8."""

    data: Annotated[str | None, Meta(examples=["truck-7"])]


Data = BinaryData | JsonData | StringData


class RecordHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A header of a record."""

    name: Annotated[str, Meta(examples=["source"])]
    value: Base64 = None


class ProduceRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record to produce."""

    partition_id: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)] | None, Meta(description="Chosen by the key if absent.")
    ] = None
    headers: list[RecordHeader] = []
    key: Data | None = None
    value: Annotated[Data | None, Meta(description="Without one, the record is a tombstone.")] = None
    timestamp: Annotated[
        Annotated[datetime, Meta(tz=True)] | None, Meta(description="Now if absent.", examples=["2026-01-31T12:00:00Z"])
    ] = None


class DataSize(Struct, frozen=True, kw_only=True):
    """What a key or value was, and how many bytes it has."""

    type: DataType
    size: Annotated[int, Meta(examples=[7])]


class ProduceReport(Struct, frozen=True, kw_only=True):
    """Where a record was stored."""

    error_code: Literal[200] = 200
    cluster_id: ClusterId
    topic_name: Annotated[str, Meta(examples=["trucks"])]
    partition_id: Annotated[int, Meta(examples=[0])]
    offset: Annotated[int, Meta(examples=[1042])]
    timestamp: datetime | None
    key: DataSize | None
    value: DataSize | None


class Prepared(NamedTuple):
    """A record as the producer takes it."""

    record: ProduceRecord
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int | None

    @property
    def size(self) -> int:
        """Its bytes, roughly."""
        return (
            len(self.key or b"") + len(self.value or b"") + sum(len(name) + len(v or b"") for name, v in self.headers)
        )


def prepare(record: ProduceRecord) -> Prepared:
    """A record's bytes; Problem says what cannot be made of it."""
    timestamp_ms = None if record.timestamp is None else milliseconds(record.timestamp)
    if timestamp_ms is not None and timestamp_ms < 0:
        raise unprocessable("A record's timestamp cannot lie before 1970.")
    headers = [(one.name, _from_base64(one.value, f"header '{one.name[:100]}'")) for one in record.headers]
    return Prepared(record, _to_bytes(record.key, "key"), _to_bytes(record.value, "value"), headers, timestamp_ms)


def _to_bytes(data: Data | None, what: str) -> bytes | None:
    match data:
        case None:
            return None
        case BinaryData(data=text):
            return _from_base64(text, what)
        case StringData(data=text):
            return None if text is None else text.encode()
        case JsonData(data=raw):
            return _compact(bytes(raw), what)


def _from_base64(text: str | None, what: str) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise unprocessable(f"The {what} is not base64.", CONVERSION) from None


def _compact(raw: bytes, what: str) -> bytes | None:
    try:
        raw.decode()
        return None if raw == b"null" else msgspec.json.format(raw, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise unprocessable(f"The {what} is not JSON.", CONVERSION) from None


async def hand_over(services: Services, topic: str, prepared: Prepared) -> asyncio.Future[RecordMetadata]:
    """Give a record to the producer; Problem or KafkaError if it cannot be stored anywhere."""
    count = await services.topics.partitions_of(topic)
    partition = prepared.record.partition_id
    if partition is not None and partition >= count:
        raise Problem(404, PARTITION_NOT_FOUND, f"Topic '{topic}' has no partition {partition}.")
    producer = await services.producer()
    stored = await producer.send(
        topic, prepared.value, prepared.key, partition, prepared.timestamp_ms, prepared.headers or None
    )
    # Whoever waited may be gone when it fails.
    stored.add_done_callback(lambda done: done.cancelled() or done.exception())
    return stored


def report(cluster_id: str, prepared: Prepared, stored: RecordMetadata) -> ProduceReport:
    """What became of a record that was stored."""
    return ProduceReport(
        cluster_id=cluster_id,
        topic_name=stored.topic,
        partition_id=stored.partition,
        offset=stored.offset,
        timestamp=moment_of(stored.timestamp),
        key=_size(prepared.record.key, prepared.key),
        value=_size(prepared.record.value, prepared.value),
    )


def _size(data: Data | None, made: bytes | None) -> DataSize | None:
    return None if data is None else DataSize(type=_TYPES[type(data)], size=len(made or b""))


_TYPES: dict[type, DataType] = {BinaryData: "BINARY", JsonData: "JSON", StringData: "STRING"}


def failure(error: Exception) -> dict[str, Any]:
    """What became of a record that was not; a mistake of ours flies on."""
    problem = problem_of(error)
    if problem is None:
        raise error
    return problem.body()
