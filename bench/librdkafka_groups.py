"""Groups and transactions as librdkafka does them, for the load where there is no Java."""

import threading
import time
from contextlib import closing
from statistics import median
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

_TIMEOUT_S: Final = 60.0
_BURST: Final = 100
_POLL_S: Final = 0.02

Settings = dict[str, Any]


def make_internal_topics(bootstrap: str) -> None:
    """Ask for an offset and for a transactional producer, which the coordinators' topics are made for."""
    settings: Settings = {"bootstrap.servers": bootstrap, "group.id": "internal-topics", "log_level": 4}
    end = time.monotonic() + _TIMEOUT_S
    with closing(Consumer(settings)) as consumer:
        while True:
            try:
                consumer.committed([TopicPartition("__consumer_offsets", 0)], timeout=_TIMEOUT_S)
                break
            except KafkaException:  # as long as the topic is being made
                if time.monotonic() > end:
                    raise
    Producer({"bootstrap.servers": bootstrap, "transactional.id": "internal-topics"}).init_transactions(_TIMEOUT_S)


def commit_often(bootstrap: str, topic: str, group: str, way: str, commits: int) -> None:
    """Commit all partitions' offsets, each commit waited for, or a hundred at once."""
    answered: list[object] = []

    def on_commit(error: object, partitions: object) -> None:
        answered.append(error)

    settings: Settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    with closing(Consumer(settings | {"on_commit": on_commit})) as consumer:
        count = len(consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, index, 0) for index in range(count)])
        for number in range(commits):
            offsets = [TopicPartition(topic, index, number) for index in range(count)]
            if way == "sync":
                consumer.commit(offsets=offsets, asynchronous=False)
                continue
            consumer.commit(offsets=offsets, asynchronous=True)
            while len(answered) <= number - _BURST:
                consumer.poll(_POLL_S)
        while way != "sync" and len(answered) < commits:
            consumer.poll(_POLL_S)
    assert not any(answered), next(error for error in answered if error)


class _Member(threading.Thread):
    """One consumer that does nothing but belong to its group."""

    def __init__(self, settings: Settings, topic: str) -> None:
        super().__init__(daemon=True)
        self.owned: set[int] = set()
        self.leaving = False
        self._settings = settings
        self._topic = topic

    def run(self) -> None:
        with closing(Consumer(self._settings)) as consumer:
            consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked)
            while not self.leaving:
                consumer.poll(_POLL_S)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned = self.owned | {partition.partition for partition in partitions}

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned = self.owned - {partition.partition for partition in partitions}

    def leave(self) -> None:
        """Say good-bye and wait for it."""
        self.leaving = True
        self.join(_TIMEOUT_S)


def median_ms(bootstrap: str, topic: str, group: str, protocol: str, members: int, times: int) -> float:
    """How long until a group owns everything again after its last member joined."""
    settings: Settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "log_level": 4}
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 100
    partitions = 2 * members
    there = [_Member(settings, topic) for _ in range(members - 1)]
    took = []
    try:
        for member in there:
            member.start()
        _wait_until_stable(there, partitions)
        for _ in range(times):
            begin = time.monotonic()
            newcomer = _Member(settings, topic)
            newcomer.start()
            _wait_until_stable([*there, newcomer], partitions)
            took.append((time.monotonic() - begin) * 1000)
            newcomer.leave()
            _wait_until_stable(there, partitions)
    finally:
        for member in there:
            member.leave()
    return median(took)


def _wait_until_stable(members: list[_Member], partitions: int) -> None:
    end = time.monotonic() + _TIMEOUT_S
    while True:
        owned = [member.owned for member in members]
        if all(owned) and sum(map(len, owned)) == partitions == len(set().union(*owned)):
            return
        if time.monotonic() > end:
            raise TimeoutError(f"the group did not get stable: {owned}")
        time.sleep(0.0002)


def copy_exactly_once(bootstrap: str, topics: tuple[str, str], group: str, records: int, per_transaction: int) -> float:
    """Copy in transactions, offsets with them; the seconds from the first record to the last commit."""
    reading: Settings = {"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed"}
    reading |= {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"copy-{group}", "linger.ms": 0})
    producer.init_transactions(_TIMEOUT_S)
    copied, begin, end = 0, 0.0, time.monotonic() + _TIMEOUT_S
    with closing(Consumer(reading)) as consumer:
        consumer.subscribe([topics[0]])
        while copied < records:
            messages = consumer.consume(min(per_transaction, records - copied), timeout=1.0)
            if time.monotonic() > end:
                raise TimeoutError(f"only {copied} of {records} records were copied")
            if not messages:
                continue
            begin = begin or time.monotonic()
            _copy(consumer, producer, messages, topics)
            copied += len(messages)
            end = time.monotonic() + _TIMEOUT_S
    return time.monotonic() - begin


def _copy(consumer: Consumer, producer: Producer, messages: list[Message], topics: tuple[str, str]) -> None:
    offsets: dict[int, int] = {}
    producer.begin_transaction()
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        producer.produce(topics[1], message.value(), partition=partition)
        offsets[partition] = offset + 1
    done = [TopicPartition(topics[0], partition, offset) for partition, offset in offsets.items()]
    producer.send_offsets_to_transaction(done, consumer.consumer_group_metadata(), _TIMEOUT_S)
    producer.commit_transaction(_TIMEOUT_S)
