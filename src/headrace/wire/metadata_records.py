"""Records of the cluster metadata log in Kafka's framing: frame version, record type and version, then the record."""

from headrace.model.errors import MalformedRequest
from headrace.model.metadata_records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from headrace.wire.codec import decode, encode, reader_of, writer_of
from headrace.wire.primitives import BAD_BYTES, Buffer, read_uvarint, write_uvarint
from headrace.wire.schema import Message, load_messages

FRAME_VERSION = 1

WRITTEN_VERSIONS: dict[type, int] = {
    RegisterBrokerRecord: 3,
    PartitionRecord: 2,
    PartitionChangeRecord: 2,
    BrokerRegistrationChangeRecord: 2,
}
"""Versions a cluster writes, as metadata version 25 (4.0-IV3) has them; records not named have one version only.

Of what came since only cordoned log dirs (30, 4.3-IV0) are in the records: where there are such, they take one more.
"""

_MODULE = "metadata_records"
_MESSAGES: dict[int, Message] = {message.key: message for message in load_messages(_MODULE)}
_KEYS = {message.name: message.key for message in _MESSAGES.values()}


def encode_metadata_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """A metadata record as a value of the metadata log, in the version a cluster writes if none is told."""
    name = type(record).__name__
    if version is None:
        version = WRITTEN_VERSIONS.get(type(record), 0) + _has_cordoned(record)
    out = bytearray()
    for number in (FRAME_VERSION, _KEYS[name], version):
        write_uvarint(out, number)
    return bytes(out) + encode(writer_of(_MODULE, name, version), record)


def _has_cordoned(record: MetadataRecord) -> bool:
    if not isinstance(record, RegisterBrokerRecord | BrokerRegistrationChangeRecord):
        return False
    return record.cordoned_log_dirs is not None


def decode_metadata_record(data: Buffer) -> MetadataRecord:
    """The record a value of the metadata log holds; MalformedRequest if it is none we know."""
    try:
        frame_version, at = read_uvarint(data, 0)
        key, at = read_uvarint(data, at)
        version, at = read_uvarint(data, at)
    except BAD_BYTES as error:
        raise MalformedRequest(f"not a metadata record: {error}") from error
    if frame_version != FRAME_VERSION:
        raise MalformedRequest(f"metadata record in frame version {frame_version}")
    message = _MESSAGES.get(key)
    if message is None or not message.versions.cover(version):
        raise MalformedRequest(f"metadata record of type {key} in version {version}")
    record: MetadataRecord = decode(reader_of(_MODULE, message.name, version), data, at)
    return record
