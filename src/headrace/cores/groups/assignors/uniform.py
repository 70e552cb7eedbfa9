"""The uniform assignor: everyone gets as many partitions as everyone else, give or take one, and keeps what it had.

Where all members read the same topics, each keeps partitions up to its share, and what is left over or new goes to
those who have too few. Where subscriptions differ, `mixed.py` balances topic by topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.cores.groups.assignors.mixed import assign_mixed

if TYPE_CHECKING:
    from headrace.cores.groups.assignors.spec import GroupSpec, Target

Partition = tuple[int, int]
"""A partition by its topic's number and its own: topics are numbered, as ids are slow to compare and there are many."""


def assign_uniformly(spec: GroupSpec) -> dict[str, Target]:
    """Share out as evenly as can be while moving as little as can be."""
    return _assign_same(spec) if spec.homogeneous else assign_mixed(spec)


def _assign_same(spec: GroupSpec) -> dict[str, Target]:
    """Share out the topics that all members read."""
    member_ids = sorted(spec.members)
    if not member_ids:
        return {}
    topics = sorted(spec.members[member_ids[0]].topics)
    everything = [
        (number, index) for number, topic in enumerate(topics) for index in range(spec.partition_counts[topic])
    ]
    held = _held(spec, member_ids, topics)
    kept, missing = _keep_up_to_share(held, len(everything))
    had = {partition for partitions in held.values() for partition in partitions}
    taken = {partition for partitions in kept.values() for partition in partitions}
    # First those that nobody had, then those that were taken from members with too many.
    free = [partition for partition in everything if partition not in had]
    free += [partition for partitions in held.values() for partition in partitions if partition not in taken]
    spare = iter(dict.fromkeys(free))
    for member_id, count in missing:
        kept[member_id] += [partition for _, partition in zip(range(count), spare, strict=False)]
    assert next(spare, None) is None, "the shares add up to all partitions"
    return {member_id: _by_topic(partitions, topics) for member_id, partitions in kept.items()}


def _held(spec: GroupSpec, member_ids: list[str], topics: list[UUID]) -> dict[str, list[Partition]]:
    """What each member was to own until now, of what is still there to be read."""
    counts = {topic: (number, spec.partition_counts[topic]) for number, topic in enumerate(topics)}
    held = {}
    for member_id in member_ids:
        target = spec.members[member_id].target
        known = sorted((*counts[topic], indexes) for topic, indexes in target.items() if topic in counts)
        held[member_id] = [
            (number, index) for number, count, indexes in known for index in sorted(indexes) if index < count
        ]
    return held


def _keep_up_to_share(
    held: dict[str, list[Partition]], total: int
) -> tuple[dict[str, list[Partition]], list[tuple[str, int]]]:
    """What each member keeps of what it had, and who still misses how many.

    A share is the whole division of partitions by members; `extra` of them are one larger. Those go first to members
    that have that many already, as long as enough members remain to take the others.
    """
    share, extra = divmod(total, len(held))
    kept: dict[str, list[Partition]] = {}
    missing: list[tuple[str, int]] = []
    taken: set[Partition] = set()
    for place, (member_id, had) in enumerate(held.items()):
        larger = extra > 0
        # Two members had one partition only where a custom assignor of the classic protocol gave it to both.
        own = [partition for partition in had if partition not in taken][: share + larger]
        taken.update(own)
        if larger and len(own) <= share and len(held) - place > extra:
            larger = False
        extra -= larger
        kept[member_id] = own
        if len(own) < share + larger:
            missing.append((member_id, share + larger - len(own)))
    return kept, missing


def _by_topic(partitions: list[Partition], topics: list[UUID]) -> Target:
    """Partitions by topic."""
    by_number: dict[int, list[int]] = {}
    for number, index in partitions:
        by_number.setdefault(number, []).append(index)
    return {topics[number]: frozenset(indexes) for number, indexes in by_number.items()}
