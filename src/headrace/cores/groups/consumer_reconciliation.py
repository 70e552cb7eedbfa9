"""The next step of a member towards its target (KIP-848, "Reconciliation").

A partition has one owner at any time: it is given to nobody while another member owns it or has not confirmed that it
gave it up. So a step first takes away, waits for the member to say that it owns no more than it may, and only then
gives what is free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from headrace.cores.groups.consumer_member import ConsumerMember, MemberState, OwnedPartitions
from headrace.model.errors import ErrorCode, KafkaError

Owned = Mapping[UUID, Collection[int]]
"""What a member says it owns."""


class Goal(Struct, frozen=True, kw_only=True):
    """Where a member is to go, and what stands in the way."""

    epoch: int
    target: Mapping[UUID, frozenset[int]]
    topics: frozenset[UUID]
    """What the member reads; it is taken off other topics at once, whatever the target says."""
    owner: Callable[[UUID, int], str | None]
    """Which member owns a partition now."""


def reconciled(member: ConsumerMember, goal: Goal, owned: Owned | None, *, new_topics: bool) -> ConsumerMember:
    """The member after its next step; `owned` is None where a heartbeat did not say, `new_topics` where what it reads
    has changed.
    """
    if member.state is MemberState.STABLE and member.member_epoch == goal.epoch:
        return _off_other_topics(member, goal, owned) if new_topics else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(owned, member.pending_revocation):
        return _off_other_topics(member, goal, owned) if new_topics else member
    return _next(member, goal, owned)


def check_state(member: ConsumerMember, owned: Owned | None) -> None:
    """KafkaError if a newer version left the member in a state that is not known here, and it still owns something."""
    if member.state is MemberState.UNKNOWN and (owned is None or any(owned.values())):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )


def _still_owns(owned: Owned | None, partitions: OwnedPartitions) -> bool:
    """Whether the member has not yet said that it gave these up."""
    if owned is None:
        return True
    return any(index in partitions.get(topic_id, {}) for topic_id, indexes in owned.items() for index in indexes)


def _off_other_topics(member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
    """The target is not made anew yet, but topics that the member does not read any more go at once."""
    leaving = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in goal.topics}
    if not leaving:
        return member
    assigned = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id in goal.topics}
    pending = dict(member.pending_revocation)
    for topic_id, epochs in leaving.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **epochs}
    if _still_owns(owned, pending):
        return member.with_epoch(
            member.member_epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=assigned,
            pending_revocation=pending,
        )
    return replace(member, previous_member_epoch=member.member_epoch, assigned=assigned)


def _next(member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
    """Take away what is not in the target; if there is nothing to take, give what is free."""
    kept: dict[UUID, dict[int, int]] = {}
    revoked: dict[UUID, dict[int, int]] = {}
    gained: dict[UUID, list[int]] = {}
    unreleased = False
    for topic_id in goal.target.keys() | member.assigned.keys():
        target = goal.target.get(topic_id, frozenset()) if topic_id in goal.topics else frozenset()
        current = member.assigned.get(topic_id, {})
        if keep := {index: epoch for index, epoch in current.items() if index in target}:
            kept[topic_id] = keep
        if drop := {index: epoch for index, epoch in current.items() if index not in target}:
            revoked[topic_id] = drop
        missing = target - current.keys()
        free = [index for index in missing if goal.owner(topic_id, index) in {None, member.member_id}]
        unreleased |= len(free) < len(missing)
        if free:
            gained[topic_id] = free
    if revoked and _still_owns(owned, revoked):
        return member.with_epoch(
            member.member_epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=revoked,
        )
    for topic_id, indexes in gained.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(indexes, goal.epoch))
    return member.with_epoch(
        goal.epoch,
        state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
        assigned=kept,
        pending_revocation={},
    )
