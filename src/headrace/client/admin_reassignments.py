"""Asking a cluster: partitions that move to other brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.client.admin_values import Reassignment
from headrace.client.answers import check, partitions_of
from headrace.client.records import TopicPartition, place_of
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

LIST_PARTITION_REASSIGNMENTS = 46


class ReassignmentAdmin:
    """The part of the admin client that is about partitions on their way."""

    _cluster: Cluster
    _timeout_ms: int

    async def list_partition_reassignments(
        self, partitions: Iterable[Any] | None = None, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Which partitions are on their way to other brokers, of some or of all."""
        by_topic: dict[str, list[int]] = {}
        for topic, number in map(place_of, partitions or ()):
            by_topic.setdefault(topic, []).append(number)
        request = ListPartitionReassignmentsRequest(
            timeout_ms=timeout_ms or self._timeout_ms,
            topics=None
            if partitions is None
            else tuple(
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=tuple(numbers))
                for topic, numbers in by_topic.items()
            ),
        )

        async def attempt() -> dict[TopicPartition, Reassignment]:
            answer = await self._cluster.ask(LIST_PARTITION_REASSIGNMENTS, request)
            check("list_partition_reassignments", answer)
            return {
                place: Reassignment(
                    replicas=tuple(one.replicas),
                    adding_replicas=tuple(one.adding_replicas),
                    removing_replicas=tuple(one.removing_replicas),
                )
                for place, one in partitions_of(answer)
            }

        return await self._cluster.persist(attempt)
