"""Topics that come to be because somebody asked for them (`auto.create.topics.enable`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.controller import PARTITIONS_PER_REQUEST_MAX
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.broker.broker import Broker

CREATE_TOPICS = 19
KNOWN_AWAITED_S = 5.0
"""How long a topic that was created may take to be known here; a client asks again anyway."""


async def create_missing(broker: Broker, names: Sequence[str]) -> dict[str, ErrorCode]:
    """Have topics created with the defaults; gives the reason for each that could not be.

    Coordinators make their own topics, in their own shape: asking for one does not.
    """
    errors = dict.fromkeys(INTERNAL_TOPICS.intersection(names), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    asked = [name for name in dict.fromkeys(names) if name not in errors]
    if len(asked) > PARTITIONS_PER_REQUEST_MAX:
        return errors | dict.fromkeys(asked, ErrorCode.POLICY_VIOLATION)
    try:
        made = await _create(broker, asked)
        there = [name for name in asked if made[name] in _THERE]
        await broker.until(lambda metadata: all(name in metadata.topics for name in there), KNOWN_AWAITED_S)
    except KafkaError as error:
        return errors | dict.fromkeys(asked, error.code)
    return errors | {name: code for name, code in made.items() if code is not ErrorCode.NONE}


_THERE = frozenset({ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS})


async def _create(broker: Broker, names: Sequence[str]) -> dict[str, ErrorCode]:
    if not names:
        return {}
    config = broker.config
    request = CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=name,
                num_partitions=config["num.partitions"],
                replication_factor=config["default.replication.factor"],
            )
            for name in names
        ),
        timeout_ms=config["request.timeout.ms"],
    )
    answer: CreateTopicsResponse = await broker.control.ask(CREATE_TOPICS, request)
    return {topic.name: ErrorCode(topic.error_code) for topic in answer.topics}
