"""What is measured: writing, reading and latency, each run against one seat.

A workload runs once against one seat and returns its numbers by metric name. Broker CPU is what the broker's process
used between the first and the last byte of the load, per million records or per gigabyte, so that runs of different
lengths can be compared.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Protocol

from bench.load import Load, Reading
from bench.memory import touch_free_memory
from bench.seats import Seat

Numbers = dict[str, float]

PARTITIONS: Final = 6
LATENCY_RATE: Final = 1000
# A new name every time: to both brokers a topic of the same name is another topic, and old metadata may still be about.
_NAMES: Final = (f"bench-{number}" for number in count())
MILLION: Final = 1e6
_GIGABYTE: Final = 1e9
_SHARE_OF_PASS: Final = 0.9
"""What a pass reads before the next one begins. Who reads to the end has asked for more by then, and the broker keeps
that question for `fetch.max.wait.ms`, half a second, before the next pass can ask its first."""


class Workload(Protocol):
    """One measurement that can be made of any seat."""

    @property
    def name(self) -> str:
        """What the table calls it."""

    @property
    def depends_on_flush(self) -> bool:
        """Whether a broker's flush mode can make a difference to it."""

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Run it once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Produce:
    """Writing as fast as it goes."""

    name: str
    records: int
    flushed_records: int
    record_bytes: int
    properties: dict[str, str] = field(default_factory=dict)
    partitions: int = PARTITIONS
    depends_on_flush: bool = True

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Records per second and broker CPU."""
        records = self.flushed_records if seat.flushes else self.records
        with fresh_topic(seat, load, self.partitions) as topic, broker_cpu(seat) as cpu:
            rate = load.produce(
                seat.broker.bootstrap,
                topic,
                records=records,
                record_bytes=self.record_bytes,
                properties=self.properties,
            )
        return {"records/s": rate, "CPU s/M records": cpu.seconds / records * MILLION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Reading a whole topic: first with its files evicted from the page cache, then from the page cache."""

    name: str
    records: int
    record_bytes: int
    passes: int
    depends_on_flush: bool = False

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Megabytes per second and broker CPU, cold and cached, and how much the cold pass really read from disk."""
        with fresh_topic(seat, load, PARTITIONS) as topic:
            where = (seat.broker.bootstrap, topic)
            load.produce(*where, records=self.records, record_bytes=self.record_bytes, properties={})
            _evict(seat, topic)
            touch_free_memory()
            disk_before = seat.broker.disk_read_bytes()
            with broker_cpu(seat) as cold_cpu:
                cold = load.fetch(*where, records=self.records, passes=1)
            from_disk = seat.broker.disk_read_bytes() - disk_before
            with broker_cpu(seat) as cached_cpu:
                cached = load.fetch(*where, records=round(self.records * _SHARE_OF_PASS), passes=self.passes)
        return {
            "cold MB/s": _megabytes_per_second(cold),
            "cold CPU s/GB": cold_cpu.seconds / cold.size_bytes * _GIGABYTE,
            "cold part read from disk": from_disk / cold.size_bytes,
            "cached MB/s": _megabytes_per_second(cached),
            "cached CPU s/GB": cached_cpu.seconds / cached.size_bytes * _GIGABYTE,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Reading a topic while it is written at full speed."""

    name: str
    records: int
    flushed_records: int
    record_bytes: int
    depends_on_flush: bool = True

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Megabytes per second from the first send to the last record read, and broker CPU for both directions."""
        records = self.flushed_records if seat.flushes else self.records
        with fresh_topic(seat, load, PARTITIONS) as topic, broker_cpu(seat) as cpu:
            reading = load.tail(seat.broker.bootstrap, topic, records=records, record_bytes=self.record_bytes)
        return {"MB/s": _megabytes_per_second(reading), "CPU s/GB": cpu.seconds / reading.size_bytes * _GIGABYTE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Records at an even 1,000 a second, acks=all, no lingering, read back by a consumer at the tail."""

    name: str
    warmup_s: int
    seconds: int
    record_bytes: int
    depends_on_flush: bool = True

    def measure(self, seat: Seat, load: Load) -> Numbers:
        """Percentiles of the acknowledgement and of the whole way, in milliseconds, and broker CPU."""
        with fresh_topic(seat, load, PARTITIONS) as topic, broker_cpu(seat) as cpu:
            numbers = load.latency(
                seat.broker.bootstrap,
                topic,
                rate=LATENCY_RATE,
                warmup_s=self.warmup_s,
                seconds=self.seconds,
                record_bytes=self.record_bytes,
            )
        records = LATENCY_RATE * (self.warmup_s + self.seconds)
        return numbers | {"CPU s/M records": cpu.seconds / records * MILLION}


def warm_up(seat: Seat, load: Load, *, records: int) -> None:
    """Load that is not measured: client and broker compile their hot paths under it, where they do."""
    with fresh_topic(seat, load, PARTITIONS) as topic:
        where = (seat.broker.bootstrap, topic)
        load.produce(*where, records=records, record_bytes=100, properties={})
        load.fetch(*where, records=records, passes=1)
    with fresh_topic(seat, load, 1) as topic:
        single = {"batch.size": "0", "linger.ms": "0"}
        load.produce(seat.broker.bootstrap, topic, records=records // 20, record_bytes=100, properties=single)


class _Cpu:
    """The broker CPU seconds of a `with` block, known when it has ended."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


@contextmanager
def broker_cpu(seat: Seat) -> Iterator[_Cpu]:
    """What the broker uses while the block runs."""
    cpu = _Cpu()
    before = seat.broker.cpu_seconds()
    yield cpu
    cpu.seconds = seat.broker.cpu_seconds() - before


@contextmanager
def fresh_topic(seat: Seat, load: Load, partitions: int) -> Iterator[str]:
    """The name of a fresh topic, with nothing left to write back from the one before."""
    topic = next(_NAMES)
    touch_free_memory()
    load.create_topic(seat.broker.bootstrap, topic, partitions, seat.topic_settings)
    os.sync()
    yield topic
    load.delete_topic(seat.broker.bootstrap, topic)


def _megabytes_per_second(reading: Reading) -> float:
    return reading.size_bytes / 1e6 / reading.seconds


def _evict(seat: Seat, topic: str) -> None:
    """Write a topic's segments back and drop them from the page cache (which a mapped, touched page would survive)."""
    for file in seat.broker.log_dir.glob(f"{topic}-*/*.log"):
        descriptor = os.open(file, os.O_RDWR)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
