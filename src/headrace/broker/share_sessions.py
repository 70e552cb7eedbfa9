"""Share sessions (KIP-932): which partitions a member of a share group reads from this broker.

A session belongs to a member on a connection, and its epoch rises with each request, so that a lost or repeated one is
noticed. When it ends, what the member has goes to others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from headrace.net.connection import Connection

    TopicPartition = tuple[UUID, int]

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1

SessionKey = tuple[str, str]
"""Group and member."""


class ShareSession(Struct, eq=False):
    """What one member reads."""

    key: SessionKey
    connection: Connection
    epoch: int = 1
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    """In the order in which they are served."""

    def update(self, added: Iterable[TopicPartition], forgotten: Iterable[TopicPartition]) -> None:
        """Take over what a request changes."""
        self.partitions.update(dict.fromkeys(added))
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def served_last(self, partitions: Iterable[TopicPartition]) -> None:
        """Move partitions that gave something behind the others, so that none starves."""
        for partition in partitions:
            if partition in self.partitions:
                del self.partitions[partition]
                self.partitions[partition] = None


class ShareSessions:
    """All sessions of a broker."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession | None:
        """A member's session."""
        return self._sessions.get(key)

    def open(self, key: SessionKey, connection: Connection, *, sessions_max: int) -> ShareSession:
        """A new session; KafkaError if there are too many."""
        if len(self._sessions) >= sessions_max:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, "The limit of share sessions has been reached.")
        session = ShareSession(key, connection)
        self._sessions[key] = session
        return session

    def resume(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session a request goes on with, moved on by one epoch unless it ends it; KafkaError if there is none."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "The share session was not found.")
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "The share session epoch is invalid.")
        session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        return session

    def close(self, session: ShareSession) -> None:
        """Forget a session."""
        if self._sessions.get(session.key) is session:
            del self._sessions[session.key]

    def is_read(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return any(key[0] == group_id for key in self._sessions)

    def lost(self) -> list[ShareSession]:
        """The sessions whose connection is gone."""
        return [session for session in self._sessions.values() if session.connection.closed]
