"""Topics that coordinators need: asked for from the active controller, and awaited until this broker knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.broker.broker import Broker
    from headrace.wire.messages.create_topics import CreateTopicsResponse

CREATE_TOPICS = 19
KNOWN_AWAITED_S = 10.0
"""How long a topic that was created may take to be known here."""


def creatable(name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> CreatableTopic:
    """A topic as CreateTopics asks for it."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.items()),
    )


async def create_topics(broker: Broker, topics: Sequence[CreatableTopic]) -> dict[str, KafkaError]:
    """Have topics created, if nobody has yet, and wait until they are known here; why each could not be, by name."""
    timeout_ms: int = broker.config["request.timeout.ms"]
    request = CreateTopicsRequest(topics=tuple(topics), timeout_ms=timeout_ms)
    try:
        response: CreateTopicsResponse = await broker.control.ask(CREATE_TOPICS, request)
    except KafkaError as error:
        return {topic.name: error for topic in topics}
    faults: dict[str, KafkaError] = {}
    for result in response.topics:
        code = ErrorCode(result.error_code)
        if code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
            faults[result.name] = KafkaError(code, result.error_message or "")
    made = [topic.name for topic in topics if topic.name not in faults]
    try:
        await broker.until(lambda metadata: all(name in metadata.topics for name in made), KNOWN_AWAITED_S)
    except KafkaError as error:
        faults |= {name: error for name in made if name not in broker.metadata.topics}
    return faults
