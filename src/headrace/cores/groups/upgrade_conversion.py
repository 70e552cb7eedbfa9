"""Turning a live classic group into a consumer group, and back (KIP-848, "Online migration").

Up: the first member that joins with the consumer protocol finds a classic group of consumers. Its members stay, with
what they own, as members that speak the classic protocol still.
Down: when the last member with the consumer protocol has gone, the others are a classic group again.
Either way the group forgets its records of the one kind and writes those of the other in one batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.groups.assignment import emit_target, emit_target_epoch
from headrace.cores.groups.classic import adopt
from headrace.cores.groups.classic_group import ClassicGroup, ClassicMember
from headrace.cores.groups.classic_rebalance import disband, prepare_rebalance
from headrace.cores.groups.consumer_deadlines import expect_heartbeat, forget_all
from headrace.cores.groups.consumer_group import FIRST_EPOCH, ConsumerGroup
from headrace.cores.groups.consumer_member import ConsumerMember
from headrace.cores.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    MalformedConsumerProtocol,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from headrace.cores.groups.subscription import metadata_hash
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from uuid import UUID

    from headrace.cores.groups.assignors.spec import Target
    from headrace.cores.groups.consumer_limits import ConsumerLimits
    from headrace.cores.groups.shard import Groups
    from headrace.cores.metadata import Metadata
    from headrace.cores.outcome import Outcome

# --- up


def planned_upgrade(groups: Groups, classic: ClassicGroup, limits: ConsumerLimits) -> list[ConsumerMember]:
    """The members a classic group would have as a consumer group; KafkaError if it cannot be one."""
    if not limits.may_upgrade:
        raise _no_upgrade(classic, "online upgrade is disabled")
    if not classic.is_of_consumers:
        raise _no_upgrade(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > limits.members_max:
        raise _no_upgrade(classic, "the group size exceeds the consumer group maximum size")
    try:
        return [_upgraded(member, classic, groups.metadata) for member in classic.members.values()]
    except MalformedConsumerProtocol as error:
        raise _no_upgrade(classic, "the embedded consumer protocol is malformed") from error


def _upgraded(member: ClassicMember, classic: ClassicGroup, metadata: Metadata) -> ConsumerMember:
    """A member as it goes on in a consumer group."""
    protocol_name = classic.protocol_name or member.protocols[0].name
    subscription = read_subscription(member.metadata(protocol_name))
    owned: dict[UUID, dict[int, int]] = {}
    epoch = max(classic.generation_id, FIRST_EPOCH)
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _no_upgrade(classic, "an unsupported custom assignor is in use")
        owned = {
            metadata.topics[topic].topic_id: dict.fromkeys(partitions, epoch)
            for topic, partitions in assignment.partitions.items()
            if topic in metadata.topics and partitions
        }
    return ConsumerMember(
        member_id=member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        assigned=owned,
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms, supported_protocols=member.protocols
        ),
    )


def _no_upgrade(classic: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
    )


def replace_classic(
    groups: Groups, classic: ClassicGroup, members: list[ConsumerMember], outcome: Outcome, now_ms: int
) -> None:
    """Have a consumer group where there was a classic one; whoever waits in it is asked to join again."""
    group_id = classic.group_id
    disband(classic, outcome)
    for key, value in classic.tombstones():
        groups.emit(outcome, key, value)
    if not members:
        return
    epoch = max(classic.generation_id, FIRST_EPOCH)
    for member in members:
        key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
        groups.emit(outcome, key, member.metadata_record())
    group = groups.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    seen = metadata_hash(group.subscribed_topics(), groups.metadata)
    groups.emit(
        outcome,
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=seen),
    )
    for member in members:
        target = {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}
        emit_target(groups, group, member.member_id, target, outcome)
    emit_target_epoch(groups, group_id, epoch, 0, outcome)
    for member in members:
        assert member.classic is not None
        current = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
        groups.emit(outcome, current, member.assignment_record())
        expect_heartbeat(group, member.member_id, member.classic.session_timeout_ms, outcome, now_ms)


# --- down


def can_downgrade(
    groups: Groups, group: ConsumerGroup, leaving: Collection[str], limits: ConsumerLimits, *, coming: int = 0
) -> bool:
    """Whether all that stay speak the classic protocol, and may be a classic group."""
    staying = [member for member_id, member in group.members.items() if member_id not in leaving]
    return (
        limits.may_downgrade
        and bool(staying or coming)
        and all(member.classic is not None for member in staying)
        and len(staying) + coming <= groups.limits.members_max
    )


def replace_consumer(
    groups: Groups, group: ConsumerGroup, leaving: Collection[str], outcome: Outcome, now_ms: int, *, rebalance: bool
) -> None:
    """Have a classic group where there was a consumer group, without those who leave."""
    classic = ClassicGroup(group.group_id)
    for member_id, member in group.members.items():
        if member_id not in leaving:
            classic.add(_downgraded(member), PROTOCOL_TYPE)
    classic.generation_id = group.group_epoch
    classic.protocol_name = classic.voted_protocol()
    classic.state_timestamp_ms = now_ms
    for down in classic.members.values():
        names = by_topic_name(group.targets.get(down.member_id, {}), groups.metadata)
        down.assignment = write_assignment(names, version=version_of(down.metadata(classic.protocol_name)))
    for member_id in group.members:
        forget_all(group, member_id, outcome)
    for key, value in group.tombstones():
        groups.emit(outcome, key, value)
    groups.emit(outcome, GroupMetadataKey(group=group.group_id), classic.as_record())
    live = groups.groups[group.group_id]
    assert isinstance(live, ClassicGroup)
    adopt(groups, live, outcome, now_ms)
    for adopted in live.members.values():
        # The log keeps the chosen protocol only, but those who come may need to know the others.
        live.set_protocols(adopted, classic.members[adopted.member_id].protocols)
    if rebalance:
        prepare_rebalance(groups, live, outcome, now_ms)


def _downgraded(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.supported_protocols,
    )


def by_topic_name(partitions: Target | Mapping[UUID, Collection[int]], metadata: Metadata) -> dict[str, list[int]]:
    """Partitions by the names of their topics; topics that are gone are left out."""
    known = metadata.topics_by_id
    return {known[topic_id].name: sorted(partitions[topic_id]) for topic_id in sorted(partitions) if topic_id in known}
