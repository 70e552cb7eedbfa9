"""DeleteShareGroupOffsets, key 92.

Versions: 0.
Behaviour: makes a share group without members forget what it has read of some topics. NON_EMPTY_GROUP for one with
members, GROUP_ID_NOT_FOUND for one that is not there, UNKNOWN_TOPIC_OR_PARTITION for a topic it never read.
Deviations: none known.
KIPs: 932.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.share_groups import ask_group, forget_states
from headrace.broker.share_service import require_share_groups
from headrace.cores.groups.share_commands import OffsetsDeletion
from headrace.cores.groups.share_offsets import delete_offsets, offsets_deleted
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import ZERO_ID
from headrace.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


async def handle(call: Call, request: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse:
    """Forget each topic."""
    group_id = request.group_id
    names = [topic.topic_name for topic in request.topics]
    try:
        require_share_groups(call.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group must have a name.")
        deletion: OffsetsDeletion = await ask_group(
            call.broker, group_id, lambda groups, token, _: delete_offsets(groups, group_id, names, token)
        )
        errors = dict(deletion.errors)
        failed = await forget_states(call.broker, group_id, deletion.partitions)
        done = [topic_id for topic_id in deletion.partitions if topic_id not in failed]
        if done:
            await ask_group(
                call.broker, group_id, lambda groups, token, _: offsets_deleted(groups, group_id, done, token)
            )
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=int(error.code), error_message=error.message)
    known = call.broker.metadata.topics_by_id
    errors |= {known[topic_id].name: error for topic_id, error in failed.items() if topic_id in known}
    return DeleteShareGroupOffsetsResponse(responses=tuple(_topic(call, name, errors.get(name)) for name in names))


def _topic(call: Call, name: str, error: KafkaError | None) -> DeleteShareGroupOffsetsResponseTopic:
    topic = call.broker.metadata.topics.get(name)
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=ZERO_ID if topic is None else topic.topic_id,
        error_code=0 if error is None else int(error.code),
        error_message=None if error is None else error.message,
    )


API = Api(key=92, low=0, high=0, handle=handle)
