"""What happens to members of a consumer group, whichever protocol they speak: they follow, are replaced, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headrace.cores.groups.assignment import ASSIGN_TIMER, assignment_due_ms, emit_target, refresh
from headrace.cores.groups.consumer_deadlines import expect_revocation, forget_all, forget_revocation
from headrace.cores.groups.consumer_group import ConsumerGroup
from headrace.cores.groups.consumer_member import JOINING_EPOCH, ConsumerMember, MemberState
from headrace.cores.groups.consumer_reconciliation import Goal, Owned, reconciled
from headrace.cores.groups.subscription import topic_ids
from headrace.cores.groups.upgrade_conversion import can_downgrade, replace_consumer
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
)

if TYPE_CHECKING:
    from headrace.cores.groups.consumer_limits import ConsumerLimits
    from headrace.cores.groups.shard import Groups
    from headrace.cores.outcome import Outcome

# --- questions


def check_room(group: ConsumerGroup | None, member_id: str, limits: ConsumerLimits) -> None:
    """KafkaError if a group is full and this one is not in it."""
    if group is not None and len(group.members) >= limits.members_max and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limits.members_max} members.",
        )


def require_static(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """The member behind an instance id; KafkaError if there is none, or if another one has taken it over."""
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


# --- steps of steps


def emit_member(groups: Groups, group_id: str, member: ConsumerMember, outcome: Outcome) -> None:
    """Write down what a member wants."""
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    groups.emit(outcome, key, member.metadata_record())


def emit_current(groups: Groups, group_id: str, member: ConsumerMember, outcome: Outcome) -> None:
    """Write down what a member owns."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    groups.emit(outcome, key, member.assignment_record())


def _emit_removal(groups: Groups, group_id: str, member_id: str, outcome: Outcome) -> None:
    for key in (
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupMemberMetadataKey,
    ):
        groups.emit(outcome, key(group_id=group_id, member_id=member_id), None)


def take_over(
    groups: Groups, group: ConsumerGroup, old: ConsumerMember, member_id: str, outcome: Outcome
) -> ConsumerMember:
    """A static member is back: it gets its old place under a new member id, with all it owned (KIP-345)."""
    target = group.targets.get(old.member_id, {})
    new = replace(old, member_id=member_id, member_epoch=JOINING_EPOCH, previous_member_epoch=JOINING_EPOCH)
    forget_all(group, old.member_id, outcome)
    _emit_removal(groups, group.group_id, old.member_id, outcome)
    emit_member(groups, group.group_id, new, outcome)
    emit_target(groups, group, member_id, target, outcome)
    emit_current(groups, group.group_id, new, outcome)
    return group.members[member_id]


def follow(
    groups: Groups,
    group: ConsumerGroup,
    member_id: str,
    owned: Owned | None,
    outcome: Outcome,
    now_ms: int,
    *,
    new_topics: bool,
) -> ConsumerMember:
    """Let a member do its next step towards its target, if it is not there."""
    member = group.members[member_id]
    if member.is_reconciled_to(group.assignment_epoch) and not new_topics:
        return member
    goal = Goal(
        epoch=group.assignment_epoch,
        target=group.targets.get(member_id, {}),
        topics=topic_ids(group.topics_of(member), groups.metadata),
        owner=group.owner,
    )
    updated = reconciled(member, goal, owned, new_topics=new_topics)
    if updated == member:
        return member
    emit_current(groups, group.group_id, updated, outcome)
    if member.classic is None:
        if updated.state is MemberState.UNREVOKED_PARTITIONS:
            expect_revocation(group, member_id, outcome, now_ms)
        else:
            forget_revocation(group, member_id, outcome)
    return group.members[member_id]


def fence(
    groups: Groups, group: ConsumerGroup, member_ids: list[str], limits: ConsumerLimits, outcome: Outcome, now_ms: int
) -> None:
    """Remove members; the others share what they had, as a classic group if nobody else speaks the new protocol."""
    if not member_ids:
        return
    if can_downgrade(groups, group, member_ids, limits):
        replace_consumer(groups, group, member_ids, outcome, now_ms, rebalance=True)
        return
    for member_id in member_ids:
        forget_all(group, member_id, outcome)
        _emit_removal(groups, group.group_id, member_id, outcome)
    refresh(groups, group, outcome, now_ms, changed=True)
    if group.members:
        outcome.wake((ASSIGN_TIMER, group.group_id), max(now_ms, assignment_due_ms(group, limits)))
