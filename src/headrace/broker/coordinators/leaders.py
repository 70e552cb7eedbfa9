"""Who leads a partition, as the metadata of this broker has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.cores.metadata import Metadata, PartitionState

NO_LEADER = -1


def state_of(metadata: Metadata, topic: str, index: int) -> PartitionState | None:
    """A partition by its topic's name, if there is one."""
    known = metadata.topics.get(topic)
    if known is None or not 0 <= index < len(known.partitions):
        return None
    return known.partitions[index]


def leader_of(metadata: Metadata, topic: str, index: int) -> int:
    """The broker that leads a partition; -1 if none does, or there is no such partition."""
    state = state_of(metadata, topic, index)
    return NO_LEADER if state is None else state.leader
