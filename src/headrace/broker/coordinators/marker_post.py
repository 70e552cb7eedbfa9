"""Markers on their way to the leaders of a transaction's partitions, here and on other brokers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.broker.coordinators.leaders import NO_LEADER, leader_of
from headrace.broker.coordinators.markers import write_markers
from headrace.broker.coordinators.post import Post
from headrace.model.errors import ErrorCode
from headrace.net.link import LinkBroken
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from headrace.broker.broker import Broker
    from headrace.broker.coordinators.markers import Marker, TopicPartition
    from headrace.wire.messages.write_txn_markers import WriteTxnMarkersResponse

    Results = dict[TopicPartition, ErrorCode]

WRITE_TXN_MARKERS = 27
PURPOSE = "markers"
"""A link of their own: an answer comes when the markers are replicated, and nothing else should wait for that."""


class _Letter(Struct, frozen=True, kw_only=True):
    """A marker for some partitions of one broker."""

    marker: Marker
    places: tuple[TopicPartition, ...]


class MarkerPost:
    """Takes markers to where they belong."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # An answer names producers, so a request has each once.
        self._post: Post[_Letter, Results] = Post(
            broker.spawn, self._send, lambda letter: (letter.marker.producer_id, id(letter))
        )

    async def write(self, marker: Marker, places: Collection[TopicPartition]) -> Results:
        """Have a marker written to each partition by its leader; what became of each."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for place in places:
            by_leader.setdefault(leader_of(self._broker.metadata, *place), []).append(place)
        if len(by_leader) == 1:
            ((leader, part),) = by_leader.items()
            return await self._write(leader, marker, part)
        parts = await asyncio.gather(*(self._write(leader, marker, part) for leader, part in by_leader.items()))
        return {place: code for part in parts for place, code in part.items()}

    async def _write(self, leader: int, marker: Marker, places: Sequence[TopicPartition]) -> Results:
        if leader == self._broker.node_id:
            return await write_markers(self._broker, marker, places)
        if leader == NO_LEADER:
            return dict.fromkeys(places, ErrorCode.LEADER_NOT_AVAILABLE)
        try:
            return await self._post.ask(leader, _Letter(marker=marker, places=tuple(places)))
        except LinkBroken:
            return dict.fromkeys(places, ErrorCode.NETWORK_EXCEPTION)

    async def _send(self, node_id: int, letters: Sequence[_Letter]) -> list[Results]:
        request = WriteTxnMarkersRequest(markers=tuple(_written(letter) for letter in letters))
        response: WriteTxnMarkersResponse = await self._broker.peers.ask(
            node_id, WRITE_TXN_MARKERS, request, purpose=PURPOSE
        )
        codes = {
            (result.producer_id, topic.name, partition.partition_index): ErrorCode(partition.error_code)
            for result in response.markers
            for topic in result.topics
            for partition in topic.partitions
        }
        return [
            {
                place: codes.get((letter.marker.producer_id, *place), ErrorCode.UNKNOWN_SERVER_ERROR)
                for place in letter.places
            }
            for letter in letters
        ]


def _written(letter: _Letter) -> WritableTxnMarker:
    marker = letter.marker
    topics: dict[str, list[int]] = {}
    for topic, index in letter.places:
        topics.setdefault(topic, []).append(index)
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.commit,
        topics=tuple(
            WritableTxnMarkerTopic(name=name, partition_indexes=tuple(indexes)) for name, indexes in topics.items()
        ),
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
