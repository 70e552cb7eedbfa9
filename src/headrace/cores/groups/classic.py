"""The classic protocol: join, sync, heartbeat, leave (KIP-62, 394, 345, 559, 814).

The coordinator only keeps the members and passes bytes between them; who gets what is for the leader to say, one of the
members. It is the same for consumers, Connect workers and anyone else: `protocol_type` says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.groups.classic_commands import UNKNOWN_MEMBER, HeartbeatAnswer, Joined, Left
from headrace.cores.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from headrace.cores.groups.classic_rebalance import (
    JOIN_TIMER,
    SESSION_TIMER,
    SYNC_TIMER,
    after_removal,
    complete_if_all_joined,
    dismiss,
    drop_assignment,
    expect_heartbeat,
    expect_within,
    forget_session,
    give_assignment,
    joined,
    note_sync,
    on_join_timer,
    on_session_timer,
    on_sync_timer,
    prepare_rebalance,
    rebalance_or_complete,
    refuse_join,
    refuse_sync,
    store,
    stored_bytes,
    synced,
)
from headrace.cores.groups.group import GroupType
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import GroupMetadataKey, GroupMetadataValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.groups.classic_commands import (
        HeartbeatCommand,
        JoinCommand,
        LeaveCommand,
        LeavingMember,
        SyncCommand,
    )
    from headrace.cores.groups.group import Group
    from headrace.cores.groups.shard import ClassicDoor, Groups
    from headrace.cores.outcome import TimerKey, Token


# --- join


def join(groups: Groups, command: JoinCommand, token: Token, now_ms: int) -> Outcome:
    """Let somebody into the next generation; the answer is a `Joined`, when that generation begins."""
    _check_group_id(command.group_id)
    limits = groups.limits
    if not limits.session_timeout_ms_min <= command.session_timeout_ms <= limits.session_timeout_ms_max:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"The session timeout must be within {limits.session_timeout_ms_min} and {limits.session_timeout_ms_max}.",
        )
    found = groups.groups.get(command.group_id)
    if found is not None and not isinstance(found, ClassicGroup) and not _can_become_classic(found):
        door = groups.classic_door(found.kind)
        if door is None:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The group speaks another protocol.")
        return door.join_classic(groups, found, command, token, now_ms)
    outcome = Outcome()
    group = found if isinstance(found, ClassicGroup) else _new_group(groups, found, command, outcome, now_ms)
    if not _has_room(group, command.member_id, limits.members_max):
        _turn_away(groups, group, command.member_id, token, outcome, now_ms)
    elif not group.supports(command.protocol_type, command.protocols):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The members have no protocol in common with this one.")
    elif command.member_id == UNKNOWN_MEMBER:
        _join_new(groups, group, command, token, outcome, now_ms)
    else:
        _join_again(groups, group, command, token, outcome, now_ms)
    return outcome


def _can_become_classic(group: Group) -> bool:
    return group.kind in {GroupType.CONSUMER, GroupType.STREAMS} and group.is_empty()


def _new_group(
    groups: Groups, found: Group | None, command: JoinCommand, outcome: Outcome, now_ms: int
) -> ClassicGroup:
    """Make a group for its first member, in place of an empty one of another kind if there is one."""
    if command.member_id != UNKNOWN_MEMBER:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "There is no such group, so it has no such member.")
    if not command.protocol_type or not command.protocols:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "A member must know at least one protocol.")
    for key, value in [] if found is None else found.tombstones():
        groups.emit(outcome, key, value)
    value = GroupMetadataValue(current_state_timestamp=now_ms)
    groups.emit(outcome, GroupMetadataKey(group=command.group_id), value)
    group = groups.groups[command.group_id]
    assert isinstance(group, ClassicGroup)
    group.restore()
    return group


def _has_room(group: ClassicGroup, member_id: str, members_max: int) -> bool:
    """Whether one more may join; while a group prepares, the last ones to come back may find no room any more."""
    member = group.members.get(member_id)
    if group.is_empty():
        return True
    if group.state is ClassicState.PREPARING_REBALANCE:
        return (member is not None and member.join_token is not None) or group.awaiting_join < members_max
    return member is not None or len(group.members) < members_max


def _turn_away(
    groups: Groups, group: ClassicGroup, member_id: str, token: Token, outcome: Outcome, now_ms: int
) -> None:
    member = group.members.get(member_id)
    if member is not None:
        dismiss(group, member, outcome)
    group.remove(member_id)
    outcome.reply(token, Joined(member_id=UNKNOWN_MEMBER, error=ErrorCode.GROUP_MAX_SIZE_REACHED))
    complete_if_all_joined(groups, group, outcome, now_ms)


def _join_new(
    groups: Groups, group: ClassicGroup, command: JoinCommand, token: Token, outcome: Outcome, now_ms: int
) -> None:
    """One without a member id: somebody new, or a static member that was restarted."""
    if command.instance_id is not None and command.instance_id in group.static_ids:
        _take_over(groups, group, command, token, outcome, now_ms)
    elif command.instance_id is None and command.needs_known_member_id:
        _give_id(groups, group, command, token, outcome, now_ms)
    else:
        _add(groups, group, command, command.new_member_id, token, outcome, now_ms)


def _give_id(
    groups: Groups, group: ClassicGroup, command: JoinCommand, token: Token, outcome: Outcome, now_ms: int
) -> None:
    """Send a client away to come back with an id, so that one that gives up leaves no member behind (KIP-394)."""
    if len(group.pending) >= groups.limits.pending_members_max:
        outcome.reply(token, Joined(member_id=UNKNOWN_MEMBER, error=ErrorCode.GROUP_MAX_SIZE_REACHED))
        return
    deadline_ms = now_ms + command.session_timeout_ms
    group.pending[command.new_member_id] = deadline_ms
    outcome.wake((SESSION_TIMER, group.group_id, command.new_member_id), deadline_ms)
    outcome.reply(token, Joined(member_id=command.new_member_id, error=ErrorCode.MEMBER_ID_REQUIRED))


def _add(
    groups: Groups,
    group: ClassicGroup,
    command: JoinCommand,
    member_id: str,
    token: Token,
    outcome: Outcome,
    now_ms: int,
) -> None:
    member = ClassicMember(
        member_id=member_id,
        instance_id=command.instance_id,
        client_id=command.client_id,
        client_host=command.client_host,
        session_timeout_ms=command.session_timeout_ms,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        protocols=command.protocols,
        is_new=True,
    )
    if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
        group.new_member_added = True
    group.add(member, command.protocol_type)
    group.await_join(member, token)
    expect_within(group, member, outcome, now_ms + groups.limits.new_member_join_timeout_ms)
    rebalance_or_complete(groups, group, outcome, now_ms)


def _take_over(
    groups: Groups, group: ClassicGroup, command: JoinCommand, token: Token, outcome: Outcome, now_ms: int
) -> None:
    """A static member is back under its instance id: it gets a new member id, and whoever has the old one is fenced.

    In a stable group that is all, as long as it changes nothing for the others: no rebalance (KIP-345).
    """
    assert command.instance_id is not None
    size = stored_bytes(group) + sum(len(protocol.metadata) for protocol in command.protocols)
    if size > groups.limits.write_bytes_max:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The group's metadata is too large to be stored.")
    old_leader_id = group.leader_id
    old = group.members[group.static_ids[command.instance_id]]
    refuse_join(group, old, outcome, ErrorCode.FENCED_INSTANCE_ID)
    refuse_sync(group, old, outcome, ErrorCode.FENCED_INSTANCE_ID)
    forget_session(group, old.member_id, outcome)
    member = group.replace_static(command.instance_id, command.new_member_id)
    expect_heartbeat(group, member, outcome, now_ms)
    _update(group, member, command, token)
    if group.state is ClassicState.COMPLETING_REBALANCE:
        # The leader may be about to assign to the old id; the new one would get nothing.
        prepare_rebalance(groups, group, outcome, now_ms)
    elif group.state is ClassicState.PREPARING_REBALANCE:
        complete_if_all_joined(groups, group, outcome, now_ms)
    elif group.voted_protocol() != group.protocol_name:
        prepare_rebalance(groups, group, outcome, now_ms)
    else:
        store(groups, group, outcome)
        outcome.reply(group.take_join(member), _back_in_place(group, member, command, old_leader_id))


def _back_in_place(
    group: ClassicGroup, member: ClassicMember, command: JoinCommand, old_leader_id: str | None
) -> Joined:
    """What a static member is told that came back to a stable group; it must not begin to assign anew."""
    is_leader = group.leader_id == member.member_id
    if command.can_skip_assignment:
        return joined(group, member, skip_assignment=is_leader)
    return Joined(
        member_id=member.member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type_or_none,
        protocol_name=group.protocol_name,
        # Its own old id, if it leads: older clients that see themselves lead would assign.
        leader=old_leader_id or UNKNOWN_MEMBER,
    )


def _join_again(
    groups: Groups, group: ClassicGroup, command: JoinCommand, token: Token, outcome: Outcome, now_ms: int
) -> None:
    """One with a member id: sent to come back with it, or a member that heard of a rebalance or has changed."""
    if command.member_id in group.pending and command.instance_id is None:
        _add(groups, group, command, command.member_id, token, outcome, now_ms)
        return
    group.check_member(command.member_id, command.instance_id)
    member = group.members[command.member_id]
    is_leader = group.leader_id == member.member_id
    is_same = member.protocols == command.protocols
    if (group.state is ClassicState.COMPLETING_REBALANCE and is_same) or (
        group.state is ClassicState.STABLE and is_same and not is_leader
    ):
        # It may have missed the answer to its first try. A leader of a stable group wants a rebalance, though.
        outcome.reply(token, joined(group, member))
        return
    refuse_join(group, member, outcome, ErrorCode.REBALANCE_IN_PROGRESS)
    _update(group, member, command, token)
    rebalance_or_complete(groups, group, outcome, now_ms)


def _update(group: ClassicGroup, member: ClassicMember, command: JoinCommand, token: Token) -> None:
    group.set_protocols(member, command.protocols)
    member.rebalance_timeout_ms = command.rebalance_timeout_ms
    member.session_timeout_ms = command.session_timeout_ms
    group.await_join(member, token)


# --- sync


def sync(groups: Groups, command: SyncCommand, token: Token, now_ms: int) -> Outcome:
    """Give a member its assignment, a `Synced`, as soon as the leader has brought it."""
    _check_group_id(command.group_id)
    found = groups.groups.get(command.group_id)
    if found is None or found.is_empty():
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "The group has no such member.")
    if not isinstance(found, ClassicGroup):
        door = _door_for_members(groups, found)
        return door.sync_classic(groups, found, command, token, now_ms)
    group = found
    _check_sync(group, command)
    outcome = Outcome()
    member = group.members[command.member_id]
    if group.state is ClassicState.STABLE:
        note_sync(group, member.member_id, outcome)
        return outcome.reply(token, synced(group, member))
    refuse_sync(group, member, outcome, ErrorCode.REBALANCE_IN_PROGRESS)
    member.sync_token = token
    note_sync(group, member.member_id, outcome)
    if group.leader_id == member.member_id:
        _assign(groups, group, command, outcome, now_ms)
    return outcome


def _check_sync(group: ClassicGroup, command: SyncCommand) -> None:
    group.check_member(command.member_id, command.instance_id)
    if command.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"The group is in generation {group.generation_id}.")
    if _differ(command.protocol_type, group.protocol_type_or_none) or _differ(
        command.protocol_name, group.protocol_name
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The group has chosen another protocol.")
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "The group prepares its next generation.")


def _differ(asked: str | None, actual: str | None) -> bool:
    return asked is not None and actual is not None and asked != actual


def _assign(groups: Groups, group: ClassicGroup, command: SyncCommand, outcome: Outcome, now_ms: int) -> None:
    """The leader has spoken: write it down, then tell everyone."""
    assignments = dict(command.assignments)
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    if stored_bytes(group) > groups.limits.write_bytes_max:
        drop_assignment(group, outcome, ErrorCode.UNKNOWN_SERVER_ERROR)
        prepare_rebalance(groups, group, outcome, now_ms)
        return
    store(groups, group, outcome)
    group.enter(ClassicState.STABLE, now_ms)
    give_assignment(group, outcome, now_ms)


# --- heartbeat and leave


def heartbeat(groups: Groups, command: HeartbeatCommand, token: Token, now_ms: int) -> Outcome:
    """Note that a member lives; the answer is a `HeartbeatAnswer`."""
    _check_group_id(command.group_id)
    group = _group_of_members(groups, command.group_id)
    if not isinstance(group, ClassicGroup):
        door = _door_for_members(groups, group)
        return door.heartbeat_classic(groups, group, command, token, now_ms)
    group.check_member(command.member_id, command.instance_id)
    if command.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"The group is in generation {group.generation_id}.")
    outcome = Outcome()
    expect_heartbeat(group, group.members[command.member_id], outcome, now_ms)
    preparing = group.state is ClassicState.PREPARING_REBALANCE
    error = ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE
    return outcome.reply(token, HeartbeatAnswer(error=error))


def leave(groups: Groups, command: LeaveCommand, token: Token, now_ms: int) -> Outcome:
    """Strike members off; the answer is a `Left`, as some may be unknown."""
    _check_group_id(command.group_id)
    group = _group_of_members(groups, command.group_id)
    if not isinstance(group, ClassicGroup):
        door = _door_for_members(groups, group)
        return door.leave_classic(groups, group, command, token, now_ms)
    outcome = Outcome()
    errors = tuple(_leave_one(group, leaving, outcome) for leaving in command.members)
    if ErrorCode.NONE in errors:
        if group.state is ClassicState.PREPARING_REBALANCE:
            complete_if_all_joined(groups, group, outcome, now_ms)
        else:
            after_removal(groups, group, outcome, now_ms)
    return outcome.reply(token, Left(errors=errors))


def _leave_one(group: ClassicGroup, leaving: LeavingMember, outcome: Outcome) -> ErrorCode:
    member_id = leaving.member_id
    if member_id in group.pending:
        forget_session(group, member_id, outcome)
        group.remove(member_id)
        return ErrorCode.NONE
    if member_id == UNKNOWN_MEMBER and leaving.instance_id is not None:
        # An administrator removes a static member without knowing its current id.
        member_id = group.static_ids.get(leaving.instance_id, UNKNOWN_MEMBER)
    try:
        group.check_member(member_id, leaving.instance_id)
    except KafkaError as error:
        return ErrorCode.UNKNOWN_MEMBER_ID if leaving.member_id == UNKNOWN_MEMBER else error.code
    dismiss(group, group.members[member_id], outcome)
    return ErrorCode.NONE


def refresh_session(group: ClassicGroup, member_id: str, outcome: Outcome, now_ms: int) -> None:
    """A member that commits offsets lives, as one that sends a heartbeat does."""
    member = group.members.get(member_id)
    if member is not None and group.state in {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE}:
        expect_heartbeat(group, member, outcome, now_ms)


# --- describe


def describe(groups: Groups, group_id: str, token: Token, now_ms: int) -> Outcome:
    """Tell an administrator about a group; KafkaError GROUP_ID_NOT_FOUND for one of another kind, too."""
    del now_ms
    group = groups.find(group_id)
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
    return Outcome().reply(token, group.describe())


# --- what the parts above share


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "A group with members must have a name.")


def _group_of_members(groups: Groups, group_id: str) -> Group:
    group = groups.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
    return group


def _door_for_members(groups: Groups, group: Group) -> ClassicDoor:
    door = groups.classic_door(group.kind)
    if door is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group.group_id} has no members of the classic protocol.")
    return door


# --- what the shard is given


def replay_group(groups: Groups, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """Take in what the log says of a group; its members are woken by `adopt` once all has been read."""
    group = groups.groups.get(key.group)
    if value is None:
        if isinstance(group, ClassicGroup):
            del groups.groups[key.group]
    elif isinstance(group, ClassicGroup):
        group.stored = value
    else:
        groups.groups[key.group] = ClassicGroup(key.group, value)


def adopt(groups: Groups, group: ClassicGroup, outcome: Outcome, now_ms: int) -> None:
    """Carry on with a group that was just read from the log, or converted: its members have a session each."""
    group.restore()
    for member in group.members.values():
        expect_heartbeat(group, member, outcome, now_ms)
    if len(group.members) > groups.limits.members_max:
        # The limit was lowered: let them join again, and turn away the last.
        prepare_rebalance(groups, group, outcome, now_ms)


def loaded(groups: Groups, now_ms: int) -> Outcome:
    """The log has been read."""
    outcome = Outcome()
    for group in tuple(groups.groups.values()):
        if isinstance(group, ClassicGroup):
            adopt(groups, group, outcome, now_ms)
    return outcome


def _timer(act: Callable[[Groups, TimerKey, int, Outcome], None]) -> Callable[[Groups, TimerKey, int], Outcome]:
    def on_timer(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
        outcome = Outcome()
        act(groups, key, now_ms, outcome)
        return outcome

    return on_timer


REPLAY: dict[type, Callable[[Groups, Any, Any], None]] = {GroupMetadataKey: replay_group}

TIMERS: dict[str, Callable[[Groups, TimerKey, int], Outcome]] = {
    SESSION_TIMER: _timer(on_session_timer),
    JOIN_TIMER: _timer(on_join_timer),
    SYNC_TIMER: _timer(on_sync_timer),
}
