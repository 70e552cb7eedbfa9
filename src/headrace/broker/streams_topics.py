"""The internal topics of streams applications: repartition topics and changelogs, made for them by the coordinator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.topic_defaults import topic_defaults
from headrace.cores.controller import NewTopic, create_topics
from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.topic import validate_topic_overrides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.broker.broker import Broker
    from headrace.model.streams_group_records import TopicInfo

DEFAULT_REPLICATION_FACTOR = -1


async def create_internal_topics(broker: Broker, topics: Sequence[TopicInfo]) -> dict[str, KafkaError]:
    """Create topics with the settings an application wants; the reason for each that could not be created.

    Two members may ask for the same at once: what somebody else has created meanwhile is there.
    """
    command = partial(
        create_topics,
        wanted=[_new_topic(broker, topic) for topic in topics],
        brokers=broker.live_brokers,
        defaults=topic_defaults(broker.config),
    )
    try:
        results = await broker.controller.run(command)
    except KafkaError as error:
        return {topic.name: error for topic in topics}
    return {
        name: result
        for name, result in results.items()
        if isinstance(result, KafkaError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS
    }


def _new_topic(broker: Broker, topic: TopicInfo) -> NewTopic:
    configs = {config.key: config.value for config in topic.topic_configs}
    fault = None
    try:
        validate_topic_overrides(configs, broker.config)
    except KafkaError as error:
        fault = error
    return NewTopic(
        name=topic.name,
        topic_id=broker.new_uuid(),
        partitions=topic.partitions,
        replication_factor=topic.replication_factor or DEFAULT_REPLICATION_FACTOR,
        configs=configs,
        config_fault=fault,
    )
