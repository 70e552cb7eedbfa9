"""The values clients hand to programs, under the names kafka-python gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

NO_OFFSET = -1


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int


def place_of(partition: Any) -> TopicPartition:
    """A pair, or somebody else's class for the same, as ours."""
    if isinstance(partition, TopicPartition):
        return partition
    if isinstance(partition, tuple):
        return TopicPartition(*partition)
    return TopicPartition(partition.topic, partition.partition)


class OffsetAndMetadata(NamedTuple):
    """An offset to commit, with a note."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a point in time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class RecordMetadata(NamedTuple):
    """Where a record was stored; the offset is -1 where nobody was asked to say (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition it is in."""
        return TopicPartition(self.topic, self.partition)


def metadata_of(message: Message) -> RecordMetadata:
    """What a delivery report says."""
    kind, timestamp_ms = message.timestamp()
    offset = message.offset()
    return RecordMetadata(
        message.topic() or "",
        message.partition() or 0,
        NO_OFFSET if offset is None or offset < 0 else offset,
        timestamp_ms,
        _timestamp_type(kind),
    )


def _timestamp_type(kind: int) -> int:
    """Kafka says 0 for the producer's time and 1 for the broker's; librdkafka has 0 for none and counts on."""
    return max(kind - 1, 0)


class ConsumerRecord(msgspec.Struct, frozen=True, gc=False, eq=False, repr_omit_defaults=True):
    """One record as it was read.

    A thin cover over what the engine made, because millions of them pass by. Key and value are deserialized when they
    are looked at: a record that cannot be read fails its reader, and the ones around it are unharmed.
    """

    message: Message
    """confluent-kafka's message, for what is not covered here."""
    key_from: Callable[[bytes], Any] | None = None
    value_from: Callable[[bytes], Any] | None = None

    @property
    def topic(self) -> str:
        """The topic."""
        return self.message.topic()  # type: ignore[return-value]

    @property
    def partition(self) -> int:
        """The partition."""
        return self.message.partition()  # type: ignore[return-value]

    @property
    def offset(self) -> int:
        """The place in the partition."""
        return self.message.offset()  # type: ignore[return-value]

    @property
    def key(self) -> Any:
        """The key, deserialized; None if there is none."""
        raw = self.message.key()
        return raw if self.key_from is None or raw is None else self.key_from(raw)

    @property
    def value(self) -> Any:
        """The value, deserialized; None for a tombstone."""
        raw = self.message.value()
        return raw if self.value_from is None or raw is None else self.value_from(raw)

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers in their order."""
        return self.message.headers() or []  # type: ignore[return-value]

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970."""
        return self.message.timestamp()[1]

    @property
    def timestamp_type(self) -> int:
        """0: the producer's time; 1: the time the broker stored it."""
        return _timestamp_type(self.message.timestamp()[0])

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that stored it."""
        return self.message.leader_epoch()

    @property
    def serialized_key_size(self) -> int:
        """The key's length in bytes, -1 if there is none."""
        raw = self.message.key()
        return -1 if raw is None else len(raw)

    @property
    def serialized_value_size(self) -> int:
        """The value's length in bytes, -1 if there is none."""
        raw = self.message.value()
        return -1 if raw is None else len(raw)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition it is in."""
        return TopicPartition(self.topic, self.partition)

    def __repr__(self) -> str:
        """What a person wants to see of it."""
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.message.key()!r}, value={self.message.value()!r}, "
            f"headers={self.headers!r})"
        )
