"""The settings that streams groups are held to, and what one group overrides of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.metadata import RESOURCE_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cores.groups.limits import Settings
    from headrace.cores.groups.shard import Groups

SUBTOPOLOGIES_MAX = 1_000
"""Subtopologies of one application. What they come to is worked out on the event loop, and again whenever a topic
changes; Kafka has no such bound, and applications have a few dozen."""

TOPICS_MAX = 10_000
"""Topics one topology may name; the same reason."""

TASK_BYTES = 16
"""What one task takes in the records of a step, at most: its number and epoch, where it comes from and goes to."""


class StreamsLimits(Struct, frozen=True, kw_only=True):
    """What one group is held to; the defaults are Kafka's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    standby_replicas: int = 0
    members_max: int = 2**31 - 1
    write_bytes_max: int = 1_048_588

    @property
    def tasks_max(self) -> int:
        """How many tasks fit into the one write that gives everyone a new target."""
        return self.write_bytes_max // (TASK_BYTES * (1 + self.standby_replicas))

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """What an assignment depends on besides members and topics, as the group's record has it."""
        return (("num.standby.replicas", str(self.standby_replicas)),)


def limits_of(groups: Groups, group_id: str) -> StreamsLimits:
    """The limits of a group as they are now."""
    settings = groups.limits.settings
    write_bytes_max = groups.limits.write_bytes_max
    if settings is None:
        return StreamsLimits(write_bytes_max=write_bytes_max)
    own = groups.metadata.configs(RESOURCE_GROUP, group_id)
    delay = own.get("streams.initial.rebalance.delay.ms")
    return StreamsLimits(
        session_timeout_ms=_bounded(settings, own, "session.timeout.ms"),
        heartbeat_interval_ms=_bounded(settings, own, "heartbeat.interval.ms"),
        assignment_interval_ms=_bounded(settings, own, "assignment.interval.ms"),
        initial_rebalance_delay_ms=int(
            settings["group.streams.initial.rebalance.delay.ms"] if delay is None else delay
        ),
        standby_replicas=_standby_replicas(settings, own),
        members_max=settings["group.streams.max.size"],
        write_bytes_max=write_bytes_max,
    )


def _bounded(settings: Settings, own: Mapping[str, str], name: str) -> int:
    """A group's own value of `streams.<name>`, within what the broker allows, or the broker's."""
    value = own.get(f"streams.{name}")
    if value is None:
        return int(settings[f"group.streams.{name}"])
    low, high = settings[f"group.streams.min.{name}"], settings[f"group.streams.max.{name}"]
    return int(min(max(int(value), low), high))


def _standby_replicas(settings: Settings, own: Mapping[str, str]) -> int:
    value = own.get("streams.num.standby.replicas")
    if value is None:
        return int(settings["group.streams.num.standby.replicas"])
    return min(int(value), int(settings["group.streams.max.standby.replicas"]))
