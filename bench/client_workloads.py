"""What our own Python clients cost: beside bare confluent-kafka and kafka-python, in turns within one run.

Only ratios are worth reading: all contestants share the machine with the broker. The bare producer is measured twice:
asking for a report of every record, which is what `KafkaProducer.send` gives, and without any reports.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench.load import Load
from bench.seats import Seat
from bench.table import Target
from bench.workloads import PARTITIONS, Numbers, Workload, fresh_topic

_REPORTS_EVERY: Final = 256
_CHUNK: Final = 500
_SLOW_PART: Final = 5
_TIMEOUT_S: Final = 120.0
_TURNS: Final = 5

EXTRAS: Final = ("client", "bench")
"""What must be installed for all the contestants: confluent-kafka, and kafka-python."""

Contest = dict[str, Callable[[str, str, int, bytes], None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """One kind of client, ours and the others', in turns."""

    name: str
    records: int
    record_bytes: int
    contestants: Contest
    reads: bool
    depends_on_flush: bool = False

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Our records per second, and how many times each other's rate that is, the median over the turns."""
        value = os.urandom(self.record_bytes)
        rates: dict[str, list[float]] = {name: [] for name in self.contestants}
        with fresh_topic(seat, load, PARTITIONS) as topic:
            if self.reads:
                _confluent_send(seat.broker.bootstrap, topic, self.records, value)
            for _ in range(_TURNS):
                for name, run in self.contestants.items():
                    count = self.records // (_SLOW_PART if name == "kafka-python" else 1)
                    begin = time.perf_counter()
                    run(seat.broker.bootstrap, topic, count, value)
                    rates[name].append(count / (time.perf_counter() - begin))
        return compared(rates)


def compared(rates: dict[str, list[float]]) -> Numbers:
    """Our own rate and its ratios to the others', each taken within a turn, in which all met the same machine."""
    ours = rates["headrace"]
    ratios = {
        f"× {name}": median(mine / other for mine, other in zip(ours, theirs, strict=True))
        for name, theirs in rates.items()
        if name != "headrace"
    }
    return {"records/s": median(ours), **ratios}


# --- producing


def _headrace_send(bootstrap: str, topic: str, count: int, value: bytes) -> None:
    from headrace import KafkaProducer  # noqa: PLC0415 - an extra

    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for _ in range(count):
            producer.send(topic, value)
        producer.flush(_TIMEOUT_S)


def _confluent_send(bootstrap: str, topic: str, count: int, value: bytes, **reports: Any) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415 - an extra

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 2})
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, **reports)
                break
            except BufferError:
                producer.poll(0.05)
        if number % _REPORTS_EVERY == 0:
            producer.poll(0)
    assert producer.flush(_TIMEOUT_S) == 0


def _confluent_send_reported(bootstrap: str, topic: str, count: int, value: bytes) -> None:
    def report(error: Any, _: Any) -> None:
        assert error is None, error

    _confluent_send(bootstrap, topic, count, value, on_delivery=report)


def _kafka_python_send(bootstrap: str, topic: str, count: int, value: bytes) -> None:
    import kafka  # noqa: PLC0415 - an extra

    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for _ in range(count):
        producer.send(topic, value)
    producer.flush(_TIMEOUT_S)
    producer.close()


# --- consuming


def _headrace_read(bootstrap: str, topic: str, count: int, _: bytes) -> None:
    from headrace import KafkaConsumer  # noqa: PLC0415 - an extra

    size = 0
    with KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        for seen, record in enumerate(consumer, start=1):
            size += len(record.value)
            if seen == count:
                break
    assert size


def _confluent_read(bootstrap: str, topic: str, count: int, _: bytes) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition  # noqa: PLC0415 - an extra

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    seen = size = 0
    while seen < count:
        for message in consumer.consume(_CHUNK, 0.1):
            seen += 1
            size += len(message.value() or b"")
    consumer.close()
    assert size


def _kafka_python_read(bootstrap: str, topic: str, count: int, _: bytes) -> None:
    import kafka  # noqa: PLC0415 - an extra

    consumer = kafka.KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    size = 0
    for seen, record in enumerate(consumer, start=1):
        size += len(record.value)
        if seen == count:
            break
    consumer.close()
    assert size


def client_workloads(*, quick: bool) -> list[Workload]:
    """Producing and consuming."""
    records = 100_000 if quick else 300_000
    sending: Contest = {
        "headrace": _headrace_send,
        "confluent-kafka": _confluent_send_reported,
        "confluent-kafka without reports": _confluent_send,
        "kafka-python": _kafka_python_send,
    }
    reading: Contest = {
        "headrace": _headrace_read,
        "confluent-kafka": _confluent_read,
        "kafka-python": _kafka_python_read,
    }
    return [
        Clients(name="Python producer", records=records, record_bytes=100, contestants=sending, reads=False),
        Clients(name="Python consumer", records=records, record_bytes=100, contestants=reading, reads=True),
    ]


CLIENT_TARGETS: Final = {
    (f"Python {kind}", f"× {other}"): Target(bound=bound, at_least=True, ratio=False, unit="×")
    for kind in ("producer", "consumer")
    for other, bound in (("confluent-kafka", 0.9), ("kafka-python", 5.0))
}
