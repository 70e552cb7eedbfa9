"""ConsumerGroupDescribe, key 69.

Versions: 0-1, all.
Behaviour: consumer groups with their epochs and members, what each owns and is to own. A group that is not there, or
is of another kind, is GROUP_ID_NOT_FOUND.
Deviations: none known.
KIPs: 848, 430 authorized operations, 1099 the protocol a member speaks (v1).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.authorized_operations import NOT_ASKED, Operation, bit_set
from headrace.cores.groups.consumer import describe
from headrace.cores.groups.consumer_commands import DescribedConsumer, DescribedConsumerGroup, NamedPartitions
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

GROUP_OPERATIONS = bit_set(
    Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
)

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1
"""Which protocol a member speaks, by Kafka's numbers."""


async def handle(call: Call, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    """Describe each group."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return ConsumerGroupDescribeResponse(
        groups=tuple([await _described(call, group_id, operations) for group_id in request.group_ids])
    )


async def _described(call: Call, group_id: str, operations: int) -> DescribedGroup:
    try:
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group must have a name.")
        shard = call.broker.groups.shard_for(group_id)
        group: DescribedConsumerGroup = await shard.look(
            lambda token, now_ms: describe(shard.core, group_id, token, now_ms)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=int(error.code), error_message=error.message or None)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=tuple(map(_member, group.members)),
        authorized_operations=operations,
    )


def _member(member: DescribedConsumer) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.assignment),
        target_assignment=_assignment(member.target),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(partitions: tuple[NamedPartitions, ...]) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=each.topic_id, topic_name=each.topic, partitions=each.partitions)
            for each in partitions
        )
    )


API = Api(key=69, low=0, high=1, handle=handle)
