"""Well-formed requests about groups and transactions with values of chance: from the schema, so no field is missed."""

import random
from importlib import import_module
from typing import Any
from uuid import UUID

from headrace.wire.apis import APIS
from headrace.wire.codec import encode_request
from headrace.wire.header import request_header
from headrace.wire.schema import Field, Message, load_messages

KEYS = (*range(8, 17), 22, *range(24, 29), 42, 47, *range(65, 70), 88, 89)
WAITING = frozenset({11, 14})
"""JoinGroup and SyncGroup may rightly be answered much later."""
GROUPS = ("fuzz-1", "fuzz-2", "fuzz-3", "", "fuzz " + "x" * 300)
NUMBERS = (0, 1, 2, 5, -1, -2, -3, 100, 2**31 - 1, -(2**31))
LONG_NUMBERS = (*NUMBERS[:-2], 2**63 - 1, -(2**63))
PATTERNS = ("fuzz.*", "(", "(a+)+$", "", "[", ".*", "(x*)*y" * 20)
BYTES = (b"", b"\x00\x00\x00\x00\x00\x01\x00\x04fuzz\xff\xff\xff\xff", b"\xff" * 40, bytes(5_000))


class Pools:
    """What the fields are filled from; ids that answers brought back make later requests mean something."""

    def __init__(self, chance: random.Random, topic: str, topic_id: UUID) -> None:
        self._chance = chance
        self._members = ["", "x", "me", "you"]
        self._producers = [0, 1, -1, 10**6]
        self._by_name: dict[str, tuple[Any, ...]] = {
            "topic_id": (topic_id, UUID(int=0), UUID(int=7)),
            "protocol_type": ("consumer", "consumer", "connect", ""),
            "protocol_name": ("range", "range", "mine", ""),
            "server_assignor": ("uniform", "range", "mine", "", None),
            "session_timeout_ms": (6_000, 10_000, 1, 2**31 - 1),
            "rebalance_timeout_ms": (1, 100, -1),
            "transaction_timeout_ms": (1, 60_000, -1, 2**31 - 1),
            "group_instance_id": (None, None, "instance", ""),
            "instance_id": (None, None, "instance", ""),
            "rack_id": (None, "rack", ""),
            "subscribed_topic_regex": (None, None, *PATTERNS),
            "transactional_id_pattern": (None, *PATTERNS),
            "key_type": (0, 1, 2, 3, -1),
            "topic_names": (topic, "none"),
        }
        self._topics = (topic, topic, "none", "", "__consumer_offsets", "/..")

    def learn(self, answer: Any) -> None:
        """Keep the ids an answer names."""
        for name, known in (("member_id", self._members), ("producer_id", self._producers)):
            value = getattr(answer, name, None)
            if value is not None and value not in known:
                known.append(value)
                del known[4:-20]

    def pick(self, field: Field, message: str) -> Any:
        """A value for a field."""
        chance, name, kind = self._chance, field.name, field.type
        if name in self._by_name:
            return chance.choice(self._by_name[name])
        if "member_id" in name:
            return chance.choice(self._members)
        if "producer_id" in name:
            return chance.choice(self._producers)
        if kind == "string":
            is_topic = name in {"name", "topic", "topic_name", "subscribed_topic_names"} and "Protocol" not in message
            return chance.choice(self._topics if is_topic else GROUPS if name != "name" else ("range", "mine", ""))
        choices: dict[str, tuple[Any, ...]] = {
            "bool": (True, False),
            "bytes": BYTES,
            "int8": (0, 1, -1, 127),
            "int16": (0, 1, 2, -1, 32_767),
            "uint16": (0, 1, 9092, 65_535),
            "int64": LONG_NUMBERS,
        }
        return chance.choice(choices.get(kind, NUMBERS))


def some_request(key: int, version: int, chance: random.Random, pools: Pools) -> Any:
    """A message of an API, every field with a value, every array with none to two elements."""
    module = APIS[key].module
    classes = import_module(f"headrace.wire.messages.{module}")
    message = load_messages(module)[0]
    return _filled(message, message.name, classes, version, chance, pools)


def framed(key: int, version: int, request: Any) -> bytes:
    """The request as it goes over the wire, without its length."""
    return request_header(key, version, 7, "fuzz") + encode_request(key, version, request)


def _filled(message: Message, name: str, classes: Any, version: int, chance: random.Random, pools: Pools) -> Any:
    values = {}
    for field in message.structs[name]:
        count = chance.choice((0, 1, 1, 1, 2)) if field.is_array else 1
        made = [
            _filled(message, field.type, classes, version, chance, pools)
            if field.is_struct
            else pools.pick(field, name)
            for _ in range(count)
        ]
        if field.is_array:
            values[field.name] = tuple("" if each is None else each for each in made)
        elif made[0] is None and not field.nullable.cover(version):
            values[field.name] = ""
        else:
            values[field.name] = made[0]
    return getattr(classes, name)(**values)
