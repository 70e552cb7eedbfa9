"""Who drives the load: the port, and its first implementation by Apache Kafka's own Java clients and tools."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from headrace.testing.java_runner import JavaFailed, JavaRunner

_JAVA: Final = Path(__file__).parent / "java"
_PERFORMANCE: Final = "org.apache.kafka.tools.ProducerPerformance"
_RATE: Final = re.compile(r"^\d+ records sent, ([\d.]+) records/sec", re.MULTILINE)
_TIMEOUT_S: Final = 180.0
_ERROR_SHOWN: Final = 500
# The heap of Kafka's own performance scripts; the default collector and compiler, as a user would have them.
_CLIENT_FLAGS: Final = ("-Xmx512M",)

QUANTILES: Final = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Bytes of keys and values a consumer received, and how long it took."""

    size_bytes: int
    seconds: float


class Load(Protocol):
    """Clients that write and read a topic on a broker."""

    name: str

    def create_topic(self, bootstrap: str, topic: str, partitions: int, settings: dict[str, str]) -> None:
        """Create a topic and wait until every partition has a leader."""

    def delete_topic(self, bootstrap: str, topic: str) -> None:
        """Delete a topic."""

    def produce(
        self, bootstrap: str, topic: str, *, records: int, record_bytes: int, properties: dict[str, str]
    ) -> float:
        """Write as fast as it goes with acks=all; records per second."""

    def fetch(self, bootstrap: str, topic: str, *, records: int, passes: int) -> Reading:
        """Read a topic of that many records from its beginning, several times."""

    def tail(self, bootstrap: str, topic: str, *, records: int, record_bytes: int) -> Reading:
        """Read an empty topic while that many records are written to it."""

    def latency(
        self, bootstrap: str, topic: str, *, rate: int, warmup_s: int, seconds: int, record_bytes: int
    ) -> dict[str, float]:
        """Write at an even rate and read back; percentiles in ms of the acknowledgement and of the whole way."""

    def set_internal_topics(self, bootstrap: str, settings: dict[str, str]) -> None:
        """Have the coordinators' topics made, and set how they flush."""

    def commit(self, bootstrap: str, topic: str, *, group: str, way: str, commits: int) -> float:
        """Commit the offsets of all partitions again and again; commits per second."""

    def stability(self, bootstrap: str, topic: str, *, group: str, protocol: str, members: int, times: int) -> float:
        """Let a last member join a group, several times; the median milliseconds until the group is stable again."""

    def copy(self, bootstrap: str, topics: tuple[str, str], *, group: str, records: int, per_transaction: int) -> float:
        """Copy one topic to another exactly once; records per second."""

    def create_first_topic(self, bootstrap: str, topic: str) -> None:
        """Create a topic in a cluster that may not be able to yet, as soon as it is."""

    def lose(self, bootstrap: str, topic: str, *, kind: str, nodes: str, new_topic: str) -> tuple[int, float]:
        """End a node of a cluster; which one it was, and for how many milliseconds it was missed."""

    def close(self) -> None:
        """Let go of what the clients hold."""


class JavaLoad:
    """Kafka's ProducerPerformance, and programs of ours on Kafka's clients where its tools need a consumer group."""

    name = "Apache Kafka's Java clients"

    def __init__(self) -> None:
        self._java = JavaRunner(_JAVA, flags=_CLIENT_FLAGS)

    def close(self) -> None:
        """End the client JVM."""
        self._java.close()

    def create_topic(self, bootstrap: str, topic: str, partitions: int, settings: dict[str, str]) -> None:
        """By the Admin client."""
        pairs = [f"{key}={value}" for key, value in settings.items()]
        self._java.check("Topics", bootstrap, "create", topic, partitions, *pairs, timeout_s=_TIMEOUT_S)

    def delete_topic(self, bootstrap: str, topic: str) -> None:
        """By the Admin client."""
        self._java.check("Topics", bootstrap, "delete", topic, timeout_s=_TIMEOUT_S)

    def produce(
        self, bootstrap: str, topic: str, *, records: int, record_bytes: int, properties: dict[str, str]
    ) -> float:
        """By ProducerPerformance with the client's defaults: acks=all, idempotent."""
        command = _producing(bootstrap, topic, records, record_bytes)
        if properties:
            command += ["--command-property", *(f"{key}={value}" for key, value in properties.items())]
        done = self._java.check(_PERFORMANCE, *command, timeout_s=_TIMEOUT_S)
        found = _RATE.findall(done.out)
        # ProducerPerformance prints what failed and goes on, and would count the failures as sent.
        if not found or done.err:
            raise JavaFailed(f"ProducerPerformance on {bootstrap}: {(done.err or done.out)[:_ERROR_SHOWN]}")
        return float(found[-1])

    def fetch(self, bootstrap: str, topic: str, *, records: int, passes: int) -> Reading:
        """By a consumer with the settings of ConsumerPerformance, but assigned instead of subscribed."""
        done = self._java.check("AssignedFetch", bootstrap, topic, records, passes, timeout_s=_TIMEOUT_S)
        return _reading(done.lines())

    def tail(self, bootstrap: str, topic: str, *, records: int, record_bytes: int) -> Reading:
        """By that consumer, beside ProducerPerformance."""
        command = _producing(bootstrap, topic, records, record_bytes)
        done = self._java.check("TailFetch", bootstrap, topic, records, *command, timeout_s=_TIMEOUT_S)
        return _reading(done.lines())

    def latency(
        self, bootstrap: str, topic: str, *, rate: int, warmup_s: int, seconds: int, record_bytes: int
    ) -> dict[str, float]:
        """By a paced producer and an assigned consumer in one JVM."""
        shape = (rate, warmup_s, seconds, record_bytes)
        done = self._java.check("PacedLatency", bootstrap, topic, *shape, timeout_s=_TIMEOUT_S)
        numbers: dict[str, float] = {}
        for line in done.lines():
            kind, *values = line.split()
            for quantile, value in zip(QUANTILES, values, strict=True):
                numbers[f"{kind} {quantile} ms"] = float(value)
        return numbers

    def set_internal_topics(self, bootstrap: str, settings: dict[str, str]) -> None:
        """By a consumer and a producer that need them, and the Admin client."""
        pairs = [f"{key}={value}" for key, value in settings.items()]
        self._java.check("InternalTopics", bootstrap, *pairs, timeout_s=_TIMEOUT_S)

    def commit(self, bootstrap: str, topic: str, *, group: str, way: str, commits: int) -> float:
        """By an assigned consumer: commitSync in a loop, or commitAsync in bursts of a hundred."""
        done = self._java.check("OffsetCommits", bootstrap, topic, group, way, commits, timeout_s=_TIMEOUT_S)
        count, seconds = done.lines()[-1].split()
        return int(count) / float(seconds)

    def stability(self, bootstrap: str, topic: str, *, group: str, protocol: str, members: int, times: int) -> float:
        """By that many consumers, each on its own thread, in one JVM."""
        shape = (group, protocol, members, times)
        done = self._java.check("GroupStability", bootstrap, topic, *shape, timeout_s=_TIMEOUT_S)
        return float(done.lines()[-1].split()[0])

    def copy(self, bootstrap: str, topics: tuple[str, str], *, group: str, records: int, per_transaction: int) -> float:
        """By a subscribed consumer and a transactional producer."""
        shape = (group, records, per_transaction)
        done = self._java.check("TransactionalCopy", bootstrap, *topics, *shape, timeout_s=_TIMEOUT_S)
        count, _, seconds = done.lines()[-1].split()
        return int(count) / float(seconds)

    def create_first_topic(self, bootstrap: str, topic: str) -> None:
        """By the Admin client, again and again."""
        self._java.check("ControllerLoss", bootstrap, "-", topic, "-", timeout_s=_TIMEOUT_S)

    def lose(self, bootstrap: str, topic: str, *, kind: str, nodes: str, new_topic: str) -> tuple[int, float]:
        """Seen by a producer if it is a leader, by the Admin client if it is the active controller."""
        what, _, how = kind.partition("-")
        command = ("LeaderLoss", bootstrap, topic, nodes, how)
        if what == "controller":
            command = ("ControllerLoss", bootstrap, topic, new_topic, nodes)
        node, stall_ms = self._java.check(*command, timeout_s=_TIMEOUT_S).lines()[-1].split()
        return int(node), float(stall_ms)


def _producing(bootstrap: str, topic: str, records: int, record_bytes: int) -> list[str]:
    command = ["--bootstrap-server", bootstrap, "--topic", topic, "--throughput", "-1"]
    command += ["--num-records", str(records), "--record-size", str(record_bytes)]
    return [*command, "--reporting-interval", "3600000"]


def _reading(lines: list[str]) -> Reading:
    """The last line a reading program prints: records, bytes, seconds."""
    _, size, seconds = lines[-1].split()
    return Reading(size_bytes=int(size), seconds=float(seconds))
