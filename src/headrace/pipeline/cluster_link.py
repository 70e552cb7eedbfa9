"""The runner's own way to the cluster: is it there, where do groups stand, and records about the progress.

Spark's readers and writers have connections of their own. What is asked here never holds a query up: it fails within a
few seconds, and the runner tries again the next time it looks.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.client.admin_values import BROKER_DEFAULT, NewTopic
from headrace.client.async_admin import AsyncKafkaAdmin
from headrace.client.loop_thread import LoopThread
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.pipeline.declaration import Pipeline, Source
from headrace.pipeline.progress import Positions
from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_PATIENCE_MS = 5000
_PRODUCE, _NAMES_LAST = 0, 12
_EARLIEST = -2
_OURS = ("security.", "sasl.", "ssl.")
"""Which client settings concern a connection; the others are for Spark's readers and writers."""


class ClusterLink:
    """A connection that may come and go."""

    def __init__(self, brokers: str, properties: Mapping[str, str]) -> None:
        self.brokers = brokers
        bare = {name.removeprefix("kafka."): text for name, text in properties.items()}
        config = {
            "bootstrap.servers": brokers,
            "client.id": "headrace-pipeline",
            "request.timeout.ms": str(_PATIENCE_MS),
            **{name: text for name, text in bare.items() if name.startswith(_OURS)},
        }
        self._admin = _Admin(config=config)
        self._loop = LoopThread()

    def close(self) -> None:
        """Hang up."""
        self._loop.run(self._admin.close())
        self._loop.end()

    def topics(self) -> list[str]:
        """The names of all topics; ClientFault if nobody answers."""
        return self._loop.run(self._admin.list_topics())

    def create(self, topics: Mapping[str, int]) -> None:
        """Create topics with so many partitions, -1 for as many as the broker likes; others may be faster."""
        for name, partitions in topics.items():
            try:
                self._loop.run(self._admin.create_topics([NewTopic(name, partitions)]))
            except KafkaError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

    def commit(self, group: str, positions: Positions) -> None:
        """Let a consumer group show how far a source is processed."""
        offsets = {TopicPartition(topic, number): offset for (topic, number), offset in positions.items()}
        self._loop.run(self._admin.alter_group_offsets(group, offsets))

    def ends(self, places: Iterable[tuple[str, int]]) -> Positions:
        """Where partitions end now, for those who read what is committed."""
        wanted = {TopicPartition(*place): "latest" for place in places}
        found = self._loop.run(self._admin.list_offsets(wanted, "read_committed"))
        return {(place.topic, place.partition): end.offset for place, end in found.items()}

    def starts_of(self, source: Source) -> str:
        """Where a source's group stands, as starting offsets; partitions it never had begin at their beginning."""
        return self._loop.run(self._starts_of(source))

    async def _starts_of(self, source: Source) -> str:
        names = [name for name in await self._admin.list_topics() if is_read_by(source, name)]
        committed = await self._admin.list_group_offsets(source.group)
        starts: dict[str, dict[str, int]] = {}
        for topic in await self._admin.describe_topics(names):
            for part in topic.partitions:
                known = committed.get(TopicPartition(topic.name, part.partition))
                starts.setdefault(topic.name, {})[str(part.partition)] = known.offset if known else _EARLIEST
        return json.dumps(starts)

    def publish(self, topic: str, documents: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Write documents to a topic, each with its key; the topic comes into being with the first."""
        now_ms = int(time.time() * 1000)
        records = [NewRecord(now_ms, key.encode(), json.dumps(value).encode()) for key, value in documents]
        self._loop.run(self._admin.publish(topic, bytes(build_batch(records))))


class _Admin(AsyncKafkaAdmin):
    """An admin client that writes a few records too, so that no second client is needed for them."""

    async def publish(self, topic: str, batch: bytes) -> None:
        """Write a batch to the topic's first partition: those who read it want its order."""

        async def attempt() -> None:
            (found,) = (await self._cluster.metadata([topic], create=True)).topics
            if found.error_code or not found.partitions:
                # A topic that is just being made has no leader yet; that passes.
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
            leader = min(found.partitions, key=lambda one: int(one.partition_index))
            channel = await self._cluster.channel_to(leader.leader_id)
            part = PartitionProduceData(index=leader.partition_index, records=batch)
            request = ProduceRequest(
                acks=-1,
                timeout_ms=_PATIENCE_MS,
                topic_data=(TopicProduceData(name=topic, partition_data=(part,)),),
            )
            version = channel.version_of(_PRODUCE, at_most=_NAMES_LAST)
            answer = await channel.ask(_PRODUCE, request, version=version)
            code = answer.responses[0].partition_responses[0].error_code
            if code:
                raise KafkaError(ErrorCode(code))

        await self._cluster.persist(attempt)


def written_by(pipeline: Pipeline) -> dict[str, int]:
    """The topics a pipeline writes to, with the partitions they get if they are not there yet."""
    found = {sink.target: BROKER_DEFAULT for sink in pipeline.sinks.values() if sink.kind == "topic"}
    letters = [source.dead_letter for source in pipeline.sources.values() if source.has_dead_letters]
    found |= dict.fromkeys(letters, BROKER_DEFAULT)
    return found | ({pipeline.progress_topic: 1} if pipeline.progress_topic else {})


def is_read_by(source: Source, topic: str) -> bool:
    """Whether a source reads this topic."""
    return bool(re.fullmatch(source.pattern, topic)) if source.pattern else topic in source.topics
