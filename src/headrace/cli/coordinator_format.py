"""Kafka's formatters of the coordinators' topics: offsets, groups, transactions and share state as JSON."""

from __future__ import annotations

import json
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

from headrace.cli.message_json import message_json
from headrace.model.errors import HeadraceError, MalformedRequest
from headrace.wire.coordinator_records import (
    GROUP_RECORDS,
    SHARE_STATE_RECORDS,
    TRANSACTION_RECORDS,
    RecordCodec,
    UnknownRecord,
)
from headrace.wire.schema import load_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from headrace.cli.record_format import Format, Shown

_NUMBER = struct.Struct(">h")
_GROUP_MODULES = ("group_records", "share_group_records", "streams_group_records")


class NotFormatted(HeadraceError):
    """A record that is not what its topic promises."""


def _types(module: str, *, only: Callable[[str], bool] = lambda _: True) -> frozenset[int]:
    return frozenset(message.key for message in load_messages(module) if only(message.name))


def _offset_types() -> frozenset[int]:
    return frozenset({0, 1})


def _group_types() -> frozenset[int]:
    return frozenset({2})


def _share_types() -> frozenset[int]:
    return _types("share_group_records")


def _all_types() -> frozenset[int]:
    return frozenset(range(1 << 15))


_TOPICS: dict[str, tuple[RecordCodec, tuple[str, ...], Callable[[], Container[int]]]] = {
    "OffsetsMessageFormatter": (GROUP_RECORDS, _GROUP_MODULES, _offset_types),
    "GroupMetadataMessageFormatter": (GROUP_RECORDS, _GROUP_MODULES, _group_types),
    "ShareGroupMessageFormatter": (GROUP_RECORDS, _GROUP_MODULES, _share_types),
    "TransactionLogMessageFormatter": (TRANSACTION_RECORDS, ("transaction_records",), _all_types),
    "ShareGroupStateMessageFormatter": (SHARE_STATE_RECORDS, ("share_state_records",), _all_types),
}
"""Per formatter: how to read the topic, where its records are described, and which types of them are shown."""


def coordinator_format(name: str) -> Format:
    """The formatter of that name; records of other types, and of types of later days, are passed over."""
    codec, modules, types = _TOPICS[name]
    allowed, home = types(), homes(modules)

    def show(record: Shown) -> bytes:
        key, value = record.key(), record.value()
        if key is None:
            return b""
        try:
            (kind,) = _NUMBER.unpack_from(key)
            if kind not in allowed:
                return b""
            decoded_key, decoded_value = codec.decode(key, value)
        except UnknownRecord:
            return b""
        except (MalformedRequest, struct.error) as error:
            raise NotFormatted(f"Could not read record at offset {record.offset()} due to: {error}") from error
        data = message_json(home[type(decoded_key).__name__], decoded_key, 0)
        shown: dict[str, Any] = {"key": {"type": kind, "data": data}, "value": None}
        if value is not None:
            (version,) = _NUMBER.unpack_from(value)
            data = message_json(home[type(decoded_value).__name__], decoded_value, version)
            shown["value"] = {"version": version, "data": data}
        return json.dumps(shown, separators=(",", ":"), ensure_ascii=False).encode()

    return show


@cache
def homes(modules: tuple[str, ...]) -> dict[str, str]:
    """Which of the modules describes a message, by its name."""
    return {message.name: module for module in modules for message in load_messages(module)}
