"""`ConsumerRebalanceListener`: hears which partitions come and go."""

from __future__ import annotations

from collections.abc import Collection

from headrace.client.records import TopicPartition


class ConsumerRebalanceListener:
    """What a consumer tells while its group rebalances; override what you need.

    The methods are called while the consumer is polled. Those for an asynchronous consumer may be coroutines.
    """

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> object:
        """These go to somebody else: the moment to commit."""

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> object:
        """These are ours now: the moment to seek."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> object:
        """These are somebody else's already; nothing can be committed for them any more."""
        return self.on_partitions_revoked(lost)
