"""How many partitions topics have and who leads them, as the sink needs to know it: created like a producer does it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.client.fault import ClientFault
from headrace.model.errors import ErrorCode, KafkaError
from headrace.spark.links import PASSING, persist

if TYPE_CHECKING:
    from headrace.spark.links import Links
    from headrace.spark.outbox import Place
    from headrace.spark.producer_settings import ProducerSettings

UNKNOWN_PATIENCE_S = 5.0
"""A topic that is being created shows up within this; one that does not will not be created."""
NO_LEADER = -1
_BEING_CREATED = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class NoTopic(ClientFault):
    """A topic cannot be written to because it is not there."""


class TopicLeaders:
    """Asks for each topic once, and again when it is forgotten."""

    def __init__(
        self,
        links: Links,
        settings: ProducerSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._links = links
        self._settings = settings
        self._clock, self._pause = clock, pause
        self._counts: dict[str, int] = {}
        self._leaders: dict[Place, int] = {}

    def count_of(self, topic: str) -> int:
        """How many partitions a topic has; it is created if the brokers create topics by themselves."""
        if topic not in self._counts:
            self._look_up(topic)
        return self._counts[topic]

    def of(self, place: Place) -> int:
        """The broker that leads a partition; NO_LEADER if there is none just now."""
        if place not in self._leaders:
            self._look_up(place[0])
        if place not in self._leaders:
            raise no_partition(*place, self._counts[place[0]])
        return self._leaders[place]

    def forget(self, topic: str) -> None:
        """Ask anew who leads the partitions of a topic."""
        self._leaders = {place: leader for place, leader in self._leaders.items() if place[0] != topic}

    def forget_all(self) -> None:
        """Ask anew who leads what."""
        self._leaders.clear()

    def _look_up(self, topic: str) -> None:
        began_s = self._clock()

        def attempt() -> None:
            try:
                self._take(topic)
            except KafkaError as error:
                patience_s = min(UNKNOWN_PATIENCE_S, self._settings.topic_patience_s)
                if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._clock() - began_s > patience_s:
                    raise _no_topic(topic) from error
                raise

        try:
            persist(
                self._links,
                attempt,
                patience_s=self._settings.topic_patience_s,
                passing=_BEING_CREATED,
                clock=self._clock,
                pause=self._pause,
            )
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise _no_topic(topic) from error
            raise NoTopic(f"Topic {topic} cannot be written to: {error.code.name}", str(error)) from error

    def _take(self, topic: str) -> None:
        (found,) = self._links.metadata((topic,), create=True).topics
        if found.error_code:
            code = ErrorCode(found.error_code)
            raise KafkaError(code, f"Topic {topic}: {code.name}.")
        self._counts[topic] = len(found.partitions)
        self._leaders.update({(topic, one.partition_index): one.leader_id for one in found.partitions})


def no_partition(topic: str, partition: int, count: int) -> NoTopic:
    """A partition was asked for that is not there."""
    return NoTopic(
        f"Topic {topic} has no partition {partition}",
        f"Its partitions are 0 to {count - 1}; look at the column named partition.",
    )


def _no_topic(topic: str) -> NoTopic:
    return NoTopic(f"There is no topic {topic}", f"Create it: bin/headrace topics create {topic}")
