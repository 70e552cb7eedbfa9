"""Records of the coordinators' topics in Kafka's framing.

A record's key starts with its type, its value with the version it is written in; a null value forgets the key.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from headrace.model.errors import MalformedRequest
from headrace.model.group_records import OffsetCommitValue
from headrace.wire.codec import decode, encode, reader_of, writer_of
from headrace.wire.compiler import Writer
from headrace.wire.primitives import Buffer
from headrace.wire.schema import load_messages

_TYPE: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0
_KEYS_KEPT: Final = 10_000
_OFFSET_VERSION: Final = 4
_PLAIN_OFFSET: Final = struct.Struct(">hqiBqBBB16s").pack
"""Version, offset, leader epoch, an empty note, timestamp; one tagged field of 16 bytes with tag 0, the topic's id."""

Entry = tuple[Any, Any]
"""A record's key and its value, None where the key is forgotten."""

EncodedEntry = tuple[bytes, bytes | bytearray | None]
"""The same as it stands in the log."""


class UnknownRecord(Exception):
    """A record of a type that a later version may know; to be passed over."""


class RecordCodec:
    """The records of one topic, from the families of messages that live in it."""

    def __init__(self, modules: Sequence[str], value_versions: Mapping[str, int]) -> None:
        self._names: dict[str, tuple[str, int]] = {}
        """The module and the type of each message."""
        self._keys: dict[int, str] = {}
        self._values: dict[int, tuple[str, int]] = {}
        for module in modules:
            for message in load_messages(module):
                self._names[message.name] = (module, message.key)
                if message.name.endswith("Key"):
                    self._keys[message.key] = message.name
                else:
                    self._values[message.key] = (message.name, message.versions.last)
        self._value_versions = value_versions
        self._writers: dict[type, tuple[Writer, bytes]] = {}
        # The same keys are written again and again: a group commits the same partitions every few seconds.
        self._encode_key = lru_cache(maxsize=_KEYS_KEPT)(self._new_key)

    def encode(self, key: Any, value: Any) -> tuple[bytes, bytes | None]:
        """A record's key and value as they stand in the log."""
        if value is None:
            return self._encode_key(key), None
        write, head = self._writers.get(value.__class__) or self._writer_for(value.__class__)
        return self._encode_key(key), encode(write, value, head)

    def encode_all(self, entries: Sequence[Entry]) -> list[EncodedEntry]:
        """Keys and values of records as they stand in the log; HOT."""
        encode_key, writers = self._encode_key, self._writers
        encoded: list[EncodedEntry] = []
        for key, value in entries:
            if value is None:
                encoded.append((encode_key(key), None))
                continue
            if value.__class__ is OffsetCommitValue and not value.metadata and value.topic_id.int:
                encoded.append((encode_key(key), _plain_offset(value)))
                continue
            write, head = writers.get(value.__class__) or self._writer_for(value.__class__)
            out = bytearray(head)
            write(out, value)
            encoded.append((encode_key(key), out))
        return encoded

    def _writer_for(self, kind: type) -> tuple[Writer, bytes]:
        """What writes a value, and what stands before it."""
        found = self._writers[kind] = self._new_writer(kind.__name__)
        return found

    def _new_writer(self, name: str) -> tuple[Writer, bytes]:
        version = self._value_versions.get(name, 0)
        return writer_of(self._names[name][0], name, version), _TYPE.pack(version)

    def _new_key(self, key: Any) -> bytes:
        name = type(key).__name__
        module, kind = self._names[name]
        return _TYPE.pack(kind) + encode(writer_of(module, name, _KEY_VERSION), key)

    def decode(self, key: Buffer, value: Buffer | None) -> Entry:
        """What a record of the log says; UnknownRecord if it is of a type of later days, MalformedRequest if broken."""
        try:
            (kind,) = _TYPE.unpack_from(key)
            name = self._keys.get(kind)
            if name is None:
                raise UnknownRecord(f"record type {kind}")
            module, _ = self._names[name]
            decoded = decode(reader_of(module, name, _KEY_VERSION), key, _TYPE.size)
            return decoded, None if value is None else self._decode_value(module, kind, value)
        except struct.error as error:
            raise MalformedRequest(f"a coordinator's record is cut short: {error}") from error

    def _decode_value(self, module: str, kind: int, value: Buffer) -> Any:
        (version,) = _TYPE.unpack_from(value)
        name, last = self._values[kind]
        if not 0 <= version <= last:
            raise UnknownRecord(f"{name} in version {version}")
        return decode(reader_of(module, name, version), value, _TYPE.size)


def _plain_offset(value: OffsetCommitValue) -> bytes:
    """An offset without a note, as nearly all are, in half the time of the writer that knows everything."""
    return _PLAIN_OFFSET(
        _OFFSET_VERSION, value.offset, value.leader_epoch, 1, value.commit_timestamp, 1, 0, 16, value.topic_id.bytes
    )


GROUP_RECORDS: Final = RecordCodec(
    ("group_records", "share_group_records", "streams_group_records"),
    {"OffsetCommitValue": _OFFSET_VERSION, "GroupMetadataValue": 3},
)
TRANSACTION_RECORDS: Final = RecordCodec(("transaction_records",), {"TransactionLogValue": 1})
SHARE_STATE_RECORDS: Final = RecordCodec(("share_state_records",), {})
