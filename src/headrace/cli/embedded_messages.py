"""Messages inside records that only tools look into: control records, what classic consumers tell, all of KRaft's.

The broker knows the records of the metadata log that it writes; kafka-dump-log shows those of any Kafka 4.3.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from pkgutil import get_data
from typing import TYPE_CHECKING, Any

from msgspec import Struct, defstruct

from headrace.cli.message_json import described_json
from headrace.model.errors import MalformedRequest
from headrace.model.ids import ZERO_ID
from headrace.wire.codec import decode
from headrace.wire.compiler import compile_reader
from headrace.wire.metadata_records import FRAME_VERSION
from headrace.wire.primitives import BAD_BYTES, read_uvarint
from headrace.wire.schema import Field, Message, parse_schema

if TYPE_CHECKING:
    from headrace.wire.compiler import Reader
    from headrace.wire.primitives import Buffer


METADATA_RECORDS = frozenset(
    {
        "AbortTransactionRecord",
        "AccessControlEntryRecord",
        "BeginTransactionRecord",
        "BrokerRegistrationChangeRecord",
        "ClearElrRecord",
        "ClientQuotaRecord",
        "ConfigRecord",
        "DelegationTokenRecord",
        "EndTransactionRecord",
        "FeatureLevelRecord",
        "FenceBrokerRecord",
        "NoOpRecord",
        "PartitionChangeRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "RemoveAccessControlEntryRecord",
        "RemoveDelegationTokenRecord",
        "RemoveTopicRecord",
        "RemoveUserScramCredentialRecord",
        "TopicRecord",
        "UnfenceBrokerRecord",
        "UnregisterBrokerRecord",
        "UserScramCredentialRecord",
        "ZkMigrationStateRecord",
    }
)
"""Which of the messages are records of the metadata log; their keys are the types written there."""

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VERSION = struct.Struct(">h")
_EMPTY: dict[str, Any] = {"string": "", "bytes": b"", "uuid": ZERO_ID, "bool": False}


@cache
def _messages() -> dict[str, Message]:
    text = get_data("headrace.cli", "kafka_records.txt")
    assert text is not None, "kafka_records.txt is not part of this installation"
    return {message.name: message for message in parse_schema(text.decode())}


@cache
def _metadata_records() -> dict[int, Message]:
    return {message.key: message for message in _messages().values() if message.name in METADATA_RECORDS}


@cache
def _reader(name: str, version: int) -> Reader:
    message = _messages()[name]
    classes: dict[str, type[Struct]] = {}
    # A struct stands behind those that use it, and its default is needed before theirs.
    for struct_name in reversed(message.structs):
        fields = [(field.name, Any, _default(field, classes)) for field in message.structs[struct_name]]
        classes[struct_name] = defstruct(struct_name, fields, kw_only=True, frozen=True)
    return compile_reader(message, version, classes)


def _default(field: Field, classes: dict[str, type[Struct]]) -> Any:
    if field.has_default:
        return field.default
    if field.is_array:
        return ()
    return classes[field.type]() if field.is_struct else _EMPTY.get(field.type, 0)


def metadata_json(data: Buffer) -> dict[str, Any]:
    """A record of the metadata log as kafka-dump-log prints it; MalformedRequest if it is none."""
    try:
        frame, at = read_uvarint(data, 0)
        key, at = read_uvarint(data, at)
        version, at = read_uvarint(data, at)
    except BAD_BYTES as error:
        raise MalformedRequest(f"not a metadata record: {error}") from error
    message = _metadata_records().get(key)
    if frame != FRAME_VERSION or message is None or not message.versions.cover(version):
        raise MalformedRequest(f"metadata record of type {key} in version {version}, frame version {frame}")
    value = decode(_reader(message.name, version), data, at)
    kind = _WORD.sub("_", message.name).upper()
    return {"type": kind, "version": version, "data": described_json(message, value, version)}


def embedded_json(name: str, data: Buffer, *, has_version_first: bool) -> dict[str, Any]:
    """The message in these bytes as Kafka's tools print it; MalformedRequest if it is none.

    The version is the first number, which either stands before the message or is its own first field.
    """
    if len(data) < _VERSION.size:
        raise MalformedRequest(f"{name} is cut short")
    (version,) = _VERSION.unpack_from(data)
    message = _messages()[name]
    version = min(version, message.versions.last)
    if version < 0:
        raise MalformedRequest(f"{name} in version {version}")
    start = _VERSION.size if has_version_first else 0
    return described_json(message, decode(_reader(name, version), data, start), version)
