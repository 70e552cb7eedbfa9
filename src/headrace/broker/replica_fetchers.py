"""The fetchers of a broker: `num.replica.fetchers` for each broker that leads something we follow."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from headrace.broker.replica_fetcher import ReplicaFetcher

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition


class ReplicaFetchers:
    """Who copies which partition from whom."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._followed: dict[Partition, ReplicaFetcher] = {}
        self._touched: dict[ReplicaFetcher, None] = {}

    def follow(self, partition: Partition, leader_id: int) -> None:
        """Copy a partition from its leader, in the epoch it is in now; begins with the next `settle`."""
        number = crc32(f"{partition.topic}-{partition.index}".encode()) % self._broker.config["num.replica.fetchers"]
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            fetcher = self._fetchers[leader_id, number] = ReplicaFetcher(self._broker, leader_id, number)
        if self._followed.get(partition) is not fetcher:
            self.leave(partition)
        self._followed[partition] = fetcher
        fetcher.add(partition)
        self._touched[fetcher] = None

    def leave(self, partition: Partition) -> None:
        """Copy a partition no longer: we lead it, nobody does, or it is gone."""
        fetcher = self._followed.pop(partition, None)
        if fetcher is not None:
            fetcher.discard(partition)
            self._touched[fetcher] = None

    def settle(self) -> None:
        """After all changes that came together: have new partitions asked for, and let idle fetchers go."""
        touched, self._touched = self._touched, {}
        for fetcher in touched:
            if len(fetcher):
                fetcher.nudge()
            else:
                fetcher.stop()
                self._fetchers = {key: kept for key, kept in self._fetchers.items() if kept is not fetcher}

    def stop(self) -> None:
        """Copy nothing more."""
        for fetcher in self._fetchers.values():
            fetcher.stop()
        self._fetchers.clear()
        self._followed.clear()
