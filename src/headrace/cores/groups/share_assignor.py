"""The simple assignor of share groups: every partition is read, every member reads, and the load is even.

Where there are more members than partitions, members share partitions; each is then read by equally many.
Members keep what they have as far as that allows.
Where members differ in what they subscribed to, each topic is shared out among its own subscribers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from headrace.cores.groups.share_group import Assignment, Partition

NAME = "simple"


def assign(
    subscriptions: Mapping[str, frozenset[UUID]],
    current: Mapping[str, Assignment],
    partitions: Mapping[UUID, Iterable[int]],
) -> dict[str, Assignment]:
    """What each member is to read, from the topics it subscribed to and what it reads now."""
    result: dict[str, set[Partition]] = {member_id: set() for member_id in subscriptions}
    if len(set(subscriptions.values())) <= 1:
        wanted = next(iter(subscriptions.values()), frozenset())
        pools = [(list(subscriptions), wanted)]
    else:
        topic_ids = sorted({topic_id for topics in subscriptions.values() for topic_id in topics})
        pools = [
            ([member_id for member_id, topics in subscriptions.items() if topic_id in topics], frozenset({topic_id}))
            for topic_id in topic_ids
        ]
    for member_ids, topics in pools:
        pool = [(topic_id, index) for topic_id in sorted(topics) for index in sorted(partitions.get(topic_id, ()))]
        if pool and member_ids:
            _share_out(pool, sorted(member_ids), current, result)
    return {member_id: frozenset(assigned) for member_id, assigned in result.items()}


def _share_out(
    pool: list[Partition],
    member_ids: list[str],
    current: Mapping[str, Assignment],
    result: dict[str, set[Partition]],
) -> None:
    """Share partitions out among members."""
    readers_wanted = -(-len(member_ids) // len(pool))
    readers = dict.fromkeys(pool, 0)
    # Those who have most get the larger portions, so that little moves.
    member_ids.sort(key=lambda member_id: -len(current.get(member_id, ())))
    portions = dict(zip(member_ids, _portions(readers_wanted * len(pool), len(member_ids)), strict=True))
    taken: dict[str, set[Partition]] = {}
    for member_id in member_ids:
        kept: set[Partition] = set()
        for partition in sorted(current.get(member_id, ())):
            if len(kept) < portions[member_id] and readers.get(partition, readers_wanted) < readers_wanted:
                kept.add(partition)
                readers[partition] += 1
        taken[member_id] = kept
    for member_id in member_ids:
        _fill(taken[member_id], portions[member_id], readers)
    for partition in (partition for partition, count in readers.items() if not count):
        least = min(member_ids, key=lambda member_id: len(taken[member_id]))
        taken[least].add(partition)
    for member_id in member_ids:
        result[member_id] |= taken[member_id]


def _portions(total: int, count: int) -> list[int]:
    """`total` in `count` portions that differ by one at most, the larger first."""
    small, larger = divmod(total, count)
    return [small + 1] * larger + [small] * (count - larger)


def _fill(taken: set[Partition], portion: int, readers: dict[Partition, int]) -> None:
    """Give a member the partitions that have the fewest readers until it has its portion."""
    missing = portion - len(taken)
    if missing <= 0:
        return
    for partition in sorted(readers, key=lambda partition: readers[partition]):
        if missing and partition not in taken:
            taken.add(partition)
            readers[partition] += 1
            missing -= 1
