"""The internal topics of streams applications: repartition topics and changelogs, made for them by the coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.coordinators.topic_creation import creatable, create_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.broker.broker import Broker
    from headrace.model.errors import KafkaError
    from headrace.model.streams_group_records import TopicInfo

DEFAULT_REPLICATION_FACTOR = -1


async def create_internal_topics(broker: Broker, topics: Sequence[TopicInfo]) -> dict[str, KafkaError]:
    """Create topics with the settings an application wants; the reason for each that could not be created.

    Two members may ask for the same at once: what somebody else has created meanwhile is there.
    """
    wanted = [
        creatable(
            topic.name,
            topic.partitions,
            topic.replication_factor or DEFAULT_REPLICATION_FACTOR,
            {config.key: config.value for config in topic.topic_configs},
        )
        for topic in topics
    ]
    return await create_topics(broker, wanted)
