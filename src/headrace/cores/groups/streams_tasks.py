"""Tasks of a streams application: a subtopology and the number of the partitions it works on.

A task is active on one member; standby and warmup copies of it keep its state up to date elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct, field

TaskId = tuple[str, int]
"""A subtopology, and a partition."""

TaskIds = Mapping[str, frozenset[int]]
"""Tasks of one role by subtopology; a subtopology without tasks is left out."""


class Tasks(Struct, frozen=True, kw_only=True):
    """What a member has, or is to have, in each role."""

    active: TaskIds = field(default_factory=dict)
    standby: TaskIds = field(default_factory=dict)
    warmup: TaskIds = field(default_factory=dict)

    @property
    def by_role(self) -> tuple[TaskIds, TaskIds, TaskIds]:
        """Active, standby and warmup tasks."""
        return self.active, self.standby, self.warmup

    def __bool__(self) -> bool:
        return any(self.by_role)

    def overlaps(self, other: Tasks) -> bool:
        """Whether a task is in both, in the same role."""
        return any(
            not partitions.isdisjoint(theirs.get(subtopology, ()))
            for mine, theirs in zip(self.by_role, other.by_role, strict=True)
            for subtopology, partitions in mine.items()
        )

    def is_within(self, other: Tasks) -> bool:
        """Whether each task is in the other, in the same role."""
        return all(
            partitions <= theirs.get(subtopology, frozenset())
            for mine, theirs in zip(self.by_role, other.by_role, strict=True)
            for subtopology, partitions in mine.items()
        )


NO_TASKS = Tasks()


def each_task(tasks: Mapping[str, Collection[int]]) -> Iterator[TaskId]:
    """Tasks of one role, one by one."""
    return ((subtopology, partition) for subtopology, partitions in tasks.items() for partition in partitions)


def by_subtopology(tasks: Iterable[TaskId]) -> dict[str, frozenset[int]]:
    """Tasks of one role, collected."""
    collected: dict[str, set[int]] = {}
    for subtopology, partition in tasks:
        collected.setdefault(subtopology, set()).add(partition)
    return {subtopology: frozenset(partitions) for subtopology, partitions in collected.items()}


def chosen(tasks: TaskIds, is_chosen: Callable[[TaskId], bool]) -> dict[str, frozenset[int]]:
    """Those tasks of one role that pass a test."""
    return by_subtopology(task for task in each_task(tasks) if is_chosen(task))
