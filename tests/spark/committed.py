"""What a reader of committed records sees of a topic, through a client that has nothing to do with Spark or us."""

import contextlib
import time
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

_DEADLINE_S = 60.0


class Seen(NamedTuple):
    """A record as it was seen."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: list


def read_committed(bootstrap: str, topic: str, partitions: int, *, at_least: int = 0) -> list[Seen]:
    """Every record from the start of a topic to where committed ones end, in order within each partition.

    Where `at_least` so many must come it is read again until they are there: a transaction's markers are written a
    little after its producer was told that it is committed.
    """
    deadline = time.monotonic() + _DEADLINE_S
    while len(found := _read_once(bootstrap, topic, partitions)) < at_least and time.monotonic() < deadline:
        pass
    return found


def _read_once(bootstrap: str, topic: str, partitions: int) -> list[Seen]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "auditor",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    found: list[Seen] = []
    rest = set(range(partitions))
    deadline = time.monotonic() + _DEADLINE_S
    with contextlib.closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in rest])
        while rest:
            assert time.monotonic() < deadline, f"no end was seen of {rest}"
            for message in consumer.consume(1000, timeout=0.2):
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    rest.discard(message.partition())
                    continue
                headers = message.headers() or []
                found.append(Seen(message.partition(), message.key(), message.value(), message.timestamp()[1], headers))
    return found
