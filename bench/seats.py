"""Who is measured: a broker process or a cluster of them, with the topic settings that choose how it flushes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.cluster_process import ClusterProcess
from headrace.testing.broker_process import BrokerProcess, HeadraceProcess
from headrace.testing.peer import KafkaPeer

KAFKA: Final = "kafka"
KAFKA_FLUSH: Final = "kafka-flush"
HEADRACE: Final = "headrace"
HEADRACE_FLUSH: Final = "headrace-flush"

TITLES: Final = {
    KAFKA: "Kafka",
    HEADRACE: "Headrace",
    HEADRACE_FLUSH: "Headrace, flushed",
    KAFKA_FLUSH: "Kafka, flushed",
}
# Files of a deleted topic go at once, so that clearing up does not fall into the next measurement.
_TOPIC_SETTINGS: Final = {"file.delete.delay.ms": "0"}
# Members learn of a rebalance by their heartbeats: often, so that what is measured is not the wait for the next one.
_BROKER_SETTINGS: Final = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A broker, or a cluster, in one flush mode."""

    name: str
    broker: BrokerProcess | ClusterProcess
    flushes: bool
    topic_settings: dict[str, str] = field(default_factory=dict)


@contextmanager
def running_seats(place: Path, *, with_kafka: bool) -> Iterator[list[Seat]]:
    """Start the brokers, one process each, and give their seats; they are gone afterwards."""
    brokers: list[BrokerProcess | ClusterProcess] = [HeadraceProcess(place / HEADRACE, settings=_BROKER_SETTINGS)]
    if with_kafka:
        brokers.append(KafkaPeer(place / KAFKA, settings=_BROKER_SETTINGS))
    with _running(brokers) as seats:
        yield seats


@contextmanager
def running_clusters(place: Path, settings: dict[str, str], *, with_kafka: bool) -> Iterator[list[Seat]]:
    """Start the clusters, three processes each, and give their seats; they are gone afterwards."""
    makers = [HeadraceProcess, *([KafkaPeer] if with_kafka else [])]
    with _running([ClusterProcess(make, place / make.name, settings=settings) for make in makers]) as seats:
        yield seats


@contextmanager
def _running(brokers: Sequence[BrokerProcess | ClusterProcess]) -> Iterator[list[Seat]]:
    try:
        for broker in brokers:
            broker.format()
            broker.start()
        yield [seat for broker in brokers for seat in _seats_of(broker)]
    finally:
        for broker in brokers:
            broker.remove()


def _seats_of(broker: BrokerProcess | ClusterProcess) -> list[Seat]:
    if broker.name == KafkaPeer.name:
        return [
            Seat(name=KAFKA, broker=broker, flushes=False, topic_settings=_TOPIC_SETTINGS),
            Seat(
                name=KAFKA_FLUSH, broker=broker, flushes=True, topic_settings=_TOPIC_SETTINGS | {"flush.messages": "1"}
            ),
        ]
    relaxed = _TOPIC_SETTINGS | {"flush.on.acks.all": "false"}
    strict = _TOPIC_SETTINGS | {"flush.on.acks.all": "true"}
    return [
        Seat(name=HEADRACE, broker=broker, flushes=False, topic_settings=relaxed),
        Seat(name=HEADRACE_FLUSH, broker=broker, flushes=True, topic_settings=strict),
    ]
