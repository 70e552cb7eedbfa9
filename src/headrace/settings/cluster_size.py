"""What a cluster's settings are by the number of its brokers: who votes on metadata, and how many copies are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

COPIES_MAX = 3
"""Kafka's own habit: with three copies one broker may be away and another die."""


def voters_among(nodes: Sequence[int]) -> list[int]:
    """The nodes that vote on metadata: three, or one where there are only two, as neither of two could do without."""
    return list(nodes[:3] if len(nodes) >= 3 else nodes[:1])


def replication_settings(brokers: int) -> dict[str, str]:
    """How many copies new topics and the coordinators' own have, and how many must be there for a write."""
    copies = str(min(brokers, COPIES_MAX))
    needed = "2" if brokers >= COPIES_MAX else "1"
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": needed,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": needed,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": needed,
    }
