"""The consumer group protocol (KIP-848): one heartbeat for everything.

A member joins with epoch 0, tells what it wants, and is told in each answer what it may own. It gives up what is not
in there any more and says so in the next heartbeat; only then does another member get it. It leaves with epoch -1, or
with -2 if it is static and will be back.

Each heartbeat does, in this order: take in what the member wants; raise the group epoch if that, or a topic, has
changed; make the target assignment for a new epoch; let the member do its next step towards its target.
Everything that can be refused is checked before the first record is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headrace.cores.groups.assignment import ASSIGN_TIMER, assign_if_due, assignment_due_ms, refresh
from headrace.cores.groups.classic_group import ClassicGroup
from headrace.cores.groups.consumer_commands import (
    NO_TIMEOUT,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    DescribedConsumer,
    DescribedConsumerGroup,
    NamedPartitions,
)
from headrace.cores.groups.consumer_deadlines import (
    JOIN_TIMER,
    REBALANCE_TIMER,
    SESSION_TIMER,
    SYNC_TIMER,
    expect_heartbeat,
    expect_revocation,
    forget_join,
    forget_revocation,
    forget_sync,
)
from headrace.cores.groups.consumer_group import ConsumerGroup
from headrace.cores.groups.consumer_limits import ConsumerLimits, limits_of
from headrace.cores.groups.consumer_member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from headrace.cores.groups.consumer_membership import (
    check_room,
    emit_current,
    emit_member,
    fence,
    follow,
    require_static,
    take_over,
)
from headrace.cores.groups.consumer_reconciliation import Owned, check_state
from headrace.cores.groups.consumer_records import REPLAY as REPLAY
from headrace.cores.groups.regex import check_regex
from headrace.cores.groups.upgrade_conversion import by_topic_name, planned_upgrade, replace_classic
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from uuid import UUID

    from headrace.cores.groups.shard import Groups
    from headrace.cores.metadata import Metadata
    from headrace.cores.outcome import TimerKey, Token

HEARTBEATS_WHILE_WAITING = 5
"""How often a member that waits for partitions is heard of within the usual interval."""


# --- heartbeat


def heartbeat(groups: Groups, command: ConsumerHeartbeat, token: Token, now_ms: int) -> Outcome:
    """Serve a member; the answer is a `ConsumerHeartbeatAnswer`."""
    limits = limits_of(groups, command.group_id)
    check_heartbeat(command, limits)
    if command.member_epoch < JOINING_EPOCH:
        return _leave(groups, command, limits, token, now_ms)
    outcome = Outcome()
    group = _group_for(groups, command, limits, outcome, now_ms)
    old = _member_for(groups, group, command, outcome)
    updated = _as_told(old or ConsumerMember(member_id=command.member_id), command)
    if updated != old:
        emit_member(groups, command.group_id, updated, outcome)
    group = _require_group(groups, command.group_id)
    new_topics = old is None or updated.topics != old.topics or updated.regex != old.regex
    if new_topics or group.is_stale or _regexes_are_old(group, limits, now_ms):
        refresh(groups, group, outcome, now_ms, changed=new_topics)
    if old is not None and old.classic is not None:
        forget_join(group, old.member_id, outcome)
        forget_sync(group, old.member_id, outcome)
    assign_if_due(groups, group, limits, outcome, now_ms)
    member = follow(groups, group, command.member_id, command.owned, outcome, now_ms, new_topics=new_topics)
    expect_heartbeat(group, member.member_id, limits.session_timeout_ms, outcome, now_ms)
    tells = command.member_epoch == JOINING_EPOCH or command.is_full or old is None or member.assigned != old.assigned
    answer = ConsumerHeartbeatAnswer(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=_next_heartbeat_ms(group, member, limits),
        assignment={topic: tuple(sorted(owned)) for topic, owned in member.assigned.items()} if tells else None,
    )
    return outcome.reply(token, answer)


def _next_heartbeat_ms(group: ConsumerGroup, member: ConsumerMember, limits: ConsumerLimits) -> int:
    """When a member is to be heard of again: sooner while it waits for partitions, which nobody reads meanwhile.

    Only the answer to a heartbeat tells it that others have given them up, or that there is a target at last.
    """
    has_no_target_yet = not member.assigned and group.assignment_epoch < group.group_epoch
    if has_no_target_yet or member.state is MemberState.UNRELEASED_PARTITIONS:
        return max(limits.heartbeat_interval_ms // HEARTBEATS_WHILE_WAITING, 1)
    return limits.heartbeat_interval_ms


def check_heartbeat(command: ConsumerHeartbeat, limits: ConsumerLimits) -> None:
    """KafkaError unless a heartbeat makes sense by itself."""
    fault = next((sentence for sentence, is_so in _faults(command) if is_so), None)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, fault)
    if command.server_assignor is not None and command.server_assignor not in limits.assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {command.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(limits.assignors)}.",
        )


def _faults(command: ConsumerHeartbeat) -> Iterable[tuple[str, bool]]:
    joining = command.member_epoch == JOINING_EPOCH
    no_topics = command.topics is None and command.regex is None
    return (
        ("MemberId can't be empty.", not command.member_id),
        ("GroupId can't be empty.", not command.group_id),
        ("InstanceId can't be empty.", command.instance_id == ""),
        ("RackId can't be empty.", command.rack_id == ""),
        (
            "RebalanceTimeoutMs must be provided in first request.",
            joining and command.rebalance_timeout_ms == NO_TIMEOUT,
        ),
        (
            "TopicPartitions must be empty when (re-)joining.",
            joining and (command.owned is None or bool(command.owned)),
        ),
        (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            joining and no_topics,
        ),
        ("InstanceId can't be null.", command.member_epoch == LEAVING_STATIC_EPOCH and command.instance_id is None),
        ("MemberEpoch is invalid.", command.member_epoch < LEAVING_STATIC_EPOCH),
    )


def _group_for(
    groups: Groups, command: ConsumerHeartbeat, limits: ConsumerLimits, outcome: Outcome, now_ms: int
) -> ConsumerGroup | None:
    """The group a heartbeat is for; None if it is to be made. A classic group of consumers becomes a consumer group."""
    found = groups.groups.get(command.group_id)
    joining = command.member_epoch == JOINING_EPOCH
    group = found if isinstance(found, ConsumerGroup) else None
    check_room(group, command.member_id, limits)
    if command.regex and (group is None or command.regex not in group.regexes):
        check_regex(command.regex)
    if group is not None:
        return group
    if not joining:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {command.group_id} not found.")
    if found is None:
        return None
    if not isinstance(found, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {command.group_id} is not a consumer group.")
    members = [] if found.is_empty() else planned_upgrade(groups, found, limits)
    if len(members) >= limits.members_max and command.member_id not in found.members:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, "The group has no room for one more.")
    replace_classic(groups, found, members, outcome, now_ms)
    made = groups.groups.get(command.group_id)
    return made if isinstance(made, ConsumerGroup) else None


def _require_group(groups: Groups, group_id: str) -> ConsumerGroup:
    group = groups.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def _member_for(
    groups: Groups, group: ConsumerGroup | None, command: ConsumerHeartbeat, outcome: Outcome
) -> ConsumerMember | None:
    """The member a heartbeat is from; None if it is new. KafkaError if it may not go on as it is."""
    joining = command.member_epoch == JOINING_EPOCH
    if group is None:
        return None
    if command.instance_id is None:
        member = group.members.get(command.member_id) if joining else group.require(command.member_id)
    elif not joining:
        member = require_static(group, command.member_id, command.instance_id)
    else:
        member = group.static_member(command.instance_id)
        if member is None:
            return group.members.get(command.member_id)
        if member.classic is None and member.member_epoch != LEAVING_STATIC_EPOCH:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {command.member_id} with instance id {command.instance_id} cannot join the group "
                f"because the instance id is owned by {member.member_id} member.",
            )
        return take_over(groups, group, member, command.member_id, outcome)
    if member is not None:
        _check_epoch(member, command)
        check_state(member, command.owned)
    return member


def _check_epoch(member: ConsumerMember, command: ConsumerHeartbeat) -> None:
    """KafkaError unless a member is in its epoch, or in the one before and just did not hear of the new one."""
    epoch = command.member_epoch
    if epoch in {JOINING_EPOCH, member.member_epoch}:
        return
    if epoch < member.member_epoch and epoch == member.previous_member_epoch and _is_within(command.owned, member):
        return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: Owned | None, member: ConsumerMember) -> bool:
    """Whether a member owns nothing but what it was given."""
    return owned is not None and all(
        index in member.assigned.get(topic_id, {}) for topic_id, indexes in owned.items() for index in indexes
    )


def _as_told(member: ConsumerMember, command: ConsumerHeartbeat) -> ConsumerMember:
    """The member with what it says of itself."""
    timeout_ms = command.rebalance_timeout_ms
    return replace(
        member,
        instance_id=command.instance_id or member.instance_id,
        rack_id=command.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
        server_assignor=command.server_assignor or member.server_assignor,
        topics=member.topics if command.topics is None else frozenset(command.topics),
        regex=member.regex if command.regex is None else command.regex,
        client_id=command.client_id,
        client_host=command.client_host,
        classic=None,
    )


def _regexes_are_old(group: ConsumerGroup, limits: ConsumerLimits, now_ms: int) -> bool:
    return bool(group.regexes) and now_ms > group.resolved_at_ms + limits.regex_refresh_interval_ms


# --- leave


def _leave(groups: Groups, command: ConsumerHeartbeat, limits: ConsumerLimits, token: Token, now_ms: int) -> Outcome:
    """Strike a member off, or, if it is static and will be back, keep its place."""
    group = groups.groups.get(command.group_id)
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {command.group_id} not found.")
    if command.instance_id is None:
        member = group.require(command.member_id)
    else:
        member = require_static(group, command.member_id, command.instance_id)
    outcome = Outcome()
    if command.member_epoch == LEAVING_EPOCH:
        fence(groups, group, [member.member_id], limits, outcome, now_ms)
    else:
        away = replace(
            member,
            member_epoch=LEAVING_STATIC_EPOCH,
            assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()},
            pending_revocation={},
        )
        emit_current(groups, group.group_id, away, outcome)
        forget_revocation(group, member.member_id, outcome)
    answer = ConsumerHeartbeatAnswer(member_id=command.member_id, member_epoch=command.member_epoch)
    return outcome.reply(token, answer)


# --- topics


def metadata_changed(groups: Groups, topic_names: Collection[str], now_ms: int) -> Outcome:
    """Topics were created, deleted or given partitions: groups that read them share out their partitions anew."""
    outcome = Outcome()
    for group in tuple(groups.groups.values()):
        if not isinstance(group, ConsumerGroup):
            continue
        if not group.regexes and not any(map(group.is_subscribed_to, topic_names)):
            continue
        group.is_stale = True
        if group.members:
            refresh(groups, group, outcome, now_ms, changed=False)
            assign_if_due(groups, group, limits_of(groups, group.group_id), outcome, now_ms)
    return outcome


# --- describe


def describe(groups: Groups, group_id: str, token: Token, now_ms: int) -> Outcome:
    """Tell an administrator about a consumer group; KafkaError GROUP_ID_NOT_FOUND for one of another kind, too."""
    del now_ms
    group = groups.find(group_id)
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    described = DescribedConsumerGroup(
        group_id=group_id,
        state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.preferred_assignor() or limits_of(groups, group_id).assignors[0],
        members=tuple(_described(member, group, groups.metadata) for member in group.members.values()),
    )
    return Outcome().reply(token, described)


def _described(member: ConsumerMember, group: ConsumerGroup, metadata: Metadata) -> DescribedConsumer:
    owned = {
        topic_id: {*member.assigned.get(topic_id, {}), *member.pending_revocation.get(topic_id, {})}
        for topic_id in member.assigned.keys() | member.pending_revocation.keys()
    }
    return DescribedConsumer(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(member.topics)),
        regex=member.regex,
        assignment=_named(owned, metadata),
        target=_named(group.targets.get(member.member_id, {}), metadata),
        is_classic=member.classic is not None,
    )


def _named(partitions: Mapping[UUID, Collection[int]], metadata: Metadata) -> tuple[NamedPartitions, ...]:
    return tuple(
        NamedPartitions(topic_id=metadata.topics[topic].topic_id, topic=topic, partitions=tuple(indexes))
        for topic, indexes in by_topic_name(partitions, metadata).items()
    )


# --- timers


def _on_session(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    return _fence_if_late(groups, key, lambda group: group.sessions_ms, now_ms)


def _on_join(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    return _fence_if_late(groups, key, lambda group: group.join_deadlines_ms, now_ms)


def _on_sync(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    return _fence_if_late(groups, key, lambda group: group.sync_deadlines_ms, now_ms)


def _on_rebalance(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    """A member has had its time to give up partitions; it matters only while it has not left that epoch."""

    def deadlines(group: ConsumerGroup) -> dict[str, int]:
        return {
            member_id: deadline_ms
            for member_id, (deadline_ms, epoch) in group.revocations.items()
            if member_id in group.members
            and group.members[member_id].member_epoch == epoch
            and group.members[member_id].state is MemberState.UNREVOKED_PARTITIONS
        }

    return _fence_if_late(groups, key, deadlines, now_ms)


def _fence_if_late(
    groups: Groups, key: TimerKey, deadlines: Callable[[ConsumerGroup], dict[str, int]], now_ms: int
) -> Outcome:
    """Remove a member that let a deadline pass; one that was moved is waited for again."""
    outcome = Outcome()
    _, group_id, member_id = key
    group = groups.groups.get(group_id)
    if not isinstance(group, ConsumerGroup) or member_id not in group.members:
        return outcome
    deadline_ms = deadlines(group).get(member_id)
    if deadline_ms is None:
        return outcome
    if now_ms < deadline_ms:
        outcome.wake(key, deadline_ms)
    else:
        fence(groups, group, [member_id], limits_of(groups, group_id), outcome, now_ms)
    return outcome


def _on_assign(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    """The time between two targets may be over."""
    outcome = Outcome()
    group = groups.groups.get(key[1])
    if isinstance(group, ConsumerGroup):
        assign_if_due(groups, group, limits_of(groups, group.group_id), outcome, now_ms)
    return outcome


TIMERS: dict[str, Callable[[Groups, TimerKey, int], Outcome]] = {
    SESSION_TIMER: _on_session,
    REBALANCE_TIMER: _on_rebalance,
    JOIN_TIMER: _on_join,
    SYNC_TIMER: _on_sync,
    ASSIGN_TIMER: _on_assign,
}


def loaded(groups: Groups, now_ms: int) -> Outcome:
    """The log has been read: every member has its session timeout anew."""
    outcome = Outcome()
    for group in tuple(groups.groups.values()):
        if not isinstance(group, ConsumerGroup):
            continue
        limits = limits_of(groups, group.group_id)
        for member_id, member in group.members.items():
            timeout_ms = limits.session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
            expect_heartbeat(group, member_id, timeout_ms, outcome, now_ms)
            if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
                expect_revocation(group, member_id, outcome, now_ms)
        if group.members and group.group_epoch > group.assignment_epoch:
            outcome.wake((ASSIGN_TIMER, group.group_id), max(now_ms, assignment_due_ms(group, limits)))
    return outcome
