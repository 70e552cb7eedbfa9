"""The settings that consumer groups are held to, and what one group overrides of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.groups.assignors import ASSIGNORS, served_assignors
from headrace.cores.metadata import RESOURCE_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cores.groups.limits import Settings
    from headrace.cores.groups.shard import Groups

_POLICIES = {
    "bidirectional": (True, True),
    "upgrade": (True, False),
    "downgrade": (False, True),
    "disabled": (False, False),
}
"""By `group.consumer.migration.policy`: whether live groups may move up to the consumer protocol, and down again."""


class ConsumerLimits(Struct, frozen=True, kw_only=True):
    """What one group is held to; the defaults are Kafka's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    members_max: int = 2**31 - 1
    regex_refresh_interval_ms: int = 600_000
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    may_upgrade: bool = True
    may_downgrade: bool = True

    @property
    def may_mix(self) -> bool:
        """Whether members of the classic protocol may be in a consumer group at all."""
        return self.may_upgrade or self.may_downgrade


def limits_of(groups: Groups, group_id: str) -> ConsumerLimits:
    """The limits of a group as they are now."""
    settings = groups.limits.settings
    if settings is None:
        return ConsumerLimits()
    own = groups.metadata.configs(RESOURCE_GROUP, group_id)
    may_upgrade, may_downgrade = _POLICIES[settings["group.consumer.migration.policy"].lower()]
    return ConsumerLimits(
        session_timeout_ms=_bounded(settings, own, "session.timeout.ms"),
        heartbeat_interval_ms=_bounded(settings, own, "heartbeat.interval.ms"),
        assignment_interval_ms=_bounded(settings, own, "assignment.interval.ms"),
        members_max=settings["group.consumer.max.size"],
        regex_refresh_interval_ms=settings["group.consumer.regex.refresh.interval.ms"],
        assignors=served_assignors(settings["group.consumer.assignors"]),
        may_upgrade=may_upgrade,
        may_downgrade=may_downgrade,
    )


def _bounded(settings: Settings, own: Mapping[str, str], name: str) -> int:
    """A group's own value of `consumer.<name>`, within what the broker allows, or the broker's."""
    value = own.get(f"consumer.{name}")
    if value is None:
        return int(settings[f"group.consumer.{name}"])
    low, high = settings[f"group.consumer.min.{name}"], settings[f"group.consumer.max.{name}"]
    return int(min(max(int(value), low), high))
