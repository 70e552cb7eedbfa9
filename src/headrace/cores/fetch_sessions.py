"""Fetch sessions (KIP-227): what a consumer asked for last time, so that it only says, and hears, what changed.

The cache decides which partitions a request means and which of them belong in the answer; reading them is the
shell's part.
A session is known by a random positive id and an epoch that rises with each request, so that a lost or repeated
request is noticed.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

from msgspec import Struct

from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1
_EVICT_AFTER_MS = 120_000
"""A session unused for this long gives its place to a new one when the cache is full."""

TopicKey = str | UUID
Asked = TypeVar("Asked")


class CachedPartition(Generic[Asked]):
    """One partition of a session: what was asked, and what was last answered."""

    __slots__ = ("asked", "high_watermark", "log_start_offset", "partition", "topic")

    def __init__(self, topic: TopicKey, partition: int, asked: Asked) -> None:
        self.topic = topic
        self.partition = partition
        self.asked = asked
        self.high_watermark = -1
        self.log_start_offset = -1

    def changed(self, *, high_watermark: int, log_start_offset: int, must_tell: bool) -> bool:
        """Whether the answer for this partition differs from the last one; remembers it as told."""
        differs = must_tell or high_watermark != self.high_watermark or log_start_offset != self.log_start_offset
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        return differs

    def forget_answer(self) -> None:
        """Make sure the partition is told next time: its last answer was an error."""
        self.high_watermark = -1


class FetchSession(Struct, Generic[Asked]):
    """The partitions one client follows, in the order they are served."""

    session_id: int
    epoch: int
    partitions: dict[tuple[TopicKey, int], CachedPartition[Asked]]
    used_ms: int

    def update(self, asked: Iterable[tuple[TopicKey, int, Asked]], forgotten: Iterable[tuple[TopicKey, int]]) -> None:
        """Take over what an incremental request changes."""
        for topic, partition, wish in asked:
            cached = self.partitions.get((topic, partition))
            if cached is None:
                self.partitions[topic, partition] = CachedPartition(topic, partition, wish)
            else:
                cached.asked = wish
        for key in forgotten:
            self.partitions.pop(key, None)

    def served_last(self, keys: Iterable[tuple[TopicKey, int]]) -> None:
        """Move partitions that got data behind the others, so that none starves."""
        for key in keys:
            cached = self.partitions.pop(key, None)
            if cached is not None:
                self.partitions[key] = cached


class FetchSessions(Generic[Asked]):
    """All sessions of a broker, at most `slots_max`."""

    def __init__(self, slots_max: int) -> None:
        self._slots_max = slots_max
        self._sessions: OrderedDict[int, FetchSession[Asked]] = OrderedDict()
        """Least recently used first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, asked: Iterable[tuple[TopicKey, int, Asked]], *, session_id: int, now_ms: int
    ) -> FetchSession[Asked] | None:
        """A new session under a fresh id, or None where there is no room: the client then fetches in full."""
        if session_id in self._sessions or not self._make_room(now_ms):
            return None
        partitions = {(topic, index): CachedPartition(topic, index, wish) for topic, index, wish in asked}
        if not partitions:
            return None
        session = FetchSession(session_id, 1, partitions, now_ms)
        self._sessions[session_id] = session
        return session

    def _make_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._slots_max:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms < _EVICT_AFTER_MS:
            return False
        del self._sessions[oldest.session_id]
        return True

    def resume(self, session_id: int, epoch: int, now_ms: int) -> FetchSession[Asked] | ErrorCode:
        """The session an incremental request continues, moved on by one epoch, or why it cannot be."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session_id)
        return session

    def close(self, session_id: int) -> None:
        """Drop a session its client has ended."""
        self._sessions.pop(session_id, None)
