"""Who was heard of when: the part of a controller's knowledge that is in no record and is lost with it.

A new active controller takes every registered broker for alive, and gives it a whole session to prove it.
"""

from __future__ import annotations

from headrace.cores.metadata import Metadata

NO_OFFSET = -1


class Session:
    """What a broker last said."""

    __slots__ = ("broker_epoch", "contact_ms", "is_fenced", "metadata_offset", "shutdown_offset")

    def __init__(self, *, broker_epoch: int, contact_ms: int, is_fenced: bool) -> None:
        self.broker_epoch = broker_epoch
        self.contact_ms: int | None = contact_ms
        """When it was last heard of; None if it ended its session, or it ran out."""
        self.is_fenced = is_fenced
        self.metadata_offset = NO_OFFSET
        """How far it has taken over the metadata."""
        self.shutdown_offset = NO_OFFSET
        """Once it asked to stop: where the log ended that moved its leaders away."""

    @property
    def is_shutting_down(self) -> bool:
        """Whether it waits for others to take over before it stops."""
        return self.shutdown_offset != NO_OFFSET

    @property
    def is_active(self) -> bool:
        """Whether clients may look to it for where leaders are."""
        return not self.is_fenced and not self.is_shutting_down


class Liveness:
    """The sessions of the registered brokers, as the active controller knows them."""

    __slots__ = ("_sessions", "session_timeout_ms")

    def __init__(self, metadata: Metadata, *, session_timeout_ms: int, now_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, Session] = {}
        for broker_id, broker in metadata.brokers.items():
            self.begin(broker_id, broker_epoch=broker.broker_epoch, is_fenced=broker.fenced, now_ms=now_ms)

    def begin(self, broker_id: int, *, broker_epoch: int, is_fenced: bool, now_ms: int) -> Session:
        """A broker registered."""
        session = Session(broker_epoch=broker_epoch, contact_ms=now_ms, is_fenced=is_fenced)
        self._sessions[broker_id] = session
        return session

    def session(self, broker_id: int) -> Session:
        """The session of a registered broker."""
        return self._sessions[broker_id]

    def touch(self, broker_id: int, *, is_fenced: bool, metadata_offset: int, now_ms: int) -> None:
        """A broker was heard of."""
        session = self._sessions[broker_id]
        session.contact_ms = now_ms
        session.metadata_offset = metadata_offset
        session.is_fenced = is_fenced
        if is_fenced:
            session.shutdown_offset = NO_OFFSET

    def end(self, broker_id: int) -> None:
        """A broker is fenced, and nothing is expected of it."""
        session = self._sessions[broker_id]
        session.contact_ms = None
        session.is_fenced = True
        session.shutdown_offset = NO_OFFSET

    def lose(self, broker_id: int) -> None:
        """A broker that serves is known to be dead: its session is over, unless it is heard before it is fenced."""
        if broker_id in self._sessions:
            self._sessions[broker_id].contact_ms = None

    def forget(self, broker_id: int) -> None:
        """A broker left the cluster."""
        self._sessions.pop(broker_id, None)

    def is_alive(self, broker_id: int, *, broker_epoch: int, now_ms: int) -> bool:
        """Whether a broker was heard of within its session."""
        session = self._sessions.get(broker_id)
        return session is not None and session.broker_epoch == broker_epoch and not self._is_over(session, now_ms)

    def stale(self, now_ms: int) -> list[int]:
        """Brokers that serve and have not been heard of for a whole session, the longest silent first."""
        silent = [
            (session.contact_ms or 0, broker_id)
            for broker_id, session in self._sessions.items()
            if not session.is_fenced and self._is_over(session, now_ms)
        ]
        return [broker_id for _, broker_id in sorted(silent)]

    def next_check_ms(self) -> int | None:
        """When the next session runs out if nothing is heard; None if no broker serves."""
        contacts = [s.contact_ms for s in self._sessions.values() if not s.is_fenced and s.contact_ms is not None]
        return min(contacts) + self.session_timeout_ms + 1 if contacts else None

    def lowest_active_offset(self) -> int | None:
        """How far every broker that serves has taken over the metadata; None if none serves."""
        return min((s.metadata_offset for s in self._sessions.values() if s.is_active), default=None)

    def _is_over(self, session: Session, now_ms: int) -> bool:
        return session.contact_ms is None or session.contact_ms + self.session_timeout_ms < now_ms
