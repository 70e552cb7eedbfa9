"""What a broker has for share groups: sessions, the share partitions it leads, and the chores around them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from headrace.broker.share_partitions import SharePartitions
from headrace.broker.share_pruning import prune
from headrace.broker.share_sessions import ShareSessions
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.share_sessions import ShareSession
    from headrace.net.connection import Connection

logger = logging.getLogger(__name__)

FEATURE = "share.version"
SWEEP_S = 1.0
"""How often lost connections are looked for while there are sessions."""


class ShareService:
    """Share groups on one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.sessions = ShareSessions()
        self.partitions = SharePartitions(broker)
        self._is_sweeping = False
        self._is_pruning = False

    def open_session(self, group_id: str, member_id: str, connection: Connection) -> ShareSession:
        """A new session of a member; KafkaError if there are too many."""
        limit: int = self._broker.config["group.share.max.share.sessions"]
        session = self.sessions.open((group_id, member_id), connection, sessions_max=limit)
        self._sweep_later()
        self._prune_later()
        return session

    async def close_session(self, session: ShareSession) -> dict[tuple[object, int], KafkaError]:
        """End a session: what its member has is free again; tells where that could not be written down."""
        self.sessions.close(session)
        group_id, member_id = session.key
        errors: dict[tuple[object, int], KafkaError] = {}
        for topic_id, index in session.partitions:
            leader = self.partitions.find((group_id, topic_id, index))
            if leader is not None:
                try:
                    await leader.release(member_id)
                except KafkaError as error:
                    errors[topic_id, index] = error
        if not self.sessions.is_read(group_id):
            self.partitions.drop_group(group_id)
        return errors

    # --- chores

    def _sweep_later(self) -> None:
        if not self._is_sweeping:
            self._is_sweeping = True
            asyncio.get_running_loop().call_later(SWEEP_S, self.sweep)

    def sweep(self) -> None:
        """End the sessions of connections that are gone."""
        self._is_sweeping = False
        for session in self.sessions.lost():
            self.sessions.close(session)
            self._broker.spawn(self.close_session(session))
        if len(self.sessions):
            self._sweep_later()

    def _prune_later(self) -> None:
        if not self._is_pruning:
            self._is_pruning = True
            interval_ms: int = self._broker.config["share.coordinator.state.topic.prune.interval.ms"]
            asyncio.get_running_loop().call_later(interval_ms / 1000, self._prune)

    def _prune(self) -> None:
        self._is_pruning = False
        self._broker.spawn(prune(self._broker))
        if len(self.sessions):
            self._prune_later()


_services: WeakKeyDictionary[Broker, ShareService] = WeakKeyDictionary()


def share_service(broker: Broker) -> ShareService:
    """The share groups of a broker."""
    service = _services.get(broker)
    if service is None:
        service = ShareService(broker)
        _services[broker] = service
    return service


def require_share_groups(broker: Broker) -> None:
    """KafkaError unless the cluster has share groups switched on (feature `share.version`)."""
    if broker.metadata.features.get(FEATURE, 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported.")
