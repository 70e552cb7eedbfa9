"""ShareGroupDescribe, key 77.

Versions: 1.
Behaviour: share groups with their members and what each reads; GROUP_ID_NOT_FOUND for one that is not there or is of
another kind.
Deviations: none known.
KIPs: 932.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.authorized_operations import NOT_ASKED, Operation, bit_set
from headrace.broker.share_groups import look_at_group
from headrace.broker.share_service import require_share_groups
from headrace.cores.groups.share import describe
from headrace.cores.groups.share_assignor import NAME
from headrace.cores.groups.share_commands import ShareGroupDescription, ShareMemberDescription
from headrace.cores.groups.share_records import by_topic
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

GROUP_OPERATIONS = bit_set(
    Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
)


async def handle(call: Call, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe each group."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return ShareGroupDescribeResponse(
        groups=tuple([await _describe(call, group_id, operations) for group_id in request.group_ids])
    )


async def _describe(call: Call, group_id: str, operations: int) -> DescribedGroup:
    try:
        require_share_groups(call.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group must have a name.")
        group: ShareGroupDescription = await look_at_group(
            call.broker, group_id, lambda groups, token, _: describe(groups, group_id, token)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=int(error.code), error_message=error.message)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        members=tuple(_member(call, member) for member in group.members),
        authorized_operations=operations,
    )


def _member(call: Call, member: ShareMemberDescription) -> Member:
    known = call.broker.metadata.topics_by_id
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        assignment=Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, topic_name=known[topic_id].name, partitions=indexes)
                for topic_id, indexes in by_topic(member.assignment)
                if topic_id in known
            )
        ),
    )


API = Api(key=77, low=1, high=1, handle=handle)
