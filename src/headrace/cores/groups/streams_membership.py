"""What happens to members of a streams group: they follow their target, are waited for, and are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.groups.streams_assignment import raise_epoch
from headrace.cores.groups.streams_group import StreamsGroup
from headrace.cores.groups.streams_member import MemberState, StreamsMember
from headrace.cores.groups.streams_reconciliation import Goal, reconciled
from headrace.cores.outcome import Outcome
from headrace.model.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.groups.shard import Groups
    from headrace.cores.groups.streams_tasks import Tasks
    from headrace.cores.outcome import TimerKey

SESSION_TIMER = "streams-session"
REBALANCE_TIMER = "streams-rebalance"


def emit_member(groups: Groups, group_id: str, member: StreamsMember, outcome: Outcome) -> None:
    """Write down what a member told of itself."""
    key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    groups.emit(outcome, key, member.metadata_record())


def follow(
    groups: Groups, group: StreamsGroup, member_id: str, owned: Tasks | None, outcome: Outcome, now_ms: int
) -> StreamsMember:
    """Let a member do its next step towards its target, if it is not there."""
    member = group.members[member_id]
    goal = Goal(
        epoch=group.assignment_epoch,
        target=group.target_of(member_id),
        is_active_somewhere=group.is_active_somewhere,
        is_in_process=group.is_in_process,
    )
    updated = reconciled(member, goal, owned)
    if updated == member:
        return member
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group.group_id, member_id=member_id)
    groups.emit(outcome, key, updated.assignment_record())
    if updated.state is MemberState.UNREVOKED_TASKS:
        expect_revocation(group, member_id, outcome, now_ms)
    else:
        _forget_revocation(group, member_id, outcome)
    return group.members[member_id]


def remove(groups: Groups, group: StreamsGroup, member_id: str, outcome: Outcome) -> None:
    """Strike a member off; the others get its tasks with their next heartbeats."""
    member = group.members[member_id]
    if member.user_endpoint is not None:
        group.endpoint_epoch += 1
    for key in (
        StreamsGroupCurrentMemberAssignmentKey,
        StreamsGroupTargetAssignmentMemberKey,
        StreamsGroupMemberMetadataKey,
    ):
        groups.emit(outcome, key(group_id=group.group_id, member_id=member_id), None)
    raise_epoch(
        groups,
        group,
        outcome,
        metadata_hash=group.metadata_hash,
        validated_topology_epoch=group.validated_topology_epoch,
        configs=group.assignment_configs,
    )
    if group.sessions_ms.pop(member_id, None) is not None:
        outcome.cancel((SESSION_TIMER, group.group_id, member_id))
    _forget_revocation(group, member_id, outcome)


# --- deadlines


def expect_heartbeat(group: StreamsGroup, member_id: str, timeout_ms: int, outcome: Outcome, now_ms: int) -> None:
    """Give a member its session timeout anew."""
    group.sessions_ms[member_id] = now_ms + timeout_ms
    outcome.wake((SESSION_TIMER, group.group_id, member_id), now_ms + timeout_ms)


def expect_revocation(group: StreamsGroup, member_id: str, outcome: Outcome, now_ms: int) -> None:
    """Give a member its rebalance timeout to give up tasks, and so to leave its epoch."""
    member = group.members[member_id]
    deadline_ms = now_ms + member.rebalance_timeout_ms
    group.revocations[member_id] = (deadline_ms, member.member_epoch)
    outcome.wake((REBALANCE_TIMER, group.group_id, member_id), deadline_ms)


def _forget_revocation(group: StreamsGroup, member_id: str, outcome: Outcome) -> None:
    if group.revocations.pop(member_id, None) is not None:
        outcome.cancel((REBALANCE_TIMER, group.group_id, member_id))


def _on_session(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    """A member may have been silent for too long."""
    return _remove_if_late(groups, key, lambda group, member_id: group.sessions_ms.get(member_id), now_ms)


def _on_rebalance(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    """A member has had its time to give up tasks; it matters only while it has not left that epoch."""

    def deadline(group: StreamsGroup, member_id: str) -> int | None:
        deadline_ms, epoch = group.revocations.get(member_id, (None, None))
        member = group.members[member_id]
        is_at_it = member.member_epoch == epoch and member.state is MemberState.UNREVOKED_TASKS
        return deadline_ms if is_at_it else None

    return _remove_if_late(groups, key, deadline, now_ms)


def _remove_if_late(
    groups: Groups, key: TimerKey, deadline: Callable[[StreamsGroup, str], int | None], now_ms: int
) -> Outcome:
    """Remove a member that let a deadline pass; one that was moved is waited for again."""
    outcome = Outcome()
    _, group_id, member_id = key
    group = groups.groups.get(group_id)
    if not isinstance(group, StreamsGroup) or member_id not in group.members:
        return outcome
    deadline_ms = deadline(group, member_id)
    if deadline_ms is None:
        return outcome
    if now_ms < deadline_ms:
        outcome.wake(key, deadline_ms)
    else:
        remove(groups, group, member_id, outcome)
    return outcome


TIMERS: dict[str, Callable[[Groups, TimerKey, int], Outcome]] = {
    SESSION_TIMER: _on_session,
    REBALANCE_TIMER: _on_rebalance,
}
