"""What a broker has for share groups: sessions, the share partitions it leads, and the chores around them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

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
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._prune_timer: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()

    def open_session(self, group_id: str, member_id: str, connection: Connection) -> ShareSession:
        """A new session of a member; KafkaError if there are too many."""
        limit: int = self._broker.config["group.share.max.share.sessions"]
        session = self.sessions.open((group_id, member_id), connection, sessions_max=limit)
        self._sweep_later()
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

    # --- the end

    @property
    def is_stopped(self) -> bool:
        """Whether nobody is to wait for records any more."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Let those who wait for records go at once, and leave no chore behind."""
        self._stopped.set()
        for timer in (self._sweep_timer, self._prune_timer):
            if timer is not None:
                timer.cancel()
        self.partitions.drop_all()

    async def pause(self, seconds: float) -> None:
        """Let some time pass, or less if this ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    # --- chores

    def _sweep_later(self) -> None:
        if self._sweep_timer is None and not self.is_stopped:
            self._sweep_timer = asyncio.get_running_loop().call_later(SWEEP_S, self.sweep)

    def sweep(self) -> None:
        """End the sessions of connections that are gone."""
        self._sweep_timer = None
        for session in self.sessions.lost():
            self.sessions.close(session)
            self._broker.spawn(self.close_session(session))
        if len(self.sessions):
            self._sweep_later()

    def prune_later(self) -> None:
        """Something was written to the share coordinator's log here: look in a while whether it has grown long."""
        if self._prune_timer is None and not self.is_stopped:
            interval_ms: int = self._broker.config["share.coordinator.state.topic.prune.interval.ms"]
            self._prune_timer = asyncio.get_running_loop().call_later(interval_ms / 1000, self._prune)

    def _prune(self) -> None:
        self._prune_timer = None
        self._broker.spawn(prune(self._broker))


def require_share_groups(broker: Broker) -> None:
    """KafkaError unless the cluster has share groups switched on (feature `share.version`)."""
    if broker.metadata.features.get(FEATURE, 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported.")
