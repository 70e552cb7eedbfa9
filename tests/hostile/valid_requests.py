"""A request that means something, for every API and version a broker serves; from the schema, so none is missed."""

import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple
from uuid import UUID

from headrace.broker.dispatch import load_apis
from headrace.records.build import NewRecord, build_batch
from headrace.wire.apis import APIS
from headrace.wire.codec import encode_request
from headrace.wire.header import request_header
from headrace.wire.schema import NO_VERSIONS, Message, load_messages

BATCH = bytes(build_batch([NewRecord(1_700_000_000_000 + n, b"key", b"value %d" % n, ()) for n in range(3)]))
TYPE_VALUES = {"string": "text", "bytes": b"bytes", "uuid": UUID(int=7), "bool": True, "float64": 1.5, "records": BATCH}
NAME_VALUES = {
    "acks": -1,
    "broker_ids": (1,),
    "current_leader_epoch": -1,
    "fetch_offset": 0,
    "last_fetched_epoch": -1,
    "max_bytes": 1 << 20,
    "max_wait_ms": 0,
    "num_partitions": 1,
    "partition_max_bytes": 1 << 20,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_type": 2,
    "session_epoch": -1,
    "session_id": 0,
    "timeout_ms": 1_000,
    "timestamp": -1,
    "transactional_id": None,
    "validate_only": True,
}
PARTITION_NAMES = {"partition", "partition_index", "partition_indexes", "partitions", "index"}
TOPIC_NAMES = {"name", "topic", "topic_name", "topic_names", "resource_name"}


class ValidRequest(NamedTuple):
    """A request as bytes, header and all, without its length."""

    key: int
    version: int
    head: bytes
    body: bytes

    @property
    def name(self) -> str:
        """For people."""
        return f"{APIS[self.key].name} v{self.version}"

    @property
    def frame(self) -> bytes:
        """What goes over the wire after the length."""
        return self.head + self.body


def served_versions() -> Iterator[tuple[int, int]]:
    """Every API key and version."""
    for key, api in sorted(load_apis().items()):
        for version in range(api.low, api.high + 1):
            yield key, version


def valid_request(key: int, version: int, *, topic: str, topic_id: UUID, correlation_id: int = 7) -> ValidRequest:
    """A request of one API and version about a topic that is there."""
    module = APIS[key].module
    classes = import_module(f"headrace.wire.messages.{module}")
    message = load_messages(module)[0]
    filled = _filled(message, message.name, classes, topic, topic_id)
    head = request_header(key, version, correlation_id, "hostile")
    return ValidRequest(key, version, head, encode_request(key, version, filled))


def _filled(message: Message, name: str, classes: Any, topic: str, topic_id: UUID) -> Any:
    values = {}
    for field in message.structs[name]:
        if field.is_struct:
            value = _filled(message, field.type, classes, topic, topic_id)
        elif field.name in NAME_VALUES and (NAME_VALUES[field.name] is not None or field.nullable != NO_VERSIONS):
            values[field.name] = NAME_VALUES[field.name]
            continue
        else:
            value = _value(field.name, field.type, topic, topic_id)
        values[field.name] = (value,) if field.is_array else value
    return getattr(classes, name)(**values)


def _value(name: str, kind: str, topic: str, topic_id: UUID) -> Any:
    if name in TOPIC_NAMES and kind == "string":
        return topic
    if name == "topic_id":
        return topic_id
    if name in PARTITION_NAMES:
        return 0
    return TYPE_VALUES.get(kind, 1)


PIECES = (
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\x01",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\xc3\x28",
    b"..",
    b"/",
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with something about them that is wrong, once or a few times."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(data) + 1)
        piece = chance.choice(PIECES)
        ways = (
            data[:at] + piece + data[at + len(piece) :],
            data[:at] + piece + data[at:],
            data[:at] + data[at + chance.randrange(1, 9) :],
            data[:at] + data[max(0, at - chance.randrange(20)) :],
            data[:at],
            data + chance.randbytes(chance.randrange(1, 9)),
            _flipped(data, chance),
        )
        data = chance.choice(ways)
    return data


def _flipped(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return b"\x00"
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)
