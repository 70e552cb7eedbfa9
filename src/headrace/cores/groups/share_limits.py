"""The settings that share groups go by: the broker's, and over them what was set for the group itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cores.groups.limits import Settings


class ShareGroupLimits(Struct, frozen=True, kw_only=True):
    """What a share group's members are held to; the defaults are Kafka's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    members_max: int = 200
    initialize_retry_interval_ms: int = 30_000


def share_group_limits(settings: Settings | None, overrides: Mapping[str, str]) -> ShareGroupLimits:
    """The limits of one group."""
    if settings is None:
        return ShareGroupLimits()
    return ShareGroupLimits(
        session_timeout_ms=bounded(settings, overrides, "session.timeout.ms"),
        heartbeat_interval_ms=bounded(settings, overrides, "heartbeat.interval.ms"),
        assignment_interval_ms=bounded(settings, overrides, "assignment.interval.ms"),
        members_max=settings["group.share.max.size"],
        initialize_retry_interval_ms=settings["group.share.initialize.retry.interval.ms"],
    )


def bounded(settings: Settings, overrides: Mapping[str, str], name: str) -> int:
    """A group's own value of `share.<name>`, within what the broker allows, or the broker's."""
    value: int = settings[f"group.share.{name}"]
    own = overrides.get(f"share.{name}")
    if own is None:
        return value
    low, high = settings[f"group.share.min.{name}"], settings[f"group.share.max.{name}"]
    return int(min(max(int(own), low), high))
