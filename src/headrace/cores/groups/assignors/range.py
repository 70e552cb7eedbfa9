"""The range assignor: each topic is cut into one run of neighbouring partitions per subscriber.

The subscribers of all topics stand in the same order, static members first, so that topics with equally many partitions
are cut alike and one member gets the same numbers of each: they can be joined.
Nothing is remembered from the last assignment, but the order is, so a group that does not change keeps its ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from headrace.cores.groups.assignors.spec import GroupSpec, Target


def assign_ranges(spec: GroupSpec) -> dict[str, Target]:
    """Give each subscriber of a topic its run of partitions; the first ones get one more where it does not divide."""
    in_order = sorted(spec.members, key=lambda member_id: _rank(spec, member_id))
    subscribers: dict[UUID, list[str]] = {topic: [] for topic in spec.partition_counts}
    for member_id in in_order:
        for topic in spec.members[member_id].topics:
            subscribers[topic].append(member_id)
    targets: dict[str, Target] = {member_id: {} for member_id in in_order}
    for topic, readers in subscribers.items():
        if not readers:
            continue
        quota, extra = divmod(spec.partition_counts[topic], len(readers))
        start = 0
        for index, member_id in enumerate(readers):
            end = start + quota + (index < extra)
            if start < end:
                targets[member_id][topic] = frozenset(range(start, end))
            start = end
    return targets


def _rank(spec: GroupSpec, member_id: str) -> tuple[bool, str]:
    """Static members come first, by the name that survives a restart."""
    instance_id = spec.members[member_id].instance_id
    return (True, member_id) if instance_id is None else (False, instance_id)
