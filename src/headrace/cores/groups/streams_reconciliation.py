"""The next step of a member towards its target (KIP-1071, "Rebalance Process").

An active task has one member at any time: it is given to nobody while another has it or has not confirmed that it gave
it up. In one process a task exists once, because its state lies in one directory: a process that is to have the task
in another role gives it up first, too. So a step first takes away, waits for the member to say that it has no more
than it may, and only then gives what is free.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from headrace.cores.groups.streams_member import MemberState, StreamsMember, epochs_of
from headrace.cores.groups.streams_tasks import NO_TASKS, TaskId, TaskIds, Tasks, chosen
from headrace.model.errors import ErrorCode, KafkaError


class Goal(Struct, frozen=True, kw_only=True):
    """Where a member is to go, and what stands in the way."""

    epoch: int
    target: Tasks
    is_active_somewhere: Callable[[TaskId], bool]
    """Whether some member has a task as an active one, or has not confirmed that it gave it up."""
    is_in_process: Callable[[TaskId, str], bool]
    """The same for a task in any role at a process."""


def check_state(member: StreamsMember, owned: Tasks | None) -> None:
    """KafkaError if a newer version left the member in a state that is not known here, and it still has something."""
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
        )


def reconciled(member: StreamsMember, goal: Goal, owned: Tasks | None) -> StreamsMember:
    """The member after its next step; `owned` is None where a heartbeat did not say."""
    if member.is_reconciled_to(goal.epoch):
        return member
    if member.state is not MemberState.UNREVOKED_TASKS:
        return _next(member, goal, owned, member.member_epoch)
    if owned is None or owned.overlaps(member.pending_revocation):
        return member
    # What it is to give up next belongs to the next epoch; the deadline of this one has been met.
    return _next(member, goal, owned, member.member_epoch + 1)


def _next(member: StreamsMember, goal: Goal, owned: Tasks | None, epoch: int) -> StreamsMember:
    """Take away what is not in the target; if there is nothing to take, give what is free."""
    pairs = list(zip(member.assigned.by_role, goal.target.by_role, strict=True))
    kept = [_both(current, target) for current, target in pairs]
    revoked = _tasks([_without(current, target) for current, target in pairs])
    if revoked and (owned is None or owned.overlaps(revoked)):
        return _moved(member, epoch, MemberState.UNREVOKED_TASKS, _tasks(kept), revoked)

    def is_elsewhere_in_process(task: TaskId) -> bool:
        return goal.is_in_process(task, member.process_id)

    def may_run(task: TaskId) -> bool:
        return not goal.is_active_somewhere(task) and not is_elsewhere_in_process(task)

    def may_copy(task: TaskId) -> bool:
        return not is_elsewhere_in_process(task)

    missing = [_without(target, current) for current, target in pairs]
    free = [chosen(wanted, may) for wanted, may in zip(missing, (may_run, may_copy, may_copy), strict=True)]
    given = _tasks([_merged(mine, new) for mine, new in zip(kept, free, strict=True)])
    state = MemberState.STABLE if free == missing else MemberState.UNRELEASED_TASKS
    return _moved(member, goal.epoch, state, given, NO_TASKS)


def _moved(member: StreamsMember, epoch: int, state: MemberState, assigned: Tasks, pending: Tasks) -> StreamsMember:
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=member.previous_member_epoch if epoch == member.member_epoch else member.member_epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending,
        epochs=epochs_of(assigned, pending, member.epochs, epoch),
    )


def _tasks(roles: list[dict[str, frozenset[int]]]) -> Tasks:
    active, standby, warmup = roles
    return Tasks(active=active, standby=standby, warmup=warmup)


def _both(mine: TaskIds, other: TaskIds) -> dict[str, frozenset[int]]:
    return {name: both for name, tasks in mine.items() if (both := tasks & other.get(name, frozenset()))}


def _without(mine: TaskIds, other: TaskIds) -> dict[str, frozenset[int]]:
    return {name: rest for name, tasks in mine.items() if (rest := tasks - other.get(name, frozenset()))}


def _merged(mine: TaskIds, other: TaskIds) -> dict[str, frozenset[int]]:
    return {name: mine.get(name, frozenset()) | other.get(name, frozenset()) for name in (*mine, *other)}
