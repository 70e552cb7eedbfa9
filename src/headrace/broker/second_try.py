"""What a client is answered whose request was put to a controller twice, because the first try was not answered.

A controller may be lost between deciding something and telling of it. The broker that handed the request on then asks
the next controller; if the first try was committed, that one refuses what is done already, and the client would take
its own success for a failure. So the broker remembers what it knew of the topics when the request came: of a topic that
was not there then, and is there now as it was asked for, the client is told that it was created; likewise of one that
is gone, or has grown to the size that was asked for.

Kafka's brokers try again too, and give the client the second answer (TOPIC_ALREADY_EXISTS). Here two clients who ask
for the very same while the controller is lost may both be told that they succeeded; nobody is told of a failure that
was none. Where there was no second try, answers are left as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from headrace.cores.metadata import RESOURCE_TOPIC
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from headrace.broker.api import Call
    from headrace.cores.metadata import Metadata, Topic
    from headrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
    from headrace.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

KNOWN_AWAITED_S = 5.0
"""How long what a controller knows may take to be known here."""


class Memory(Protocol):
    """What was known before the first try, and what it makes of a later answer."""

    async def settle(self, call: Call, response: Any) -> Any:
        """The answer for the client."""


def remember(api_key: int, request: Any, metadata: Metadata) -> Memory | None:
    """What to keep in mind while a request is tried; None if a second try of it does no harm."""
    kind = _KINDS.get(api_key)
    return None if kind is None or getattr(request, "validate_only", False) else kind(request, metadata)


async def _holds(call: Call, condition: Callable[[Metadata], bool]) -> bool:
    """Whether this broker's metadata comes to say something."""
    try:
        await call.broker.until(condition, KNOWN_AWAITED_S)
    except KafkaError:
        return False
    return True


class _Creation:
    """Topics that were not there."""

    def __init__(self, request: CreateTopicsRequest, metadata: Metadata) -> None:
        self._missing = {topic.name: topic for topic in request.topics if topic.name not in metadata.topics}

    async def settle(self, call: Call, response: CreateTopicsResponse) -> CreateTopicsResponse:
        """Tell of those that are there now as if this answer had made them."""
        from headrace.broker.handlers.api19_create_topics import result_of  # noqa: PLC0415 - a start need not wait

        results = []
        for result in response.topics:
            asked = self._missing.get(result.name)
            is_there = result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
            if asked is not None and is_there and await self._is_made(call, asked):
                results.append(result_of(call, call.broker.metadata.topics[asked.name]))
            else:
                results.append(result)
        return replace(response, topics=tuple(results))

    async def _is_made(self, call: Call, asked: CreatableTopic) -> bool:
        if not await _holds(call, lambda metadata: asked.name in metadata.topics):
            return False
        metadata = call.broker.metadata
        configs = {config.name: config.value for config in asked.configs}
        has_configs = configs == metadata.configs(RESOURCE_TOPIC, asked.name)
        return has_configs and _has_shape(metadata.topics[asked.name], asked)


def _has_shape(topic: Topic, asked: CreatableTopic) -> bool:
    if asked.assignments:
        wanted = {placed.partition_index: tuple(placed.broker_ids) for placed in asked.assignments}
        return wanted == {state.index: tuple(state.replicas) for state in topic.partitions}
    copies = len(topic.partitions[0].replicas)
    return asked.num_partitions in {-1, len(topic.partitions)} and asked.replication_factor in {-1, copies}


class _Deletion:
    """Topics that were there."""

    def __init__(self, request: DeleteTopicsRequest, metadata: Metadata) -> None:
        named = {*request.topic_names, *(topic.name for topic in request.topics)}
        self._names = {name: metadata.topics[name].topic_id for name in named if name in metadata.topics}
        ids = {topic.topic_id for topic in request.topics}
        self._ids = {one: metadata.topics_by_id[one].name for one in ids if one in metadata.topics_by_id}

    async def settle(self, call: Call, response: DeleteTopicsResponse) -> DeleteTopicsResponse:
        """Tell of those that are gone now as if this answer had deleted them."""
        return replace(response, responses=tuple(map(self._mended, response.responses)))

    def _mended(self, result: DeletableTopicResult) -> DeletableTopicResult:
        name, topic_id = result.name, result.topic_id
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and name in self._names:
            return _deleted(result, name, self._names[name])
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_ID and topic_id in self._ids:
            return _deleted(result, self._ids[topic_id], topic_id)
        return result


def _deleted(result: DeletableTopicResult, name: str | None, topic_id: UUID) -> DeletableTopicResult:
    return replace(result, name=name, topic_id=topic_id, error_code=0, error_message=None)


class _Growth:
    """Topics that had fewer partitions than they were to have."""

    def __init__(self, request: CreatePartitionsRequest, metadata: Metadata) -> None:
        self._wanted = {
            topic.name: topic.count
            for topic in request.topics
            if topic.name in metadata.topics and len(metadata.topics[topic.name].partitions) < topic.count
        }

    async def settle(self, call: Call, response: CreatePartitionsResponse) -> CreatePartitionsResponse:
        """Tell of those that have the right size now as if this answer had given it to them."""
        results = []
        for result in response.results:
            refused = result.error_code == ErrorCode.INVALID_PARTITIONS and result.name in self._wanted
            if refused and await self._has_grown(call, result.name):
                results.append(replace(result, error_code=0, error_message=None))
            else:
                results.append(result)
        return replace(response, results=tuple(results))

    async def _has_grown(self, call: Call, name: str) -> bool:
        count = self._wanted[name]
        return await _holds(
            call, lambda metadata: name in metadata.topics and len(metadata.topics[name].partitions) == count
        )


_KINDS: dict[int, type[_Creation | _Deletion | _Growth]] = {19: _Creation, 20: _Deletion, 37: _Growth}
