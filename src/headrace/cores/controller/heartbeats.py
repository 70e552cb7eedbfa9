"""63 BrokerHeartbeat, and brokers whose sessions ran out.

    FENCED               has caught up, and wants to serve               -> UNFENCED
    FENCED               wants to stop                                   -> SHUTDOWN_NOW
    UNFENCED             wants to be fenced                              -> FENCED
    UNFENCED             wants to stop, and leads partitions             -> CONTROLLED_SHUTDOWN
    UNFENCED             wants to stop, and leads none                   -> SHUTDOWN_NOW
    CONTROLLED_SHUTDOWN  leads none, and whoever serves knows it         -> SHUTDOWN_NOW
    whoever serves       lost all its log dirs, or was silent too long   -> FENCED

SHUTDOWN_NOW is fenced too: the broker is told to go, and its session ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from uuid import UUID

from msgspec import Struct

from headrace.cores.controller.broker_changes import fenced, shutting_down, unfenced
from headrace.cores.controller.broker_epochs import check_broker_epoch
from headrace.cores.controller.directories import directories_offline, newly_offline
from headrace.cores.controller.liveness import NO_OFFSET, Liveness, Session
from headrace.cores.controller.outcome import Outcome
from headrace.cores.controller.policy import DEFAULT_POLICY, Policy
from headrace.cores.metadata import Metadata
from headrace.model.metadata_records import MetadataRecord, RegisterBrokerRecord


class BrokerState(Enum):
    """Where a broker is in its life, as the controller sees it."""

    FENCED = "registered, and not serving"
    UNFENCED = "serving"
    CONTROLLED_SHUTDOWN = "on its way out: its leaders move away"
    SHUTDOWN_NOW = "may go"


class Heartbeat(Struct, frozen=True, kw_only=True):
    """What a broker says of itself."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    """How far it has taken over the metadata."""
    wants_fence: bool = False
    wants_shutdown: bool = False
    offline_log_dirs: Sequence[UUID] = ()


class HeartbeatReply(Struct, frozen=True, kw_only=True):
    """What the broker is to make of it."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


def heartbeat(
    metadata: Metadata,
    liveness: Liveness,
    beat: Heartbeat,
    *,
    next_offset: int,
    now_ms: int,
    policy: Policy = DEFAULT_POLICY,
) -> Outcome[HeartbeatReply]:
    """Take note of a broker's heartbeat, and move it on if it can; `next_offset` is where the records begin."""
    broker = check_broker_epoch(metadata, beat.broker_id, beat.broker_epoch)
    session = liveness.session(beat.broker_id)
    before = _state(session)
    after = _next_state(metadata, liveness, session, broker, beat)
    lost = newly_offline(broker, beat.offline_log_dirs)
    if (
        lost
        and after is not BrokerState.SHUTDOWN_NOW
        and (before is BrokerState.FENCED or len(lost) == len(broker.log_dirs))
    ):
        # First it is known which log dirs are gone: a leader in one of them is no leader. If all are, nothing is left.
        after = BrokerState.FENCED
    records = list(_RECORDS[before, after](metadata, broker, policy)) if (before, after) in _RECORDS else []
    records += directories_offline(metadata, broker, lost, policy, moves_leaders=not records)
    is_fenced = after in {BrokerState.FENCED, BrokerState.SHUTDOWN_NOW}
    liveness.touch(beat.broker_id, is_fenced=is_fenced, metadata_offset=beat.metadata_offset, now_ms=now_ms)
    if after is BrokerState.SHUTDOWN_NOW:
        liveness.end(beat.broker_id)
    elif after is BrokerState.CONTROLLED_SHUTDOWN and session.shutdown_offset == NO_OFFSET:
        session.shutdown_offset = next_offset + len(records) - 1
    reply = HeartbeatReply(
        is_caught_up=beat.metadata_offset >= broker.broker_epoch,
        is_fenced=is_fenced,
        should_shut_down=after is BrokerState.SHUTDOWN_NOW,
    )
    return Outcome(records, reply)


_RECORDS: dict[
    tuple[BrokerState, BrokerState], Callable[[Metadata, RegisterBrokerRecord, Policy], list[MetadataRecord]]
] = {
    (BrokerState.FENCED, BrokerState.UNFENCED): unfenced,
    (BrokerState.UNFENCED, BrokerState.FENCED): fenced,
    (BrokerState.UNFENCED, BrokerState.SHUTDOWN_NOW): fenced,
    (BrokerState.UNFENCED, BrokerState.CONTROLLED_SHUTDOWN): shutting_down,
    (BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW): fenced,
    (BrokerState.CONTROLLED_SHUTDOWN, BrokerState.FENCED): fenced,
}
"""What each change of state makes of the broker's partitions; other changes write nothing."""


def _state(session: Session) -> BrokerState:
    if session.is_fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if session.is_shutting_down else BrokerState.UNFENCED


def _next_state(
    metadata: Metadata, liveness: Liveness, session: Session, broker: RegisterBrokerRecord, beat: Heartbeat
) -> BrokerState:
    state = _state(session)
    leads = metadata.index.leaders.get(beat.broker_id, 0) > 0
    match state:
        case BrokerState.FENCED:
            if beat.wants_shutdown:
                return BrokerState.SHUTDOWN_NOW
            is_ready = not beat.wants_fence and beat.metadata_offset >= broker.broker_epoch
            # One that was about to stop when it was fenced serves again as another process only.
            return BrokerState.UNFENCED if is_ready and not broker.in_controlled_shutdown else BrokerState.FENCED
        case BrokerState.UNFENCED if beat.wants_fence or beat.wants_shutdown:
            if not beat.wants_shutdown:
                return BrokerState.FENCED
            return BrokerState.CONTROLLED_SHUTDOWN if leads and not beat.wants_fence else BrokerState.SHUTDOWN_NOW
        case BrokerState.CONTROLLED_SHUTDOWN if not leads:
            known = liveness.lowest_active_offset()
            if known is None or session.shutdown_offset <= known:
                return BrokerState.SHUTDOWN_NOW
    return state


def fence_stale_broker(
    metadata: Metadata, liveness: Liveness, *, now_ms: int, policy: Policy = DEFAULT_POLICY
) -> Outcome[int | None]:
    """Fence the broker that has been silent longest, if any has been for too long; the reply is which.

    One at a time: whom the next one's partitions can fail over to depends on it.
    """
    for broker_id in liveness.stale(now_ms):
        liveness.end(broker_id)
        broker = metadata.brokers.get(broker_id)
        if broker is None:
            liveness.forget(broker_id)
        elif not broker.fenced:
            return Outcome(fenced(metadata, broker, policy), broker_id)
    return Outcome([], None)
