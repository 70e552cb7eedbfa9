"""A follower's side of a fetch session (KIP-227): what the leader knows of what we ask, so that only news is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.cores.fetch_sessions import INITIAL_EPOCH
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headrace.cores.replication.messages import FetchPosition

Key = tuple[UUID, int]
"""A partition: the id of its topic, and its number."""

_EPOCH_MAX = 2**31 - 1


class ReplicaSession:
    """What one leader was told, over one link."""

    __slots__ = ("_epoch", "_id", "_told")

    def __init__(self) -> None:
        self._id = 0
        self._epoch = INITIAL_EPOCH
        self._told: dict[Key, FetchPosition] = {}

    def reset(self) -> None:
        """Begin anew: the leader may not have heard what was sent last, or has forgotten it."""
        self._epoch = INITIAL_EPOCH
        self._told = {}

    def request(
        self,
        open_questions: Mapping[Key, FetchPosition],
        *,
        replica: ReplicaState,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        partition_max_bytes: int,
    ) -> FetchRequest:
        """The request that makes the leader know all open questions and no others."""
        told = self._told
        news = {key: asked for key, asked in open_questions.items() if told.get(key) != asked}
        forgotten = [key for key in told if key not in open_questions]
        self._told = dict(open_questions)
        return FetchRequest(
            replica_state=replica,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=_topics(news, partition_max_bytes),
            forgotten_topics_data=_forgotten(forgotten),
        )

    def answered(self, session_id: int) -> None:
        """The leader answered; 0 says that it keeps no session, so that all has to be said again next time."""
        if session_id == 0:
            self._id = 0
            self.reset()
        elif self._epoch == INITIAL_EPOCH:
            self._id, self._epoch = session_id, INITIAL_EPOCH + 1
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1


def _topics(news: Mapping[Key, FetchPosition], partition_max_bytes: int) -> tuple[FetchTopic, ...]:
    by_topic: dict[UUID, list[FetchPartition]] = {}
    for (topic_id, index), asked in news.items():
        by_topic.setdefault(topic_id, []).append(
            FetchPartition(
                partition=index,
                current_leader_epoch=asked.leader_epoch,
                fetch_offset=asked.offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
                partition_max_bytes=partition_max_bytes,
            )
        )
    return tuple(FetchTopic(topic_id=topic_id, partitions=tuple(rows)) for topic_id, rows in by_topic.items())


def _forgotten(keys: Iterable[Key]) -> tuple[ForgottenTopic, ...]:
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, index in keys:
        by_topic.setdefault(topic_id, []).append(index)
    return tuple(ForgottenTopic(topic_id=topic_id, partitions=tuple(rows)) for topic_id, rows in by_topic.items())
