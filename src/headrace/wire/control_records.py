"""Control records of the metadata log and its snapshots in Kafka's framing.

A record's key is a version and a type, its value the message in the version that is also its first field.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from headrace.model.errors import MalformedRequest
from headrace.records.batch import CorruptBatch
from headrace.records.build import NO_EPOCH, NewRecord, build_batch
from headrace.records.compression import Bytes
from headrace.records.walk import walk
from headrace.wire.codec import decode, encode, reader_of, writer_of
from headrace.wire.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from headrace.wire.schema import Message, load_messages

ControlRecord = LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord

_MODULE: Final = "control_records"
_KEY: Final = struct.Struct(">hh")
_KEY_VERSION: Final = 0
_VERSION: Final = struct.Struct(">h")
_MESSAGES: Final[dict[int, Message]] = {message.key: message for message in load_messages(_MODULE)}
_TYPES: Final = {message.name: message.key for message in _MESSAGES.values()}


def build_control_batch(
    records: Sequence[ControlRecord], *, timestamp_ms: int, base_offset: int = 0, leader_epoch: int = NO_EPOCH
) -> bytearray:
    """One control batch with these records."""
    return build_batch(
        [NewRecord(timestamp_ms, *encode_control_record(record)) for record in records],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        control=True,
    )


def encode_control_record(record: ControlRecord) -> tuple[bytes, bytes]:
    """A control record's key and value."""
    name = type(record).__name__
    return _KEY.pack(_KEY_VERSION, _TYPES[name]), encode(writer_of(_MODULE, name, record.version), record)


def read_control_batch(batch: Bytes) -> Iterator[ControlRecord]:
    """The records of a control batch that are known here; CorruptBatch if one is broken."""
    for record in walk(batch):
        if record.key is None or len(record.key) < _KEY.size or record.value is None:
            raise CorruptBatch("a control record has no type or no value")
        message = _MESSAGES.get(_KEY.unpack_from(record.key)[1])
        if message is not None:
            yield _decode(message, record.value)


def _decode(message: Message, value: Bytes) -> ControlRecord:
    if len(value) < _VERSION.size:
        raise CorruptBatch(f"a {message.name} has no version")
    # A later version may say more; what we know of it stands at the front.
    version = min(_VERSION.unpack_from(value)[0], message.versions.last)
    try:
        record: ControlRecord = decode(reader_of(_MODULE, message.name, max(version, 0)), value)
    except MalformedRequest as fault:
        raise CorruptBatch(f"a {message.name} cannot be read: {fault}") from fault
    return record
