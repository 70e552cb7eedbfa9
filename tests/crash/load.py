"""Clients that keep writing and reading whatever happens to the broker, and write down what came of it.

They find their way back by themselves, as clients do. What each was told goes into the history of the run; whether the
broker kept its word is decided afterwards, by `headrace.testing.history.check`.
"""

import contextlib
import random
import threading
import time
from abc import ABC, abstractmethod

from confluent_kafka import KafkaException, Producer

from crash.log_reader import NEVER_RECORD, records_of
from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.testing.history import Outcome, Payload, Poll, Send
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire_client import WireClient

IN_FLIGHT_MAX = 100
BACKOFF_S = 0.02
DEADLINE_S = 60.0
VALUE_BYTES = (0, 60, 200, 1_000, 4_000)

Place = tuple[str, int]


class Acks:
    """Counts acknowledgements, so that a fault can wait for its moment without looking at a clock."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0

    def add(self, number: int = 1) -> None:
        """So many more."""
        with self._changed:
            self.count += number
            self._changed.notify_all()

    def wait_for_more(self, number: int) -> None:
        """Return once so many more have come in than now."""
        with self._changed:
            goal = self.count + number
            if not self._changed.wait_for(lambda: self.count >= goal, DEADLINE_S):
                raise TimeoutError(f"{number} acknowledgements did not come in {DEADLINE_S} s")


class Client(threading.Thread, ABC):
    """One client on a thread of its own, until it is told to end."""

    def __init__(self, name: str, port: int, places: list[Place], chance: random.Random) -> None:
        super().__init__(name=name, daemon=True)
        self.port = port
        self.places = places
        self.chance = chance
        self.ending = threading.Event()
        self.bug: BaseException | None = None

    def run(self) -> None:
        """Work, and keep what went wrong for the thread that ends us."""
        try:
            self.work()
        except BaseException as bug:  # noqa: BLE001 - raised by `end`
            self.bug = bug

    @abstractmethod
    def work(self) -> None:
        """What this client does until it is told to end."""

    def end(self) -> None:
        """Stop working; raises what the thread died of."""
        self.ending.set()
        self.join(DEADLINE_S)
        assert not self.is_alive(), f"{self.name} did not come to an end"
        if self.bug is not None:
            raise self.bug


class IdempotentProducer(Client):
    """librdkafka with idempotence: it retries by itself, and every value must be there exactly once."""

    def __init__(self, name: str, port: int, places: list[Place], chance: random.Random, acks: Acks) -> None:
        super().__init__(name, port, places, chance)
        self.sends: list[Send] = []
        self._acks = acks
        self._in_flight = 0
        self._open: set[Payload] = set()

    def work(self) -> None:
        """Send as fast as acknowledgements come; at the end wait for those still under way."""
        producer = Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{self.port}",
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 30,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "message.timeout.ms": 300_000,
                "compression.type": self.chance.choice(("none", "lz4", "zstd")),
                "log_level": 0,
            },
            error_cb=self._on_error,
        )
        sequence = 0
        while not self.ending.is_set():
            if self._in_flight < IN_FLIGHT_MAX:
                topic, partition = self.chance.choice(self.places)
                payload = Payload(topic, partition, self.name, sequence)
                sequence += 1
                self._in_flight += 1
                self._open.add(payload)
                value = payload.encode(self.chance.choice(VALUE_BYTES))
                producer.produce(topic, value, partition=partition, on_delivery=self._on_delivery(payload))
            producer.poll(0 if self._in_flight < IN_FLIGHT_MAX else BACKOFF_S)
        producer.flush(DEADLINE_S)
        self.sends += [Send(payload, Outcome.UNKNOWN) for payload in self._open]

    def _on_delivery(self, payload: Payload):
        def delivered(error, message) -> None:
            self._in_flight -= 1
            self._open.discard(payload)
            if error is None:
                self.sends.append(Send(payload, Outcome.OK, message.offset()))
                self._acks.add()
            else:
                self.sends.append(Send(payload, Outcome.UNKNOWN))

        return delivered

    def _on_error(self, error) -> None:
        if error.fatal():
            raise KafkaException(error)


class PlainProducer(Client):
    """No idempotence: it sends again what was not answered, so a value may be there once per attempt."""

    def __init__(self, name: str, port: int, places: list[Place], chance: random.Random, acks: Acks) -> None:
        super().__init__(name, port, places, chance)
        self.sends: list[Send] = []
        self._acks = acks

    def work(self) -> None:
        """One batch at a time, again and again until it is acknowledged."""
        sequence = 0
        client: WireClient | None = None
        while not self.ending.is_set():
            topic, partition = self.chance.choice(self.places)
            payloads = [Payload(topic, partition, self.name, sequence + i) for i in range(self.chance.randint(1, 5))]
            sequence += len(payloads)
            now_ms = time.time_ns() // 1_000_000
            records = [NewRecord(now_ms, None, p.encode(self.chance.choice(VALUE_BYTES)), ()) for p in payloads]
            attempts, offset = 0, -1
            while offset < 0:
                if self.ending.is_set() and attempts:
                    break
                attempts += 1
                client, offset = self._attempt(client, topic, partition, build_batch(records))
            outcome = Outcome.OK if offset >= 0 else Outcome.UNKNOWN
            for i, payload in enumerate(payloads):
                self.sends.append(Send(payload, outcome, offset + i if offset >= 0 else -1, attempts))
            self._acks.add(len(payloads) if offset >= 0 else 0)
        if client is not None:
            client.close()

    def _attempt(self, client: WireClient | None, topic: str, partition: int, batch: bytearray):
        """The client to go on with, and the base offset if the batch was acknowledged."""
        try:
            client = client or WireClient(self.port)
            result = client.produce(topic, bytes(batch), partition=partition)
        except OSError:
            if client is not None:
                client.close()
            self.ending.wait(BACKOFF_S)
            return None, -1
        if result.error_code == ErrorCode.NONE:
            return client, result.base_offset
        # The one error a broker with a dying disk may give; anything else is its mistake.
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode(result.error_code).name
        self.ending.wait(BACKOFF_S)
        return client, -1


class Follower(Client):
    """Reads every partition from its start and never goes back, over all reconnects."""

    def __init__(self, name: str, port: int, places: list[Place], chance: random.Random) -> None:
        super().__init__(name, port, places, chance)
        self.polls: list[Poll] = []
        self.positions = dict.fromkeys(places, 0)

    def work(self) -> None:
        """Fetch whatever there is, all partitions in one request."""
        while not self.ending.is_set():
            with contextlib.suppress(OSError), WireClient(self.port) as client:
                while not self.ending.is_set():
                    self._take(client.ask("Fetch", 12, self._request()))
            self.ending.wait(BACKOFF_S)

    def _request(self) -> FetchRequest:
        wanted: dict[str, list[FetchPartition]] = {}
        for (topic, partition), offset in self.positions.items():
            asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 18)
            wanted.setdefault(topic, []).append(asked)
        topics = tuple(FetchTopic(topic=topic, partitions=tuple(asked)) for topic, asked in wanted.items())
        return FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=topics)

    def _take(self, response) -> None:
        for topic in response.responses:
            for found in topic.partitions:
                place = (topic.topic, found.partition_index)
                if found.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                    continue
                assert found.error_code == 0, (place, self.positions[place], ErrorCode(found.error_code).name)
                for record in records_of(found.records or NEVER_RECORD):
                    if record.offset >= self.positions[place]:
                        self.polls.append(Poll(self.name, *place, record.offset, Payload.decode(record.value)))
                        self.positions[place] = record.offset + 1
