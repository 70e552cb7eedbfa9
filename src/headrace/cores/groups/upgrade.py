"""Members of the classic protocol in a consumer group: how a group moves over member by member (KIP-848).

To such a member the group looks like a classic one in which the coordinator is the leader. It joins, which tells what
it wants and owns and makes its next step; its generation is its member epoch. It asks for its assignment; its
heartbeats tell it to join again whenever there is a next step to make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headrace.cores.groups.assignment import assign_if_due, refresh
from headrace.cores.groups.classic_commands import (
    UNKNOWN_MEMBER,
    HeartbeatAnswer,
    HeartbeatCommand,
    JoinCommand,
    Joined,
    LeaveCommand,
    LeavingMember,
    Left,
    SyncCommand,
    Synced,
)
from headrace.cores.groups.consumer_commands import NO_TIMEOUT
from headrace.cores.groups.consumer_deadlines import (
    expect_heartbeat,
    expect_join,
    expect_sync,
    forget_join,
    forget_revocation,
    forget_sync,
)
from headrace.cores.groups.consumer_limits import limits_of
from headrace.cores.groups.consumer_member import ConsumerMember, MemberState
from headrace.cores.groups.consumer_membership import (
    check_room,
    emit_member,
    fence,
    follow,
    require_static,
    take_over,
)
from headrace.cores.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    MalformedConsumerProtocol,
    Subscription,
    read_subscription,
    version_of,
    write_assignment,
)
from headrace.cores.groups.upgrade_conversion import by_topic_name, can_downgrade, replace_consumer
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import ClassicMemberMetadata

if TYPE_CHECKING:
    from headrace.cores.groups.consumer_group import ConsumerGroup
    from headrace.cores.groups.consumer_limits import ConsumerLimits
    from headrace.cores.groups.consumer_reconciliation import Owned
    from headrace.cores.groups.shard import Groups
    from headrace.cores.metadata import Metadata
    from headrace.cores.outcome import Token

# --- join


def join_classic(groups: Groups, group: ConsumerGroup, command: JoinCommand, token: Token, now_ms: int) -> Outcome:
    """Let a member of the classic protocol in, or have it do its next step; the answer is a `Joined`."""
    limits = limits_of(groups, group.group_id)
    subscription = _check_join(group, command, limits)
    if command.member_id == UNKNOWN_MEMBER and command.instance_id is None and command.needs_known_member_id:
        return Outcome().reply(token, Joined(member_id=command.new_member_id, error=ErrorCode.MEMBER_ID_REQUIRED))
    member_id = command.member_id or command.new_member_id
    static = group.static_member(command.instance_id)
    if command.instance_id is not None and command.member_id != UNKNOWN_MEMBER:
        static = require_static(group, member_id, command.instance_id)
    downgrades = (
        static is not None
        and static.classic is None
        and can_downgrade(groups, group, [static.member_id], limits, coming=1)
    )
    outcome = Outcome()
    replaces = static is not None and command.member_id == UNKNOWN_MEMBER
    old = take_over(groups, group, static, member_id, outcome) if static and replaces else group.members.get(member_id)
    updated = _as_told(old or ConsumerMember(member_id=member_id), command, subscription)
    if updated != old:
        emit_member(groups, group.group_id, updated, outcome)
    new_topics = old is None or updated.topics != old.topics or updated.regex != old.regex
    if new_topics or group.is_stale:
        refresh(groups, group, outcome, now_ms, changed=new_topics)
    owned = _owned(subscription, groups.metadata)
    if downgrades:
        generation_id = _join_last(groups, group, member_id, owned, outcome, now_ms, new_topics=new_topics)
    else:
        assign_if_due(groups, group, limits, outcome, now_ms)
        member = follow(groups, group, member_id, owned, outcome, now_ms, new_topics=new_topics)
        generation_id = member.member_epoch
        forget_revocation(group, member_id, outcome)
        forget_join(group, member_id, outcome)
        expect_heartbeat(group, member_id, command.session_timeout_ms, outcome, now_ms)
        expect_sync(group, member_id, outcome, now_ms)
    answer = Joined(
        member_id=member_id,
        generation_id=generation_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=command.protocols[0].name,
    )
    return outcome.reply(token, answer)


def _check_join(group: ConsumerGroup, command: JoinCommand, limits: ConsumerLimits) -> Subscription:
    """What one who joins wants to read; KafkaError if it cannot be in the group."""
    if not limits.may_mix:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration "
            "is disabled.",
        )
    check_room(group, command.member_id or command.new_member_id, limits)
    names = {protocol.name for protocol in command.protocols}
    classic = [
        {protocol.name for protocol in member.classic.supported_protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    if command.protocol_type != PROTOCOL_TYPE or not names.intersection(*classic):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {command.member_id}'s protocols are not supported."
        )
    try:
        # Any of them may be the one that the group goes on with.
        subscriptions = [read_subscription(protocol.metadata) for protocol in command.protocols]
    except MalformedConsumerProtocol as error:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {command.member_id}'s subscription cannot be read: {error}"
        ) from error
    return subscriptions[0]


def _join_last(
    groups: Groups,
    group: ConsumerGroup,
    member_id: str,
    owned: Owned,
    outcome: Outcome,
    now_ms: int,
    *,
    new_topics: bool,
) -> int:
    """The last static member of the new protocol is back with the classic one, and so is the group; in which epoch?"""
    rebalance = group.assignment_epoch < group.group_epoch
    if not rebalance:
        follow(groups, group, member_id, owned, outcome, now_ms, new_topics=new_topics)
    generation_id = group.members[member_id].member_epoch
    replace_consumer(groups, group, (), outcome, now_ms, rebalance=rebalance)
    return generation_id


def _as_told(member: ConsumerMember, command: JoinCommand, subscription: Subscription) -> ConsumerMember:
    """The member with what it says of itself."""
    timeout_ms = command.rebalance_timeout_ms
    return replace(
        member,
        instance_id=command.instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=command.client_id,
        client_host=command.client_host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=command.session_timeout_ms, supported_protocols=command.protocols
        ),
    )


def _owned(subscription: Subscription, metadata: Metadata) -> Owned:
    """What a member says it owns, of topics that are still there."""
    topics = metadata.topics
    return {topics[name].topic_id: partitions for name, partitions in subscription.owned.items() if name in topics}


# --- sync


def sync_classic(groups: Groups, group: ConsumerGroup, command: SyncCommand, token: Token, now_ms: int) -> Outcome:
    """Give a member of the classic protocol what it may own; the answer is a `Synced`."""
    member, classic = _require_classic(group, command.member_id, command.instance_id, command.generation_id)
    protocol = classic.supported_protocols[0]
    if command.protocol_type not in {None, PROTOCOL_TYPE} or command.protocol_name not in {None, protocol.name}:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol of member {member.member_id} is {PROTOCOL_TYPE} {protocol.name}, as it was told on joining.",
        )
    outcome = Outcome()
    if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        expect_join(group, member.member_id, outcome, now_ms)
        error = KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} should rejoin to "
            "catch up.",
        )
        return outcome.reply(token, error)
    forget_sync(group, member.member_id, outcome)
    expect_heartbeat(group, member.member_id, classic.session_timeout_ms, outcome, now_ms)
    answer = Synced(
        assignment=write_assignment(
            by_topic_name(member.assigned, groups.metadata), version=version_of(protocol.metadata)
        ),
        protocol_type=command.protocol_type,
        protocol_name=command.protocol_name,
    )
    return outcome.reply(token, answer)


def _require_classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    """A member of the classic protocol, in its generation."""
    member = group.require(member_id) if instance_id is None else require_static(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    if generation_id != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch {member.member_epoch} of "
            f"member {member_id}.",
        )
    return member, member.classic


# --- heartbeat and leave


def heartbeat_classic(
    groups: Groups, group: ConsumerGroup, command: HeartbeatCommand, token: Token, now_ms: int
) -> Outcome:
    """Note that a member of the classic protocol lives; it joins again if there is a next step for it."""
    member, classic = _require_classic(group, command.member_id, command.instance_id, command.generation_id)
    outcome = Outcome()
    expect_heartbeat(group, member.member_id, classic.session_timeout_ms, outcome, now_ms)
    if not _has_next_step(group, member):
        return outcome.reply(token, HeartbeatAnswer())
    expect_join(group, member.member_id, outcome, now_ms)
    return outcome.reply(token, HeartbeatAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS))


def _has_next_step(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a member would get somewhere by joining again."""
    if member.member_epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        group.owner(topic_id, index) is not None
        for topic_id, indexes in group.targets.get(member.member_id, {}).items()
        for index in indexes
        if index not in member.assigned.get(topic_id, {})
    )


def leave_classic(groups: Groups, group: ConsumerGroup, command: LeaveCommand, token: Token, now_ms: int) -> Outcome:
    """Strike members off, of either protocol: an administrator may remove any. The answer is a `Left`."""
    leaving: dict[str, None] = {}
    errors = []
    for each in command.members:
        try:
            leaving[_leaving_id(group, each)] = None
            errors.append(ErrorCode.NONE)
        except KafkaError as error:
            errors.append(error.code)
    outcome = Outcome()
    fence(groups, group, list(leaving), limits_of(groups, group.group_id), outcome, now_ms)
    return outcome.reply(token, Left(errors=tuple(errors)))


def _leaving_id(group: ConsumerGroup, leaving: LeavingMember) -> str:
    if leaving.instance_id is None:
        return group.require(leaving.member_id).member_id
    static = group.static_member(leaving.instance_id)
    if static is not None and leaving.member_id == UNKNOWN_MEMBER:
        return static.member_id
    return require_static(group, leaving.member_id, leaving.instance_id).member_id
