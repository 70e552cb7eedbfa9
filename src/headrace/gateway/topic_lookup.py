"""Which topics and partitions there are, and how large their records may be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.client.admin_values import ConfigResource, ConfigResourceType, PartitionDescription, TopicDescription
from headrace.gateway.problem import PARTITION_NOT_FOUND, TOPIC_NOT_FOUND, Problem
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.client.async_admin import AsyncKafkaAdmin
    from headrace.client.cluster import Cluster

_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
_LIMIT = "max.message.bytes"
_KNOWN_S = 10.0
_KNOWN_MAX = 1000
_CREATION_S = 1.5
"""How long a topic that the cluster makes by itself may take to appear."""
_LOOK_AGAIN_S = 0.05


class ProduceTarget(Struct, frozen=True):
    """What must be known of a topic before the first record goes to it."""

    partitions: int
    record_bytes_max: int | None
    """None if we may not know."""
    looked_up_at: float
    """By the loop's clock."""


class TopicLookup:
    """Looks topics up; what producing needs is kept for a while."""

    def __init__(self, admin: AsyncKafkaAdmin, cluster: Cluster) -> None:
        self._admin = admin
        self._cluster = cluster
        self._targets: dict[str, ProduceTarget] = {}

    async def topic(self, name: str) -> TopicDescription:
        """A topic; Problem(404) if there is none of that name."""
        try:
            (found,) = await self._admin.describe_topics([name])
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise topic_not_found(name) from None
            raise
        return found

    async def partition(self, topic: str, number: int) -> PartitionDescription:
        """A partition; Problem(404) if the topic or the partition is not there."""
        found = await self.topic(topic)
        if number >= len(found.partitions):
            raise partition_not_found(topic, number)
        return found.partitions[number]

    def known_target(self, name: str) -> ProduceTarget | None:
        """What was found the last time."""
        return self._targets.get(name)

    async def target(self, name: str, *, partition: int = -1) -> ProduceTarget:
        """A topic to produce to, which the cluster may make by itself; Problem(404) if it does not.

        Looked up anew if the highest partition that is wanted was not there the last time.
        """
        now = asyncio.get_running_loop().time()
        known = self._targets.get(name)
        if known is not None and now - known.looked_up_at < _KNOWN_S and partition < known.partitions:
            return known
        try:
            topic = await self.topic(name)
        except Problem:
            topic = await self._created(name)
        target = ProduceTarget(len(topic.partitions), await self._limit(name), now)
        if len(self._targets) >= _KNOWN_MAX:
            self._targets.clear()
        self._targets[name] = target
        return target

    async def _created(self, name: str) -> TopicDescription:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CREATION_S
        while True:
            (answer,) = (await self._cluster.metadata([name], create=True)).topics
            if not answer.error_code:
                return await self.topic(name)
            code = ErrorCode(answer.error_code)
            if code not in _UNKNOWN:
                raise KafkaError(code, f"Nothing can be sent to topic '{name}'.")
            if loop.time() > deadline:
                raise topic_not_found(name)
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def configs(self, name: str) -> dict[str, str | None]:
        """A topic's settings."""
        (found,) = await self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
        return {entry.name: entry.value for entry in found.values()}

    async def _limit(self, name: str) -> int | None:
        try:
            limit = (await self.configs(name)).get(_LIMIT)
        except KafkaError:
            # Who may write need not be allowed to see settings; then the broker says what is too large.
            return None
        return None if limit is None else int(limit)


def topic_not_found(name: str) -> Problem:
    """The answer for a topic that is not there."""
    return Problem(404, TOPIC_NOT_FOUND, f"There is no topic '{name[:300]}'.")


def partition_not_found(topic: str, number: int) -> Problem:
    """The answer for a partition that is not there."""
    return Problem(404, PARTITION_NOT_FOUND, f"Topic '{topic}' has no partition {number}.")
