"""The client libraries people use from Python, driven alike: what was sent with one can be read with each.

Nothing here sleeps: every wait is the library's own poll, up to a deadline.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import aiokafka
import confluent_kafka
import kafka
from confluent_kafka.admin import AdminClient, NewTopic

DEADLINE_S = 30.0

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = (0, 1, -1)

Headers = tuple[tuple[str, bytes | None], ...]


class Sent(NamedTuple):
    """A record as a test hands it to a producer."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int = 1_700_000_000_000
    partition: int = 0

    def at(self, offset: int) -> "Seen":
        """How a consumer must see it."""
        return Seen(self.partition, offset, self.timestamp_ms, self.key, self.value, self.headers)


class Seen(NamedTuple):
    """A record as a consumer gave it back."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class DidNotArrive(Exception):
    """A client waited for its deadline and did not get what it should have."""


class Deadline:
    """Until when a client may go on polling."""

    def __init__(self, seconds: float = DEADLINE_S) -> None:
        self._end = time.monotonic() + seconds

    def check(self, what: str) -> None:
        """Give up when time is over."""
        if time.monotonic() > self._end:
            raise DidNotArrive(what)


# --- confluent-kafka


class Confluent:
    """confluent-kafka, on librdkafka."""

    name = "confluent-kafka"

    @staticmethod
    def send(
        bootstrap: str,
        topic: str,
        records: Iterable[Sent],
        *,
        codec: str = "none",
        acks: int = -1,
        idempotent: bool = False,
        **settings,
    ) -> list[int]:
        """Send all; gives the offset each was stored at, in order (None with acks=0)."""
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 20,
                "log_level": 2,
                **settings,
            }
        )
        delivered: list[confluent_kafka.Message] = []
        failed: list[confluent_kafka.KafkaError] = []

        def on_delivery(error, message):
            (failed if error else delivered).append(error or message)

        count = 0
        for record in records:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=on_delivery,
            )
            count += 1
        producer.flush(DEADLINE_S)
        if failed:
            raise confluent_kafka.KafkaException(failed[0])
        if len(delivered) != count:
            raise DidNotArrive(f"{len(delivered)} of {count} were delivered")
        return [message.offset() for message in delivered]

    @staticmethod
    def read(bootstrap: str, topic: str, partition: int = 0, *, offset: int = 0, count: int, **settings) -> list[Seen]:
        """Read `count` records from `offset` on."""
        consumer = confluent_consumer(bootstrap, **settings)
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, offset)])
            return [confluent_seen(message) for message in confluent_poll(consumer, count)]
        finally:
            consumer.close()


def confluent_consumer(bootstrap: str, **settings) -> confluent_kafka.Consumer:
    """A consumer that assigns its partitions itself and commits nothing."""
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "no-group",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
            "log_level": 2,
            **settings,
        }
    )


def confluent_poll(consumer: confluent_kafka.Consumer, count: int) -> list[confluent_kafka.Message]:
    """The next `count` messages of what is assigned."""
    deadline = Deadline()
    messages: list[confluent_kafka.Message] = []
    while len(messages) < count:
        for message in consumer.consume(count - len(messages), 0.2):
            if message.error():
                raise confluent_kafka.KafkaException(message.error())
            messages.append(message)
        deadline.check(f"{len(messages)} of {count} messages")
    return messages


def confluent_seen(message: confluent_kafka.Message) -> Seen:
    """A message of this library as all are compared."""
    return Seen(
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


# --- kafka-python


class KafkaPython:
    """kafka-python, all in Python."""

    name = "kafka-python"

    @staticmethod
    def send(
        bootstrap: str,
        topic: str,
        records: Iterable[Sent],
        *,
        codec: str = "none",
        acks: int = -1,
        idempotent: bool = False,
        **settings,
    ) -> list[int]:
        """Send all; gives the offset each was stored at, in order."""
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks,
            enable_idempotence=idempotent,
            **{"linger_ms": 20, "retry_backoff_ms": 5, **settings},
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(DEADLINE_S)
            return [future.get(DEADLINE_S).offset for future in futures]
        finally:
            producer.close(DEADLINE_S)

    @staticmethod
    def read(bootstrap: str, topic: str, partition: int = 0, *, offset: int = 0, count: int, **settings) -> list[Seen]:
        """Read `count` records from `offset` on."""
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            auto_offset_reset="none",
            enable_auto_commit=False,
            retry_backoff_ms=5,
            **settings,
        )
        place = kafka.TopicPartition(topic, partition)
        deadline = Deadline()
        seen: list[Seen] = []
        try:
            consumer.assign([place])
            consumer.seek(place, offset)
            while len(seen) < count:
                for records in consumer.poll(timeout_ms=20).values():
                    seen += [_record_seen(record) for record in records]
                deadline.check(f"{len(seen)} of {count} records")
        finally:
            consumer.close()
        return seen[:count]


def _record_seen(record) -> Seen:
    return Seen(
        record.partition, record.offset, record.timestamp, record.key, record.value, tuple(map(tuple, record.headers))
    )


# --- aiokafka


class Aiokafka:
    """aiokafka, on asyncio."""

    name = "aiokafka"

    @staticmethod
    def send(bootstrap: str, topic: str, records: Iterable[Sent], **settings) -> list[int]:
        """Send all; gives the offset each was stored at, in order."""
        return asyncio.run(_aiokafka_send(bootstrap, topic, list(records), **settings))

    @staticmethod
    def read(bootstrap: str, topic: str, partition: int = 0, *, offset: int = 0, count: int, **settings) -> list[Seen]:
        """Read `count` records from `offset` on."""
        return asyncio.run(_aiokafka_read(bootstrap, topic, partition, offset, count, **settings))


async def _aiokafka_send(
    bootstrap: str,
    topic: str,
    records: Sequence[Sent],
    *,
    codec: str = "none",
    acks: int = -1,
    idempotent: bool = False,
    **settings,
) -> list[int]:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        acks="all" if acks == -1 else acks,
        enable_idempotence=idempotent,
        linger_ms=20,
        **settings,
    )
    try:
        await producer.start()
        sending = [
            await producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        stored = await asyncio.wait_for(asyncio.gather(*sending), DEADLINE_S)
        return [metadata.offset if metadata else None for metadata in stored]
    finally:
        await producer.stop()


async def _aiokafka_read(bootstrap: str, topic: str, partition: int, offset: int, count: int, **settings) -> list[Seen]:
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="none", enable_auto_commit=False, **settings
    )
    place = aiokafka.TopicPartition(topic, partition)
    deadline = Deadline()
    seen: list[Seen] = []
    try:
        await consumer.start()
        consumer.assign([place])
        consumer.seek(place, offset)
        while len(seen) < count:
            found = await consumer.getmany(timeout_ms=200)
            for records in found.values():
                seen += [_record_seen(record) for record in records]
            deadline.check(f"{len(seen)} of {count} records")
    finally:
        await consumer.stop()
    return seen[:count]


LIBRARIES = (Confluent, KafkaPython, Aiokafka)


# --- administration, with confluent-kafka


def admin(bootstrap: str) -> AdminClient:
    """An admin client; keep it until its answers are there, they go with it."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})


def create_topic(bootstrap: str, name: str, *, partitions: int = 1, **configs: str) -> str:
    """Create a topic and give its name; in `configs` underscores stand for dots."""
    wanted = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in configs.items()})
    client = admin(bootstrap)
    client.create_topics([wanted])[name].result(DEADLINE_S)
    return name


def records_of(count: int, *, partition: int = 0, size: int = 40, timestamp_ms: int = 1_700_000_000_000) -> list[Sent]:
    """Records that are all different, with every shape of key, value and headers among them."""
    return [
        Sent(
            value=None if index % 7 == 3 else (f"value {index} " * (1 + size // 8))[:size].encode(),
            key=None if index % 7 in {1, 5} else b"" if index % 7 == 2 else f"key {index}".encode(),
            headers=tuple((f"h{n}", b"" if n == 1 else f"{index}.{n}".encode()) for n in range(index % 3)),
            timestamp_ms=timestamp_ms + 10 * index,
            partition=partition,
        )
        for index in range(count)
    ]
