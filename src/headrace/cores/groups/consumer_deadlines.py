"""The deadlines of members of consumer groups: kept in the group, and set as timers.

A timer may fire late, or for a deadline that has been moved; so it counts only if the group's own note says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.cores.groups.consumer_group import ConsumerGroup
    from headrace.cores.outcome import Outcome

SESSION_TIMER = "consumer-session"
REBALANCE_TIMER = "consumer-rebalance"
JOIN_TIMER = "consumer-join"
SYNC_TIMER = "consumer-sync"


def expect_heartbeat(group: ConsumerGroup, member_id: str, timeout_ms: int, outcome: Outcome, now_ms: int) -> None:
    """Give a member its session timeout anew."""
    group.sessions_ms[member_id] = now_ms + timeout_ms
    outcome.wake((SESSION_TIMER, group.group_id, member_id), now_ms + timeout_ms)


def expect_revocation(group: ConsumerGroup, member_id: str, outcome: Outcome, now_ms: int) -> None:
    """Give a member its rebalance timeout to give up partitions, and so to leave its epoch."""
    member = group.members[member_id]
    deadline_ms = now_ms + member.rebalance_timeout_ms
    group.revocations[member_id] = (deadline_ms, member.member_epoch)
    outcome.wake((REBALANCE_TIMER, group.group_id, member_id), deadline_ms)


def forget_revocation(group: ConsumerGroup, member_id: str, outcome: Outcome) -> None:
    """A member has nothing to give up."""
    if group.revocations.pop(member_id, None) is not None:
        outcome.cancel((REBALANCE_TIMER, group.group_id, member_id))


def expect_join(group: ConsumerGroup, member_id: str, outcome: Outcome, now_ms: int) -> None:
    """Give a member on the classic protocol its rebalance timeout to join again, counted from the first it heard."""
    if member_id not in group.join_deadlines_ms:
        deadline_ms = now_ms + group.members[member_id].rebalance_timeout_ms
        group.join_deadlines_ms[member_id] = deadline_ms
        outcome.wake((JOIN_TIMER, group.group_id, member_id), deadline_ms)


def forget_join(group: ConsumerGroup, member_id: str, outcome: Outcome) -> None:
    """A member on the classic protocol has joined again."""
    if group.join_deadlines_ms.pop(member_id, None) is not None:
        outcome.cancel((JOIN_TIMER, group.group_id, member_id))


def expect_sync(group: ConsumerGroup, member_id: str, outcome: Outcome, now_ms: int) -> None:
    """Give a member on the classic protocol its rebalance timeout to ask for its assignment."""
    deadline_ms = now_ms + group.members[member_id].rebalance_timeout_ms
    group.sync_deadlines_ms[member_id] = deadline_ms
    outcome.wake((SYNC_TIMER, group.group_id, member_id), deadline_ms)


def forget_sync(group: ConsumerGroup, member_id: str, outcome: Outcome) -> None:
    """A member on the classic protocol has asked for its assignment."""
    if group.sync_deadlines_ms.pop(member_id, None) is not None:
        outcome.cancel((SYNC_TIMER, group.group_id, member_id))


def forget_all(group: ConsumerGroup, member_id: str, outcome: Outcome) -> None:
    """Wait for nothing from a member any more."""
    if group.sessions_ms.pop(member_id, None) is not None:
        outcome.cancel((SESSION_TIMER, group.group_id, member_id))
    forget_revocation(group, member_id, outcome)
    forget_join(group, member_id, outcome)
    forget_sync(group, member_id, outcome)
