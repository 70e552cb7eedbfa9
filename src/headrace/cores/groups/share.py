"""Share groups (KIP-932): members join with a heartbeat, are given partitions, and are gone when they fall silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.groups.share_assignor import assign
from headrace.cores.groups.share_commands import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ShareGroupDescription,
    ShareHeartbeat,
    ShareHeartbeatAnswer,
    ShareMemberDescription,
)
from headrace.cores.groups.share_group import NOTHING, ShareGroup, member_tombstones
from headrace.cores.groups.share_limits import ShareGroupLimits, share_group_limits
from headrace.cores.groups.share_offsets import begin_states, raise_epoch, require_share_group
from headrace.cores.groups.share_records import REPLAY, current_value, target_value
from headrace.cores.groups.subscription import metadata_hash, topic_ids
from headrace.cores.metadata import RESOURCE_GROUP
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headrace.cores.groups.shard import Groups
    from headrace.cores.outcome import TimerKey, Token

__all__ = ["REPLAY", "TIMERS", "describe", "heartbeat", "loaded"]

SESSION = "share-session"
"""The timer of a member: ("share-session", group id, member id)."""


def heartbeat(groups: Groups, command: ShareHeartbeat, token: Token, now_ms: int) -> Outcome:
    """Let a member join, stay or leave."""
    _check_shape(command)
    if command.member_epoch == LEAVE_EPOCH:
        return _leave(groups, command, token)
    limits = _limits(groups, command.group_id)
    outcome = Outcome()
    group = _entered(groups, command, limits, outcome)
    member = group.members.get(command.member_id)
    is_new = member is None or _has_changed_topics(group, command)
    _note_member(groups, group, command, outcome)
    seen = metadata_hash(group.subscribed_topics, groups.metadata)
    if is_new or seen != group.metadata_hash:
        raise_epoch(groups, group, outcome, seen)
    begin = begin_states(groups, group, outcome, now_ms, limits.initialize_retry_interval_ms)
    if group.group_epoch > group.assignment_epoch and _may_assign(group, limits, now_ms):
        _make_target(groups, group, outcome, now_ms)
    _follow_target(groups, group, command.member_id, outcome)
    _extend_session(group, command.member_id, outcome, now_ms + limits.session_timeout_ms)
    member = group.members[command.member_id]
    answer = ShareHeartbeatAnswer(
        member_id=command.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=limits.heartbeat_interval_ms,
        assignment=None if command.member_epoch == member.epoch else member.assigned,
        begin=begin,
    )
    return outcome.reply(token, answer)


def describe(groups: Groups, group_id: str, token: Token) -> Outcome:
    """Tell of a group and its members."""
    group = require_share_group(groups, group_id)
    members = tuple(
        ShareMemberDescription(
            member_id=member_id,
            rack_id=member.rack_id,
            member_epoch=member.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=member.topics,
            assignment=member.assigned,
        )
        for member_id, member in group.members.items()
    )
    answer = ShareGroupDescription(
        group_id=group_id,
        state_name=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=members,
    )
    return Outcome().reply(token, answer)


# --- checks


def _check_shape(command: ShareHeartbeat) -> None:
    problem = None
    if not command.member_id.strip():
        problem = "MemberId can't be empty."
    elif not command.group_id.strip():
        problem = "GroupId can't be empty."
    elif command.rack_id is not None and not command.rack_id.strip():
        problem = "RackId can't be empty."
    elif command.member_epoch == JOIN_EPOCH and not command.topics:
        problem = "SubscribedTopicNames must be set in first request."
    elif command.member_epoch < LEAVE_EPOCH:
        problem = "MemberEpoch is invalid."
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)


def _entered(groups: Groups, command: ShareHeartbeat, limits: ShareGroupLimits, outcome: Outcome) -> ShareGroup:
    """The group that a member is in, or may join."""
    if command.group_id not in groups.groups:
        if command.member_epoch != JOIN_EPOCH:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {command.group_id} not found.")
        value = ShareGroupMetadataValue(epoch=0, metadata_hash=0)
        groups.emit(outcome, ShareGroupMetadataKey(group_id=command.group_id), value)
    group = require_share_group(groups, command.group_id)
    member = group.members.get(command.member_id)
    if member is None:
        if command.member_epoch != JOIN_EPOCH:
            raise _unknown_member(command)
        if len(group.members) >= limits.members_max:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {limits.members_max} members.",
            )
    elif command.member_epoch not in {JOIN_EPOCH, member.epoch, member.previous_epoch}:
        relation = "greater" if command.member_epoch > member.epoch else "smaller"
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a {relation} member epoch ({command.member_epoch}) than the one known by the "
            f"group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )
    return group


def _unknown_member(command: ShareHeartbeat) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {command.member_id} is not a member of group {command.group_id}."
    )


def _limits(groups: Groups, group_id: str) -> ShareGroupLimits:
    return share_group_limits(groups.limits.settings, groups.metadata.configs(RESOURCE_GROUP, group_id))


# --- members


def _has_changed_topics(group: ShareGroup, command: ShareHeartbeat) -> bool:
    return command.topics is not None and _in_order(command.topics) != group.members[command.member_id].topics


def _in_order(topics: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(topics)))


def _note_member(groups: Groups, group: ShareGroup, command: ShareHeartbeat, outcome: Outcome) -> None:
    """Write down what a member tells of itself, if it is new."""
    known = group.members.get(command.member_id)
    topics = known.topics if command.topics is None and known is not None else _in_order(command.topics or ())
    rack_id = known.rack_id if command.rack_id is None and known is not None else command.rack_id
    told = (rack_id, command.client_id, command.client_host, topics)
    if known is not None and told == (known.rack_id, known.client_id, known.client_host, known.topics):
        return
    value = ShareGroupMemberMetadataValue(
        rack_id=rack_id, client_id=command.client_id, client_host=command.client_host, subscribed_topic_names=topics
    )
    key = ShareGroupMemberMetadataKey(group_id=group.group_id, member_id=command.member_id)
    groups.emit(outcome, key, value)


def _leave(groups: Groups, command: ShareHeartbeat, token: Token) -> Outcome:
    group = require_share_group(groups, command.group_id)
    if command.member_id not in group.members:
        raise _unknown_member(command)
    outcome = _removed(groups, group, command.member_id)
    return outcome.reply(token, ShareHeartbeatAnswer(member_id=command.member_id, member_epoch=LEAVE_EPOCH))


def _removed(groups: Groups, group: ShareGroup, member_id: str) -> Outcome:
    outcome = Outcome()
    for key, value in member_tombstones(group.group_id, member_id):
        groups.emit(outcome, key, value)
    seen = metadata_hash(group.subscribed_topics, groups.metadata)
    raise_epoch(groups, group, outcome, seen)
    group.sessions_ms.pop(member_id, None)
    outcome.cancel((SESSION, group.group_id, member_id))
    return outcome


# --- who reads what


def _may_assign(group: ShareGroup, limits: ShareGroupLimits, now_ms: int) -> bool:
    """Assignments keep a distance in time, but nobody waits while there is nothing to read at all."""
    is_due = now_ms >= group.assignment_timestamp_ms + limits.assignment_interval_ms
    return is_due or not any(group.targets.values())


def _make_target(groups: Groups, group: ShareGroup, outcome: Outcome, now_ms: int) -> None:
    subscriptions = {
        member_id: topic_ids(member.topics, groups.metadata) for member_id, member in group.members.items()
    }
    for member_id, target in assign(subscriptions, group.targets, group.initialized).items():
        if group.targets.get(member_id, NOTHING) != target:
            key = ShareGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=member_id)
            groups.emit(outcome, key, target_value(target))
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=group.group_epoch, assignment_timestamp=now_ms)
    groups.emit(outcome, ShareGroupTargetAssignmentMetadataKey(group_id=group.group_id), value)


def _follow_target(groups: Groups, group: ShareGroup, member_id: str, outcome: Outcome) -> None:
    """Bring a member to its target."""
    member = group.members[member_id]
    target = group.targets.get(member_id, NOTHING)
    if member.epoch != group.assignment_epoch or member.assigned != target:
        key = ShareGroupCurrentMemberAssignmentKey(group_id=group.group_id, member_id=member_id)
        groups.emit(outcome, key, current_value(target, group.assignment_epoch, member.epoch))


# --- sessions


def _extend_session(group: ShareGroup, member_id: str, outcome: Outcome, deadline_ms: int) -> None:
    group.sessions_ms[member_id] = deadline_ms
    outcome.wake((SESSION, group.group_id, member_id), deadline_ms)


def _on_session_timer(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    """Remove a member that has been silent for too long."""
    _, group_id, member_id = key
    group = groups.groups.get(group_id)
    if not isinstance(group, ShareGroup) or member_id not in group.members:
        return Outcome()
    deadline_ms = group.sessions_ms.get(member_id, now_ms)
    if deadline_ms > now_ms:
        outcome = Outcome()
        outcome.wake(key, deadline_ms)
        return outcome
    return _removed(groups, group, member_id)


TIMERS: Mapping[str, Callable[[Any, TimerKey, int], Outcome]] = {SESSION: _on_session_timer}


def loaded(groups: Groups, now_ms: int) -> Outcome:
    """Give every member a whole session from now on: it may have sent heartbeats to the coordinator before."""
    outcome = Outcome()
    for group in groups.groups.values():
        if isinstance(group, ShareGroup):
            deadline_ms = now_ms + _limits(groups, group.group_id).session_timeout_ms
            for member_id in group.members:
                _extend_session(group, member_id, outcome, deadline_ms)
    return outcome
