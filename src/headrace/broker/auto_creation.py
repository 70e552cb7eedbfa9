"""Topics that come to be because somebody asked for them (`auto.create.topics.enable`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.topic_defaults import topic_defaults
from headrace.cores.controller import PARTITIONS_PER_REQUEST_MAX, NewTopic, create_topics
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.broker.broker import Broker


async def create_missing(broker: Broker, names: Sequence[str]) -> dict[str, ErrorCode]:
    """Create topics with the broker's defaults; gives the reason for each that could not be created.

    Coordinators make their own topics, in their own shape: asking for one does not.
    """
    errors = dict.fromkeys(INTERNAL_TOPICS.intersection(names), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    asked = [name for name in dict.fromkeys(names) if name not in errors]
    if len(asked) > PARTITIONS_PER_REQUEST_MAX:
        return errors | dict.fromkeys(asked, ErrorCode.POLICY_VIOLATION)
    wanted = [NewTopic(name=name, topic_id=broker.new_uuid()) for name in asked]
    command = partial(create_topics, wanted=wanted, brokers=broker.live_brokers, defaults=topic_defaults(broker.config))
    try:
        results = await broker.controller.run(command)
    except KafkaError as error:
        return errors | dict.fromkeys(asked, error.code)
    return errors | {name: result.code for name, result in results.items() if isinstance(result, KafkaError)}
