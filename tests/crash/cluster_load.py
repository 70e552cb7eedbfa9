"""Clients of a whole cluster that keep working whatever happens to its nodes, and write down what came of it."""

import random
import time
from collections import Counter
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from crash.load import BACKOFF_S, DEADLINE_S, VALUE_BYTES, Acks, Client
from crash.log_reader import Place
from headrace.testing.history import Outcome, Payload, Poll, Send

OPEN_PER_PLACE_MAX = 15
"""So that a partition without a leader does not keep the others waiting."""
KEYS_PER_PLACE = 3
RESTLESS = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 1_000,
    "log_level": 0,
}
"""A client that looks soon and often whether things are better."""


class Delivery(NamedTuple):
    """When a record was handed over, and when it was acknowledged."""

    place: Place
    sent_s: float
    acked_s: float


class ClusterProducer(Client):
    """librdkafka with idempotence and acks=all: each value must be there once, each key's values in their order."""

    def __init__(self, name: str, bootstrap: str, places: list[Place], chance: random.Random, acks: Acks) -> None:
        super().__init__(name, 0, places, chance)
        self.sends: list[Send] = []
        self.deliveries: list[Delivery] = []
        self.failures: list[str] = []
        """Deliveries that failed: librdkafka gave up on them."""
        self._servers = bootstrap
        self._acks = acks
        self._open: set[Payload] = set()
        self._per_place: Counter[Place] = Counter()
        self._fatal: str | None = None

    def work(self) -> None:
        """Send as fast as acknowledgements come; at the end wait for those still under way."""
        producer = Producer(
            {
                **RESTLESS,
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "batch.num.messages": 30,
                "message.timeout.ms": 300_000,
                "socket.timeout.ms": 10_000,
                "compression.type": self.chance.choice(("none", "lz4")),
            },
            error_cb=self._on_error,
        )
        sequence = 0
        while not self.ending.is_set() and self._fatal is None:
            place = self.chance.choice(self.places)
            if self._per_place[place] < OPEN_PER_PLACE_MAX:
                self._send(producer, Payload(*place, self.name, sequence))
                sequence += 1
                producer.poll(0)
            else:
                producer.poll(BACKOFF_S)
        if self._fatal is None:
            producer.flush(DEADLINE_S)
        self.sends += [Send(payload, Outcome.UNKNOWN) for payload in self._open]
        assert self._fatal is None, self._fatal

    def _send(self, producer: Producer, payload: Payload) -> None:
        self._per_place[payload.topic, payload.partition] += 1
        self._open.add(payload)
        producer.produce(
            payload.topic,
            payload.encode(self.chance.choice(VALUE_BYTES)),
            key=f"{self.name}-{payload.partition}-{self.chance.randrange(KEYS_PER_PLACE)}",
            partition=payload.partition,
            on_delivery=self._on_delivery(payload, time.monotonic()),
        )

    def _on_delivery(self, payload: Payload, sent_s: float):
        def delivered(error, message) -> None:
            place = payload.topic, payload.partition
            self._per_place[place] -= 1
            self._open.discard(payload)
            if error is None:
                self.sends.append(Send(payload, Outcome.OK, message.offset()))
                self.deliveries.append(Delivery(place, sent_s, time.monotonic()))
                self._acks.add()
            else:
                self.sends.append(Send(payload, Outcome.UNKNOWN))
                self.failures.append(f"{payload}: {error}")

        return delivered

    def _on_error(self, error) -> None:
        if error.fatal():
            self._fatal = str(error)


class ClusterReader(Client):
    """Reads every partition from its start and never goes back, whoever leads it."""

    def __init__(self, name: str, bootstrap: str, places: list[Place]) -> None:
        super().__init__(name, 0, places, random.Random(0))
        self.polls: list[Poll] = []
        self.ends: dict[Place, int] = {}
        """Set to have it read so far, and then end."""
        self.positions = dict.fromkeys(places, 0)
        self._servers = bootstrap

    def work(self) -> None:
        """Until told to end, or until it is where it should read to."""
        consumer = Consumer(
            {
                **RESTLESS,
                "bootstrap.servers": self._servers,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition(topic, index, 0) for topic, index in self.places])
        try:
            while not self.ending.is_set() and not self._is_done():
                for message in consumer.consume(500, 0.1):
                    self._take(message)
        finally:
            consumer.close()

    def _is_done(self) -> bool:
        return bool(self.ends) and all(self.positions[place] >= end for place, end in self.ends.items())

    def _take(self, message) -> None:
        if message.error() is not None:
            # Nobody ever deletes a record here: an offset out of range is one the cluster has lost.
            assert message.error().code() != KafkaError._AUTO_OFFSET_RESET, message.error()
            if message.error().fatal():
                raise KafkaException(message.error())
            return
        place = message.topic(), message.partition()
        self.polls.append(Poll(self.name, *place, message.offset(), Payload.decode(message.value())))
        self.positions[place] = message.offset() + 1

    def read_to(self, ends: dict[Place, int]) -> None:
        """Read up to these offsets and end; AssertionError if they never come."""
        self.ends = ends
        self.join(DEADLINE_S)
        missing = {place: (self.positions[place], end) for place, end in ends.items() if self.positions[place] < end}
        self.end()
        assert not missing, f"{self.name} is at the first of each pair, the other is the end: {missing}"
