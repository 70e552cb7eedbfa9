"""The sticky task assignor: who of a streams group runs which task, and who keeps copies of its state.

A task stays where it was, or goes where a copy of its state is, as long as that leaves nobody with more than its share;
the rest goes to whoever has the least to do. What counts first is the process, because its members share a machine.
Copies go to other processes than the task, and each to another one; there are fewer of them where there are not enough
processes.
Ties are broken by name, so that the same group always gets the same assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from msgspec import Struct

from headrace.cores.groups.streams_tasks import NO_TASKS, TaskId, Tasks, by_subtopology, each_task


class StreamsMemberSpec(Struct, frozen=True, kw_only=True):
    """A member as the assignor sees it."""

    process_id: str
    target: Tasks = NO_TASKS
    """What it was to have up to now."""


class SubtopologySpec(Struct, frozen=True, kw_only=True):
    """A subtopology as the assignor sees it."""

    tasks: int
    is_stateful: bool


def assign(
    members: Mapping[str, StreamsMemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
) -> dict[str, Tasks]:
    """The target of each member."""
    if not members:
        return {}
    work = _Work(members, subtopologies, standby_replicas)
    work.assign_active()
    work.assign_standby()
    return {
        member_id: Tasks(active=by_subtopology(work.active[member_id]), standby=by_subtopology(work.standby[member_id]))
        for member_id in members
    }


class _Quota:
    """The share of each member, which shrinks for the others when somebody has got a larger one."""

    __slots__ = ("_members", "_tasks", "share")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.share = _share(tasks, members)

    def count(self, has_now: int) -> None:
        """Somebody has so many tasks now."""
        if has_now == self.share:
            self._members -= 1
            self._tasks -= has_now
            self.share = _share(self._tasks, self._members)


def _share(tasks: int, members: int) -> int:
    return -(-tasks // members) if members else 0


class _Process:
    """The members of one process, and the tasks that are there in some role."""

    __slots__ = ("_by_count", "counts", "process_id", "tasks")

    def __init__(self, process_id: str) -> None:
        self.process_id = process_id
        self.counts: dict[str, int] = {}
        self.tasks: set[TaskId] = set()
        self._by_count: list[tuple[int, str]] | None = None

    @property
    def load(self) -> float:
        """Tasks for each member."""
        return len(self.tasks) / len(self.counts)

    def add(self, member_id: str, task: TaskId) -> int:
        """Give a task to one member; how many it has then."""
        self._by_count = None
        return self._add(member_id, task)

    def add_to_least(self, task: TaskId) -> tuple[str, int]:
        """Give a task to the member that has the fewest; who that is, and how many it has then."""
        if self._by_count is None:
            self._by_count = [(count, member_id) for member_id, count in self.counts.items()]
            heapify(self._by_count)
        _, member_id = heappop(self._by_count)
        count = self._add(member_id, task)
        heappush(self._by_count, (count, member_id))
        return member_id, count

    def _add(self, member_id: str, task: TaskId) -> int:
        assert task not in self.tasks
        self.tasks.add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]


class _Work:
    """An assignment in the making."""

    def __init__(
        self, members: Mapping[str, StreamsMemberSpec], subtopologies: Mapping[str, SubtopologySpec], replicas: int
    ) -> None:
        self.active: dict[str, list[TaskId]] = {member_id: [] for member_id in members}
        self.standby: dict[str, list[TaskId]] = {member_id: [] for member_id in members}
        self._replicas = replicas
        self._tasks = [(name, index) for name in sorted(subtopologies) for index in range(subtopologies[name].tasks)]
        self._stateful = [task for task in self._tasks if subtopologies[task[0]].is_stateful]
        self._process_of: dict[str, _Process] = {}
        self._was_active: dict[TaskId, str] = {}
        self._was_standby: dict[TaskId, list[str]] = {}
        self._processes: dict[str, _Process] = {}
        for member_id in sorted(members):
            self._know(member_id, members[member_id])
        self._active_quota = _Quota(len(self._tasks), len(members))
        self._quota = _Quota(len(self._tasks) + replicas * len(self._stateful), len(members))

    def _know(self, member_id: str, spec: StreamsMemberSpec) -> None:
        process = self._processes.setdefault(spec.process_id, _Process(spec.process_id))
        process.counts[member_id] = 0
        self._process_of[member_id] = process
        self._was_active |= dict.fromkeys(each_task(spec.target.active), member_id)
        for task in each_task(spec.target.standby):
            self._was_standby.setdefault(task, []).append(member_id)

    # --- active tasks

    def assign_active(self) -> None:
        """Each task to one member: where it was, where a copy is, or where there is the least to do."""
        left = [task for task in sorted(self._tasks, key=_by_partition) if not self._stays(task)]
        left = [task for task in left if not self._follows_copy(task)]
        by_load = self._by_load()
        for task in sorted(left):
            _, process_id = heappop(by_load)
            process = self._processes[process_id]
            member_id, count = process.add_to_least(task)
            self._note_active(member_id, task, count)
            heappush(by_load, (process.load, process_id))

    def _stays(self, task: TaskId) -> bool:
        member_id = self._was_active.get(task)
        return member_id is not None and self._take_active(member_id, task)

    def _follows_copy(self, task: TaskId) -> bool:
        member_id = self._least_loaded(self._was_standby.get(task, ()), task)
        return member_id is not None and self._take_active(member_id, task)

    def _take_active(self, member_id: str, task: TaskId) -> bool:
        process = self._process_of[member_id]
        if process.counts[member_id] >= self._active_quota.share:
            return False
        self._note_active(member_id, task, process.add(member_id, task))
        return True

    def _note_active(self, member_id: str, task: TaskId, count: int) -> None:
        self.active[member_id].append(task)
        self._active_quota.count(count)
        self._quota.count(count)

    # --- standby tasks

    def assign_standby(self) -> None:
        """Copies of each stateful task, in processes that do not have it yet."""
        if not self._replicas:
            return
        left: list[tuple[TaskId, int]] = []
        for task in sorted(self._stateful, key=_by_partition, reverse=True):
            kept = 0
            while kept < self._replicas and self._keeps_copy(task):
                kept += 1
            if kept < self._replicas:
                left.append((task, self._replicas - kept))
        by_load = self._by_load()
        for task, copies in sorted(left, reverse=True):
            for _ in range(copies):
                if not self._copy_to_least(task, by_load):
                    break

    def _keeps_copy(self, task: TaskId) -> bool:
        """Put a copy where the task was, or where another copy was."""
        was_active = self._was_active.get(task)
        if was_active is not None and self._take_standby(was_active, task):
            return True
        member_id = self._least_loaded(self._was_standby.get(task, ()), task)
        return member_id is not None and self._take_standby(member_id, task)

    def _take_standby(self, member_id: str, task: TaskId) -> bool:
        process = self._process_of[member_id]
        if task in process.tasks or process.counts[member_id] >= self._quota.share:
            return False
        self._note_standby(member_id, task, process.add(member_id, task))
        return True

    def _copy_to_least(self, task: TaskId, by_load: list[tuple[float, str]]) -> bool:
        """Put a copy into the process with the least to do that has not got the task."""
        passed = []
        found = False
        while by_load and not found:
            entry = heappop(by_load)
            process = self._processes[entry[1]]
            found = task not in process.tasks
            if found:
                member_id, count = process.add_to_least(task)
                self._note_standby(member_id, task, count)
                entry = (process.load, entry[1])
            passed.append(entry)
        for entry in passed:
            heappush(by_load, entry)
        return found

    def _note_standby(self, member_id: str, task: TaskId, count: int) -> None:
        self.standby[member_id].append(task)
        self._quota.count(count)

    # --- who has the least to do

    def _by_load(self) -> list[tuple[float, str]]:
        by_load = [(process.load, process_id) for process_id, process in self._processes.items()]
        heapify(by_load)
        return by_load

    def _least_loaded(self, member_ids: Iterable[str], task: TaskId) -> str | None:
        """The one with the least to do, of those whose process has not got the task."""
        able = [member_id for member_id in member_ids if task not in self._process_of[member_id].tasks]
        if not able:
            return None
        return min(able, key=lambda each: (self._process_of[each].load, self._process_of[each].counts[each], each))


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task[1], task[0]
