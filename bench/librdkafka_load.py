"""The load where there is no Java: librdkafka through confluent-kafka, slower than Java but always here."""

import os
import struct
import threading
import time
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from bench.librdkafka_groups import commit_often, copy_exactly_once, make_internal_topics, median_ms
from bench.load import QUANTILES, Reading

_TIMEOUT_S: Final = 120.0
_CHUNK: Final = 10_000
_STAMP: Final = struct.Struct(">dI")


class LibrdkafkaLoad:
    """confluent-kafka in this process, one thread per direction."""

    name = "librdkafka (confluent-kafka)"

    def close(self) -> None:
        """Nothing is kept between calls."""

    def create_topic(self, bootstrap: str, topic: str, partitions: int, settings: dict[str, str]) -> None:
        """By the admin client."""
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 4})
        wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=settings)
        for future in admin.create_topics([wanted]).values():
            future.result(_TIMEOUT_S)

    def delete_topic(self, bootstrap: str, topic: str) -> None:
        """By the admin client."""
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 4})
        for future in admin.delete_topics([topic]).values():
            future.result(_TIMEOUT_S)

    def produce(
        self, bootstrap: str, topic: str, *, records: int, record_bytes: int, properties: dict[str, str]
    ) -> float:
        """One value over and over; librdkafka needs the same settings under nearly the same names."""
        begin = time.monotonic()
        _produce(bootstrap, topic, records, record_bytes, properties)
        return records / (time.monotonic() - begin)

    def fetch(self, bootstrap: str, topic: str, *, records: int, passes: int) -> Reading:
        """By an assigned consumer."""
        total = 0
        begin = time.monotonic()
        for _ in range(passes):
            total += _consume(bootstrap, topic, records)
        return Reading(size_bytes=total, seconds=time.monotonic() - begin)

    def tail(self, bootstrap: str, topic: str, *, records: int, record_bytes: int) -> Reading:
        """By an assigned consumer, with the producer on a thread."""
        writer = threading.Thread(target=_produce, args=(bootstrap, topic, records, record_bytes, {}))
        begin = time.monotonic()
        writer.start()
        size = _consume(bootstrap, topic, records)
        seconds = time.monotonic() - begin
        writer.join(_TIMEOUT_S)
        return Reading(size_bytes=size, seconds=seconds)

    def latency(
        self, bootstrap: str, topic: str, *, rate: int, warmup_s: int, seconds: int, record_bytes: int
    ) -> dict[str, float]:
        """A paced sender on a thread, the receiver here."""
        run = _PacedRun(bootstrap, topic, rate=rate, total=rate * (warmup_s + seconds), record_bytes=record_bytes)
        run.run()
        skipped = rate * warmup_s
        return _percentiles("ack", run.acknowledged[skipped:]) | _percentiles("end", run.received[skipped:])

    def set_internal_topics(self, bootstrap: str, settings: dict[str, str]) -> None:
        """By clients that need them, and the admin client."""
        make_internal_topics(bootstrap)
        changes = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in settings.items()
        ]
        topics = ("__consumer_offsets", "__transaction_state")
        resources = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes) for name in topics]
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 4})
        for future in admin.incremental_alter_configs(resources).values():
            future.result(_TIMEOUT_S)

    def commit(self, bootstrap: str, topic: str, *, group: str, way: str, commits: int) -> float:
        """By an assigned consumer."""
        begin = time.monotonic()
        commit_often(bootstrap, topic, group, way, commits)
        return commits / (time.monotonic() - begin)

    def stability(self, bootstrap: str, topic: str, *, group: str, protocol: str, members: int, times: int) -> float:
        """By that many consumers, each on a thread."""
        return median_ms(bootstrap, topic, group, protocol, members, times)

    def copy(self, bootstrap: str, topics: tuple[str, str], *, group: str, records: int, per_transaction: int) -> float:
        """By a subscribed consumer and a transactional producer."""
        return records / copy_exactly_once(bootstrap, topics, group, records, per_transaction)


class _PacedRun:
    """Sends at even distances and notes how long after its due time each record was acknowledged and received."""

    def __init__(self, bootstrap: str, topic: str, *, rate: int, total: int, record_bytes: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._period_s = 1 / rate
        self._padding = bytes(record_bytes - _STAMP.size)
        self.acknowledged = [0.0] * total
        self.received = [0.0] * total

    def run(self) -> None:
        consumer, partitions = _assigned(self._bootstrap, self._topic, OFFSET_END)
        consumer.consume(1, timeout=1.0)  # the position "end" is looked up by the first poll
        sender = threading.Thread(target=self._send, args=(partitions,))
        sender.start()
        count = 0
        deadline = time.monotonic() + len(self.received) * self._period_s + _TIMEOUT_S
        while count < len(self.received):
            # One by one: `consume` would wait until it has a whole list or its time is up.
            polled = consumer.poll(0.1)
            for message in _checked([polled] if polled else [], deadline):
                due, index = _STAMP.unpack_from(_value(message))
                self.received[index] = time.monotonic() - due
                count += 1
        sender.join(_TIMEOUT_S)
        consumer.close()

    def _send(self, partitions: int) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 0})
        begin = time.monotonic() + 0.1
        for index in range(len(self.received)):
            due = begin + index * self._period_s
            while (ahead := due - time.monotonic()) > 0:
                producer.poll(ahead)
            value = _STAMP.pack(due, index) + self._padding
            producer.produce(self._topic, value, partition=index % partitions, on_delivery=self._delivered)
        producer.flush(_TIMEOUT_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        due, index = _STAMP.unpack_from(_value(message))
        self.acknowledged[index] = time.monotonic() - due


def _produce(bootstrap: str, topic: str, records: int, record_bytes: int, properties: dict[str, str]) -> None:
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "enable.idempotence": True}
    settings |= {"queue.buffering.max.messages": 1_000_000, "linger.ms": 5}
    # Where the Java client says "no batching" with a batch size of 0, librdkafka wants a count of 1.
    if properties.get("batch.size") == "0":
        settings |= {"batch.num.messages": 1, "linger.ms": 0}
    elif "batch.size" in properties:
        settings["batch.size"] = int(properties["batch.size"])
    producer = Producer(settings)
    value = os.urandom(record_bytes)
    for index in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.05)
        if index % _CHUNK == 0:
            producer.poll(0)
    left = producer.flush(_TIMEOUT_S)
    assert left == 0, f"{left} records were not acknowledged"


def _assigned(bootstrap: str, topic: str, offset: int) -> tuple[Consumer, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    partitions = len(consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, offset) for number in range(partitions)])
    return consumer, partitions


def _consume(bootstrap: str, topic: str, records: int) -> int:
    consumer, _ = _assigned(bootstrap, topic, OFFSET_BEGINNING)
    count = size = 0
    deadline = time.monotonic() + _TIMEOUT_S
    while count < records:
        for message in _checked(consumer.consume(_CHUNK, timeout=0.1), deadline):
            count += 1
            size += len(_value(message))
    consumer.close()
    return size


def _checked(messages: list[Message], deadline: float) -> list[Message]:
    if time.monotonic() > deadline:
        raise TimeoutError("the records did not come in time")
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
    return messages


def _value(message: Message) -> bytes:
    value = message.value()
    assert isinstance(value, bytes)
    return value


def _percentiles(kind: str, seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"{kind} {name} ms": ordered[max(round(quantile * len(ordered)) - 1, 0)] * 1000
        for name, quantile in QUANTILES.items()
    }
