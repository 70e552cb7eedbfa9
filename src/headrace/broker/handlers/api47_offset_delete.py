"""OffsetDelete, key 47.

Versions: 0.
Behaviour: forgets a group's offsets of partitions whose topic no member reads (GROUP_SUBSCRIBED_TO_TOPIC otherwise). A
classic group with members that are not consumers refuses as a whole (NON_EMPTY_GROUP): nobody can tell what they read.
Deviations: none known.
KIPs: 496.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.cores.groups.offsets import delete_offsets
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Forget offsets."""
    topics = call.broker.metadata.topics
    places = [
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
        if topic.name in topics and 0 <= partition.partition_index < len(topics[topic.name].partitions)
    ]
    try:
        shard = call.broker.groups.shard_for(request.group_id)
        errors = await shard.ask(
            lambda token, now_ms: delete_offsets(shard.core, request.group_id, places, token, now_ms)
        )
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=int(error.code))
    by_place = dict(zip(places, errors, strict=True))
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=int(
                            by_place.get((topic.name, partition.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                        ),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


API = Api(key=47, low=0, high=0, handle=handle)
