"""The settings that the group coordinator decides by, taken anew for each step so that changes apply at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

from msgspec import Struct

MINUTE_MS = 60_000
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * MINUTE_MS
"""How long a member that does not know its id yet may wait in a join; it cannot send heartbeats, so nothing else can
tell that it has gone. Kafka has no setting for it either."""

PENDING_MEMBERS_MAX = 100_000
"""Ids given out in one group that nobody has joined with yet. Kafka has no such bound; each costs memory until the
session timeout its client asked for, so a client that never comes back with its id must meet one somewhere."""


class Settings(Protocol):
    """What has settings by name: the broker's config."""

    def __getitem__(self, name: str, /) -> Any: ...


class GroupLimits(Struct, frozen=True, kw_only=True):
    """What classic groups and committed offsets are held to; the defaults are Kafka's."""

    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    members_max: int = 2**31 - 1
    pending_members_max: int = PENDING_MEMBERS_MAX
    new_member_join_timeout_ms: int = NEW_MEMBER_JOIN_TIMEOUT_MS
    write_bytes_max: int = 1_048_588
    """The most one step writes to the log; a member's metadata and assignment must fit in with all others'."""
    offset_metadata_max: int = 4_096
    offsets_retention_ms: int = 10_080 * MINUTE_MS
    offsets_retention_check_interval_ms: int = 600_000
    settings: Settings | None = None
    """All of them by name, for the kinds of groups that have their own."""


@lru_cache(maxsize=1)
def limits_from(settings: Settings) -> GroupLimits:
    """Read the limits out of the broker's settings; remembered, as settings that change are another object."""
    return GroupLimits(
        session_timeout_ms_min=settings["group.min.session.timeout.ms"],
        session_timeout_ms_max=settings["group.max.session.timeout.ms"],
        initial_rebalance_delay_ms=settings["group.initial.rebalance.delay.ms"],
        members_max=settings["group.max.size"],
        write_bytes_max=settings["message.max.bytes"],
        offset_metadata_max=settings["offset.metadata.max.bytes"],
        offsets_retention_ms=settings["offsets.retention.minutes"] * MINUTE_MS,
        offsets_retention_check_interval_ms=settings["offsets.retention.check.interval.ms"],
        settings=settings,
    )
