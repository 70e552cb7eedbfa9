"""How many partitions topics have, remembered for a moment: a producer asks for every record."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.gateway.problem import no_topic_name
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

_KNOWN_S = 2.0
_TOPICS_MAX = 10_000


class KnownTopics:
    """Partitions by topic."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, tuple[float, int]] = {}

    async def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has; KafkaError if there is none of this name."""
        now = asyncio.get_running_loop().time()
        known_at, count = self._known.get(topic, (now - _KNOWN_S, 0))
        if now - known_at < _KNOWN_S:
            return count
        self._known.pop(topic, None)
        (found,) = (await self._cluster.metadata((topic,))).topics
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code), refusal(topic, found.error_code))
        if len(self._known) >= _TOPICS_MAX:
            self._known.clear()
        self._known[topic] = (now, len(found.partitions))
        return len(found.partitions)

    def forget(self, topic: str) -> None:
        """Look again the next time."""
        self._known.pop(topic, None)


def refusal(topic: str, code: int) -> str:
    """Why a topic cannot be used, in a sentence."""
    if code == ErrorCode.INVALID_TOPIC_EXCEPTION:
        return no_topic_name(topic)
    return _SENTENCES.get(code, f"Topic '{{}}' cannot be used: {ErrorCode(code).name}.").format(topic[:249])


_SENTENCES: dict[int, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "There is no topic '{}'; GET /topics lists those there are.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic '{}' may not be used.",
}
