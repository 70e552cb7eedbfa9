"""A group's settings: what it says for itself, within what its broker allows, and for the rest the broker's.

A value that a group was given stays as it is when the broker's bounds move; whoever acts on it keeps to them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.broker import BrokerConfig
from headrace.settings.duration import duration_ms
from headrace.settings.fault import ConfigFault
from headrace.settings.setting import Setting, Value
from headrace.settings.table import read_table
from headrace.settings.tables.group import ROWS

GROUP_SETTINGS: Mapping[str, Setting] = MappingProxyType(read_table(ROWS, "group"))

BY_DURATION = "by_duration:"

_BOUNDED: Mapping[str, tuple[str | None, str]] = MappingProxyType(
    {
        "consumer.heartbeat.interval.ms": (
            "group.consumer.min.heartbeat.interval.ms",
            "group.consumer.max.heartbeat.interval.ms",
        ),
        "consumer.session.timeout.ms": (
            "group.consumer.min.session.timeout.ms",
            "group.consumer.max.session.timeout.ms",
        ),
        "consumer.assignment.interval.ms": (
            "group.consumer.min.assignment.interval.ms",
            "group.consumer.max.assignment.interval.ms",
        ),
        "share.heartbeat.interval.ms": (
            "group.share.min.heartbeat.interval.ms",
            "group.share.max.heartbeat.interval.ms",
        ),
        "share.session.timeout.ms": ("group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"),
        "share.record.lock.duration.ms": (
            "group.share.min.record.lock.duration.ms",
            "group.share.max.record.lock.duration.ms",
        ),
        "share.delivery.count.limit": ("group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"),
        "share.partition.max.record.locks": (
            "group.share.min.partition.max.record.locks",
            "group.share.max.partition.max.record.locks",
        ),
        "share.assignment.interval.ms": (
            "group.share.min.assignment.interval.ms",
            "group.share.max.assignment.interval.ms",
        ),
        "streams.heartbeat.interval.ms": (
            "group.streams.min.heartbeat.interval.ms",
            "group.streams.max.heartbeat.interval.ms",
        ),
        "streams.session.timeout.ms": ("group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"),
        "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
        "streams.assignment.interval.ms": (
            "group.streams.min.assignment.interval.ms",
            "group.streams.max.assignment.interval.ms",
        ),
    }
)
"""The broker settings that bound a group's, in the order in which Kafka looks at them."""


def resolve_group_values(overrides: Mapping[str, str], broker: BrokerConfig) -> dict[str, Any]:
    """Every group setting's value by name; KafkaError(INVALID_CONFIG) if an override cannot be."""
    for name in overrides:
        if name not in GROUP_SETTINGS:
            raise _refusal(f"Unknown group config name: {name}")
    try:
        return {
            name: _read(setting, overrides[name]) if name in overrides else broker_value(setting, broker)
            for name, setting in GROUP_SETTINGS.items()
        }
    except ConfigFault as fault:
        raise _refusal(fault.problem) from None


def validate_group_overrides(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """KafkaError(INVALID_CONFIG), in Kafka's words, if a group cannot be given these settings on this broker."""
    values = resolve_group_values(overrides, broker)
    for name, (low, high) in _BOUNDED.items():
        # Only what is the group's own: it is not to blame for what its broker's file says.
        if name in overrides and low is not None and values[name] < broker[low]:
            raise _refusal(f"{name} must be greater than or equal to {low}")
        if name in overrides and values[name] > broker[high]:
            raise _refusal(f"{name} must be less than or equal to {high}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if not overrides.keys().isdisjoint({session, heartbeat}) and values[session] <= values[heartbeat]:
            raise _refusal(f"{session} must be greater than {heartbeat}")


def broker_value(setting: Setting, broker: BrokerConfig) -> Value:
    """What a group that says nothing gets for `setting`."""
    value: Value = broker[setting.synonyms[0].name] if setting.synonyms else setting.default
    return value


def _read(setting: Setting, text: str) -> Value:
    value = setting.parse(text)
    if setting.name == "share.auto.offset.reset":
        assert isinstance(value, str)
        if value not in {"earliest", "latest"} and not _is_by_duration(value):
            raise ConfigFault(
                f"Invalid value {value} for configuration {setting.name}: Invalid value `{value}` for configuration "
                f"{setting.name}. The value must be either 'earliest', 'latest' or of the format "
                "'by_duration:<PnDTnHnMn.nS>'.",
                "Give it one of them.",
            )
    return value


def _is_by_duration(value: str) -> bool:
    try:
        return value.startswith(BY_DURATION) and duration_ms(value.removeprefix(BY_DURATION)) >= 0
    except ValueError:
        return False


def _refusal(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
