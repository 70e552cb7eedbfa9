"""What kafka-dump-log prints for a record's key and value: text, numbers, or Kafka's own records as JSON."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

from headrace.cli.coordinator_format import homes
from headrace.cli.embedded_messages import embedded_json, metadata_json
from headrace.cli.message_json import message_json
from headrace.cli.session import Failure
from headrace.model.errors import MalformedRequest
from headrace.wire.coordinator_records import (
    GROUP_RECORDS,
    SHARE_STATE_RECORDS,
    TRANSACTION_RECORDS,
    RecordCodec,
    UnknownRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.records.walk import Record

    Parsed = tuple[str | None, str | None]
    Parser = Callable[[Record], Parsed]
    Decoder = Callable[[memoryview], str]

_NUMBER = struct.Struct(">h")
DELETED = "<DELETE>"


def compact(document: Any) -> str:
    """JSON as Kafka's tools write it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


# --- keys and values by decoder classes


def _text(data: memoryview) -> str:
    return bytes(data).decode(errors="replace")


def _integer(data: memoryview) -> str:
    return str(int.from_bytes(data[:4], signed=True))


def _long(data: memoryview) -> str:
    return str(int.from_bytes(data[:8], signed=True))


DECODERS: dict[str, Decoder] = {
    "StringDecoder": _text,
    "IntegerDecoder": _integer,
    "LongDecoder": _long,
    "DefaultDecoder": lambda data: bytes(data).hex(),
}
"""Kafka's decoders by the last part of their names; bytes are shown in hex, where Java shows an address."""


def decoded(key_class: str, value_class: str) -> Parser:
    """A parser that reads keys and values with these decoders."""
    key_decoder, value_decoder = _decoder(key_class), _decoder(value_class)

    def parse(record: Record) -> Parsed:
        key = None if record.key is None else key_decoder(record.key)
        return key, None if record.value is None else value_decoder(record.value)

    return parse


def _decoder(name: str) -> Decoder:
    found = DECODERS.get(name.replace("$", ".").rsplit(".", 1)[-1])
    if found is None:
        raise Failure(f"Failed to load decoder class {name}", remedy=f"Known are: {', '.join(DECODERS)}.")
    return found


# --- the coordinators' topics


def _coordinator(codec: RecordCodec, modules: tuple[str, ...]) -> Parser:
    def parse(record: Record) -> Parsed:
        if record.key is None:
            raise Failure(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            key, value = codec.decode(record.key, record.value)
        except UnknownRecord:
            kind = _NUMBER.unpack_from(record.key)[0]
            return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
        except (MalformedRequest, struct.error) as error:
            return f"Error at offset {record.offset}, skipping. {error}", None
        kind = _NUMBER.unpack_from(record.key)[0]
        shown = compact({"type": str(kind), "data": message_json(homes(modules)[type(key).__name__], key, 0)})
        if record.value is None:
            return shown, DELETED
        version = _NUMBER.unpack_from(record.value)[0]
        data = message_json(homes(modules)[type(value).__name__], value, version)
        if data.get("protocolType") == "consumer":
            _open_members(data, value)
        return shown, compact({"version": str(version), "data": data})

    return parse


_EMBEDDED = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}


def _open_members(data: dict[str, Any], value: Any) -> None:
    """Show what consumers on the classic protocol told; bytes that are not theirs stay bytes."""
    for shown, member in zip(data.get("members", ()), getattr(value, "members", ()), strict=False):
        for field, name in _EMBEDDED.items():
            try:
                shown[field] = embedded_json(name, getattr(member, field), has_version_first=True)
            except MalformedRequest:
                continue


# --- the metadata log


def _metadata(record: Record) -> Parsed:
    try:
        return None, compact(metadata_json(record.value or b""))
    except MalformedRequest as error:
        return None, f"Error at {record.offset}, skipping. {error}"


def _remote(record: Record) -> Parsed:
    return None, f"Error at offset {record.offset}, skipping. Records of tiered storage are not understood here."


PARSERS: dict[str, Parser] = {
    "offsets-decoder": _coordinator(GROUP_RECORDS, ("group_records", "share_group_records", "streams_group_records")),
    "transaction-log-decoder": _coordinator(TRANSACTION_RECORDS, ("transaction_records",)),
    "cluster-metadata-decoder": _metadata,
    "remote-log-metadata-decoder": _remote,
    "share-group-state-decoder": _coordinator(SHARE_STATE_RECORDS, ("share_state_records",)),
}
"""Per option, in the order in which they take precedence."""
