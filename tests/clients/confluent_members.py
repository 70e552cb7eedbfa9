"""Members of a group on librdkafka, polled side by side from one thread.

librdkafka keeps its promises (heartbeats, rebalances) only to those who poll, so whoever waits for a group polls all
of its members in turn.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import confluent_kafka

from clients.libraries import DEADLINE_S, DidNotArrive, Seen, confluent_seen

_POLL_S = 0.02

# Heartbeats carry the news of a rebalance, so classic members send them often.
CLASSIC = {"group.protocol": "classic", "heartbeat.interval.ms": 100, "session.timeout.ms": 6000}
CONSUMER = {"group.protocol": "consumer"}
PROTOCOLS = {
    "range": {**CLASSIC, "partition.assignment.strategy": "range"},
    "roundrobin": {**CLASSIC, "partition.assignment.strategy": "roundrobin"},
    "cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "consumer": CONSUMER,
    "consumer-range": {**CONSUMER, "group.remote.assignor": "range"},
}


class Member:
    """One consumer in a group: what it received, what it was given and what was taken from it."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], **settings: object) -> None:
        self.records: list[Seen] = []
        self.events: list[tuple[str, list[int]]] = []
        self.errors: list[confluent_kafka.KafkaError] = []
        self.commits: list[object] = []
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "topic.metadata.refresh.interval.ms": 500,
                "on_commit": lambda error, places: self.commits.append(error or places),
                "log_level": 2,
                **settings,
            }
        )
        if topics:
            self.consumer.subscribe(
                list(topics),
                on_assign=lambda _, places: self._note("assigned", places),
                on_revoke=lambda _, places: self._note("revoked", places),
                on_lost=lambda _, places: self._note("lost", places),
            )

    def _note(self, what: str, places: list[confluent_kafka.TopicPartition]) -> None:
        self.events.append((what, sorted(place.partition for place in places)))

    def poll(self) -> None:
        """Let it do its work for a moment."""
        for message in self.consumer.consume(1000, _POLL_S):
            if message.error():
                self.errors.append(message.error())
            else:
                self.records.append(confluent_seen(message))

    @property
    def held(self) -> list[tuple[str, int]]:
        """Topic and partition of everything it holds now."""
        return sorted((place.topic, place.partition) for place in self.consumer.assignment())

    def committed(self, topic: str, *partitions: int) -> list[tuple[int, str | None]]:
        """Committed offset and note of each partition; -1001 where there is none."""
        places = [confluent_kafka.TopicPartition(topic, number) for number in partitions]
        return [(place.offset, place.metadata) for place in self.consumer.committed(places, DEADLINE_S)]

    def close(self) -> float:
        """Leave the group; the seconds that took."""
        begin = time.monotonic()
        self.consumer.close()
        return time.monotonic() - begin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.close()


def until(members: Iterable[Member], is_so: Callable[[], bool], what: str, *, within_s: float = DEADLINE_S) -> None:
    """Poll all of them in turn until something is so."""
    members = list(members)
    end = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > end:
            raise DidNotArrive(f"{what}: {[(member.held, len(member.records), member.errors) for member in members]}")
        for member in members:
            member.poll()


def until_share(members: Iterable[Member], topic: str, partitions: int) -> None:
    """Poll until the members hold all partitions of a topic, evenly, each by one of them."""
    members = list(members)
    wanted = [(topic, number) for number in range(partitions)]
    sizes = {partitions // len(members), -(-partitions // len(members))}

    def is_so() -> bool:
        held = [member.held for member in members]
        return sorted(place for one in held for place in one) == wanted and {len(one) for one in held} <= sizes

    until(members, is_so, f"{len(members)} members share {wanted}")


def until_received(members: Iterable[Member], count: int) -> list[Seen]:
    """Poll until they have received so many records between them; gives them all."""
    members = list(members)
    until(members, lambda: sum(len(member.records) for member in members) >= count, f"{count} records")
    return sorted(record for member in members for record in member.records)
