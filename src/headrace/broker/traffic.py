"""What went in and out, as plain numbers that are added to per batch and read when somebody asks."""

from __future__ import annotations


class Traffic:
    """Of one topic on this broker, or of topics that are gone."""

    __slots__ = ("bytes_in", "bytes_out", "messages_in", "replication_bytes_in", "replication_bytes_out")

    def __init__(self) -> None:
        self.messages_in = 0
        """Records that producers wrote; a batch that came twice counts once."""
        self.bytes_in = 0
        """Their bytes, as compressed."""
        self.bytes_out = 0
        """Bytes that consumers read."""
        self.replication_bytes_in = 0
        """Bytes copied from leaders."""
        self.replication_bytes_out = 0
        """Bytes that followers copied."""

    def add(self, other: Traffic) -> None:
        """Take in what another counted."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffics:
    """Of every topic, and of all that ever were."""

    __slots__ = ("_gone", "by_topic", "failed_fetches", "failed_produces")

    def __init__(self) -> None:
        self.by_topic: dict[str, Traffic] = {}
        self.failed_produces = 0
        """Partitions of produce requests that were refused."""
        self.failed_fetches = 0
        """Partitions of fetch requests that were."""
        self._gone = Traffic()

    def of(self, topic: str) -> Traffic:
        """A topic's numbers, at zero if it is new."""
        return self.by_topic.setdefault(topic, Traffic())

    def forget(self, topic: str) -> None:
        """The topic is gone; what it carried still counts for the broker."""
        traffic = self.by_topic.pop(topic, None)
        if traffic is not None:
            self._gone.add(traffic)

    def total(self) -> Traffic:
        """Of the broker since it started."""
        total = Traffic()
        total.add(self._gone)
        for traffic in self.by_topic.values():
            total.add(traffic)
        return total
