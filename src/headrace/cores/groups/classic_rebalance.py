"""How classic groups turn from one generation to the next, and who falls out on the way.

All functions take the group, the outcome to add to, and the time. They answer whoever waits in the group exactly
once: a token leaves a member when its answer goes into the outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.groups.classic_commands import UNKNOWN_MEMBER, Joined, Synced
from headrace.cores.groups.classic_group import ClassicGroup, ClassicState
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import GroupMetadataKey

if TYPE_CHECKING:
    from headrace.cores.groups.classic_group import ClassicMember
    from headrace.cores.groups.shard import Groups
    from headrace.cores.outcome import Outcome, TimerKey

SESSION_TIMER = "classic-session"
JOIN_TIMER = "classic-join"
SYNC_TIMER = "classic-sync"

_MEMBER_OVERHEAD_BYTES = 64
"""A generous guess at what a member's record needs besides its names and bytes."""


# --- sessions


def expect_heartbeat(group: ClassicGroup, member: ClassicMember, outcome: Outcome, now_ms: int) -> None:
    """Give a member its session timeout anew."""
    expect_within(group, member, outcome, now_ms + member.session_timeout_ms)


def expect_within(group: ClassicGroup, member: ClassicMember, outcome: Outcome, deadline_ms: int) -> None:
    """A member that says nothing until then is gone."""
    member.session_deadline_ms = deadline_ms
    outcome.wake((SESSION_TIMER, group.group_id, member.member_id), deadline_ms)


def forget_session(group: ClassicGroup, member_id: str, outcome: Outcome) -> None:
    """Wait no more for somebody."""
    outcome.cancel((SESSION_TIMER, group.group_id, member_id))


# --- answers


def joined(group: ClassicGroup, member: ClassicMember, *, skip_assignment: bool = False) -> Joined:
    """The current generation, as a member is told of it; the leader hears who is in it."""
    return Joined(
        member_id=member.member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type_or_none,
        protocol_name=group.protocol_name,
        leader=group.leader_id or UNKNOWN_MEMBER,
        skip_assignment=skip_assignment,
        members=group.joined_members() if group.leader_id == member.member_id else (),
    )


def synced(group: ClassicGroup, member: ClassicMember) -> Synced:
    """A member's assignment."""
    return Synced(
        assignment=member.assignment, protocol_type=group.protocol_type_or_none, protocol_name=group.protocol_name
    )


def refuse_join(
    group: ClassicGroup, member: ClassicMember, outcome: Outcome, error: ErrorCode, *, member_id: str | None = None
) -> None:
    """Answer a waiting join with an error, and the id to go on with."""
    token = group.take_join(member)
    if token is not None:
        outcome.reply(token, Joined(member_id=member.member_id if member_id is None else member_id, error=error))


def refuse_sync(group: ClassicGroup, member: ClassicMember, outcome: Outcome, error: ErrorCode) -> None:
    """Answer a waiting sync with an error."""
    token = group.take_sync(member)
    if token is not None:
        outcome.reply(token, KafkaError(error))


def dismiss(group: ClassicGroup, member: ClassicMember, outcome: Outcome) -> None:
    """Strike a member off; if it still waits for something, it is told that it is no member any more."""
    refuse_join(group, member, outcome, ErrorCode.UNKNOWN_MEMBER_ID, member_id=UNKNOWN_MEMBER)
    refuse_sync(group, member, outcome, ErrorCode.UNKNOWN_MEMBER_ID)
    forget_session(group, member.member_id, outcome)
    group.remove(member.member_id)


def disband(group: ClassicGroup, outcome: Outcome) -> None:
    """The group goes on as one of another kind: whoever waits is asked to join again, and all timers stop."""
    for member in group.members.values():
        refuse_join(group, member, outcome, ErrorCode.REBALANCE_IN_PROGRESS)
        refuse_sync(group, member, outcome, ErrorCode.REBALANCE_IN_PROGRESS)
        forget_session(group, member.member_id, outcome)
    for member_id in group.pending:
        forget_session(group, member_id, outcome)
    outcome.cancel((JOIN_TIMER, group.group_id))
    outcome.cancel((SYNC_TIMER, group.group_id))


# --- the round


def rebalance_or_complete(groups: Groups, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Somebody came or changed: begin a rebalance, or end the one that goes on if nobody else is missing."""
    if group.state is ClassicState.PREPARING_REBALANCE:
        complete_if_all_joined(groups, group, outcome, now_ms)
    else:
        prepare_rebalance(groups, group, outcome, now_ms)


def complete_if_all_joined(groups: Groups, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """End the preparation if everyone is there; a group that gathers its first members waits for its time instead."""
    preparing = group.state is ClassicState.PREPARING_REBALANCE
    if preparing and group.previous_state is not ClassicState.EMPTY and group.all_joined:
        complete_join(groups, group, outcome, now_ms)


def prepare_rebalance(groups: Groups, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Call all members to join again."""
    if group.state is ClassicState.COMPLETING_REBALANCE:
        drop_assignment(group, outcome, ErrorCode.REBALANCE_IN_PROGRESS)
    stop_waiting_for_syncs(group, outcome)
    is_initial = group.is_empty()
    if is_initial:
        delay_ms = groups.limits.initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        _wait_for_joins(group, outcome, now_ms + delay_ms)
    group.enter(ClassicState.PREPARING_REBALANCE, now_ms)
    if is_initial:
        return
    if group.all_joined:
        complete_join(groups, group, outcome, now_ms)
    else:
        _wait_for_joins(group, outcome, now_ms + group.rebalance_timeout_ms)


def _wait_for_joins(group: ClassicGroup, outcome: Outcome, deadline_ms: int) -> None:
    group.join_deadline_ms = deadline_ms
    outcome.wake((JOIN_TIMER, group.group_id), deadline_ms)


def complete_join(groups: Groups, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Whoever has joined is the next generation; static members stay even if they were not back in time."""
    group.join_deadline_ms = group.initial_remaining_ms = None
    group.new_member_added = False
    outcome.cancel((JOIN_TIMER, group.group_id))
    for member in tuple(group.members.values()):
        if member.join_token is None and member.instance_id is None:
            dismiss(group, member, outcome)
    if group.members and not group.elect_leader():
        # All that is left are static members, and none came: their sessions decide who stays.
        _wait_for_joins(group, outcome, now_ms + group.rebalance_timeout_ms)
        return
    group.begin_generation(now_ms)
    if not group.members:
        store(groups, group, outcome)
        return
    for member in group.members.values():
        token = group.take_join(member)
        if token is not None:
            outcome.reply(token, joined(group, member))
        expect_heartbeat(group, member, outcome, now_ms)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    group.sync_deadline_ms = now_ms + group.rebalance_timeout_ms
    outcome.wake((SYNC_TIMER, group.group_id), group.sync_deadline_ms)


def drop_assignment(group: ClassicGroup, outcome: Outcome, error: ErrorCode) -> None:
    """What the members were to get is not valid any more; whoever waits for it is told so."""
    for member in group.members.values():
        member.assignment = b""
        refuse_sync(group, member, outcome, error)


def give_assignment(group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Tell everyone who waits what they own."""
    for member in group.members.values():
        token = group.take_sync(member)
        if token is not None:
            outcome.reply(token, synced(group, member))
            expect_heartbeat(group, member, outcome, now_ms)


def note_sync(group: ClassicGroup, member_id: str, outcome: Outcome) -> None:
    """A member has asked for its assignment; when all have, nobody is late any more."""
    group.pending_sync.discard(member_id)
    if not group.pending_sync:
        stop_waiting_for_syncs(group, outcome)


def stop_waiting_for_syncs(group: ClassicGroup, outcome: Outcome) -> None:
    """Nobody is late with a sync."""
    group.pending_sync.clear()
    if group.sync_deadline_ms is not None:
        group.sync_deadline_ms = None
        outcome.cancel((SYNC_TIMER, group.group_id))


def after_removal(groups: Groups, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """A member has gone without a word: the others share what it had, or need not wait for it any more."""
    if group.state in {ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE}:
        prepare_rebalance(groups, group, outcome, now_ms)
    elif group.state is ClassicState.PREPARING_REBALANCE and group.all_joined:
        complete_join(groups, group, outcome, now_ms)


# --- the log


def store(groups: Groups, group: ClassicGroup, outcome: Outcome) -> None:
    """Have the log know the group as it is."""
    groups.emit(outcome, GroupMetadataKey(group=group.group_id), group.as_record())


def stored_bytes(group: ClassicGroup) -> int:
    """About how large the group's record is, from above."""
    return len(group.group_id.encode()) + sum(
        _MEMBER_OVERHEAD_BYTES
        + 4 * (len(member.member_id) + len(member.client_id) + len(member.client_host) + len(member.instance_id or ""))
        + len(member.metadata(group.protocol_name))
        + len(member.assignment)
        for member in group.members.values()
    )


# --- timers


def on_session_timer(groups: Groups, key: TimerKey, now_ms: int, outcome: Outcome) -> None:
    """A session may be over."""
    _, group_id, member_id = key
    group = groups.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return
    member = group.members.get(member_id)
    deadline_ms = group.pending.get(member_id) if member is None else member.session_deadline_ms
    if deadline_ms is None:
        return
    if now_ms < deadline_ms:
        outcome.wake(key, deadline_ms)
    elif member is None:
        group.remove(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE and group.all_joined:
            complete_join(groups, group, outcome, now_ms)
    elif not member.lives:
        dismiss(group, member, outcome)
        after_removal(groups, group, outcome, now_ms)


def on_join_timer(groups: Groups, key: TimerKey, now_ms: int, outcome: Outcome) -> None:
    """The time to join may be up."""
    group = groups.groups.get(key[1])
    if not isinstance(group, ClassicGroup) or group.join_deadline_ms is None:
        return
    if now_ms < group.join_deadline_ms:
        outcome.wake(key, group.join_deadline_ms)
    elif group.initial_remaining_ms and group.new_member_added:
        # More came in meanwhile; others may be on their way, so wait once more, within what the members allow.
        remaining_ms = group.initial_remaining_ms
        delay_ms = min(groups.limits.initial_rebalance_delay_ms, remaining_ms)
        group.new_member_added = False
        group.initial_remaining_ms = max(remaining_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        _wait_for_joins(group, outcome, now_ms + delay_ms)
    else:
        complete_join(groups, group, outcome, now_ms)


def on_sync_timer(groups: Groups, key: TimerKey, now_ms: int, outcome: Outcome) -> None:
    """Whoever joined but has not asked for an assignment yet may be out."""
    group = groups.groups.get(key[1])
    if not isinstance(group, ClassicGroup) or group.sync_deadline_ms is None:
        return
    if now_ms < group.sync_deadline_ms:
        outcome.wake(key, group.sync_deadline_ms)
        return
    late = tuple(group.pending_sync)
    stop_waiting_for_syncs(group, outcome)
    for member_id in late:
        dismiss(group, group.members[member_id], outcome)
    if late:
        prepare_rebalance(groups, group, outcome, now_ms)
