"""Partitions and offsets in our words and the engine's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.client.engine import Engine
from headrace.client.records import OffsetAndMetadata, TopicPartition, place_of

OFFSET_BEGINNING, OFFSET_END = Engine.OFFSET_BEGINNING, Engine.OFFSET_END
OFFSET_STORED, OFFSET_INVALID = Engine.OFFSET_STORED, Engine.OFFSET_INVALID

_NO_EPOCH = -1

Offsets = Mapping[TopicPartition, "int | OffsetAndMetadata"]


def engine_places(places: Iterable[Any]) -> list[Engine.TopicPartition]:
    """Partitions without offsets."""
    return [Engine.TopicPartition(topic, partition) for topic, partition in map(place_of, places)]


def engine_offsets(offsets: Offsets) -> list[Engine.TopicPartition]:
    """Partitions with offsets, and notes where there are any."""
    return [_engine_offset(place_of(place), offset) for place, offset in offsets.items()]


def _engine_offset(place: TopicPartition, offset: Any) -> Engine.TopicPartition:
    if isinstance(offset, int):
        return Engine.TopicPartition(place.topic, place.partition, offset)
    note = getattr(offset, "metadata", "") or None
    if note is None:
        return Engine.TopicPartition(place.topic, place.partition, offset.offset)
    return Engine.TopicPartition(place.topic, place.partition, offset.offset, note)


def offset_and_metadata(found: Engine.TopicPartition) -> OffsetAndMetadata | None:
    """What was committed, if anything."""
    if found.offset < 0:
        return None
    # The stubs promise a number, but there is none where the broker said nothing.
    epoch: int | None = found.leader_epoch
    return OffsetAndMetadata(found.offset, found.metadata or "", _NO_EPOCH if epoch is None else epoch)
