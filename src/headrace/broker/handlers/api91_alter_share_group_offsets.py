"""AlterShareGroupOffsets, key 91.

Versions: 0.
Behaviour: sets where a share group without members goes on, partition by partition; a group that is not there is made.
NON_EMPTY_GROUP for one with members.
Deviations: none known.
KIPs: 932.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.share_groups import ask_group, begin_states
from headrace.broker.share_service import require_share_groups
from headrace.cores.groups.share_commands import OffsetsAlteration
from headrace.cores.groups.share_offsets import alter_offsets
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import ZERO_ID
from headrace.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)


async def handle(call: Call, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    """Set the start of each partition."""
    group_id = request.group_id
    wanted = {
        topic.topic_name: {one.partition_index: one.start_offset for one in topic.partitions}
        for topic in request.topics
    }
    try:
        require_share_groups(call.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group must have a name.")
        altered: OffsetsAlteration = await ask_group(
            call.broker, group_id, lambda groups, token, _: alter_offsets(groups, group_id, wanted, token)
        )
        errors = dict(altered.errors)
        if altered.begin.start_offsets:
            call.broker.share.partitions.drop_group(group_id)
            # Now: a topic may be deleted while its states are begun.
            known = call.broker.metadata.topics
            names = {known[name].topic_id: name for name in wanted if name in known}
            failed = await begin_states(call.broker, group_id, altered.begin)
            errors |= {
                (names[topic_id], index): error for (topic_id, index), error in failed.items() if topic_id in names
            }
    except KafkaError as error:
        return AlterShareGroupOffsetsResponse(error_code=int(error.code), error_message=error.message)
    return AlterShareGroupOffsetsResponse(
        responses=tuple(_topic(call, name, offsets, errors) for name, offsets in wanted.items())
    )


def _topic(
    call: Call, name: str, offsets: dict[int, int], errors: dict[tuple[str, int], KafkaError]
) -> AlterShareGroupOffsetsResponseTopic:
    topic = call.broker.metadata.topics.get(name)
    partitions = []
    for index in offsets:
        error = errors.get((name, index))
        partitions.append(
            AlterShareGroupOffsetsResponsePartition(
                partition_index=index,
                error_code=0 if error is None else int(error.code),
                error_message=None if error is None else error.message,
            )
        )
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=name, topic_id=ZERO_ID if topic is None else topic.topic_id, partitions=tuple(partitions)
    )


API = Api(key=91, low=0, high=0, handle=handle)
