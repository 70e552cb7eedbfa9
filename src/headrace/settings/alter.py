"""What AlterConfigs and IncrementalAlterConfigs do to a set of overrides (KIP-339): pure, and checked as a whole.

A legacy AlterConfigs, which replaces everything, is a list of SETs on an empty set of overrides.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.broker import BrokerConfig
from headrace.settings.catalog import BROKER_SETTINGS
from headrace.settings.group import GROUP_SETTINGS, broker_value, validate_group_overrides
from headrace.settings.setting import Kind, Setting, Value
from headrace.settings.topic import TOPIC_SETTINGS, broker_default, validate_topic_overrides

VALUE_LENGTH_MAX = 32767
"""A longer text does not fit Kafka's record of a setting."""


class Operation(IntEnum):
    """What to do with one setting, by the number the request gives it."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One operation of a request; the operation may be a number nobody knows."""

    name: str
    operation: int
    value: str | None


def alter_topic(overrides: Mapping[str, str], changes: Sequence[Change], broker: BrokerConfig) -> dict[str, str]:
    """A topic's overrides after `changes`; KafkaError if they cannot be, and then nothing is changed."""
    altered = _altered(overrides, changes, TOPIC_SETTINGS, lambda setting: broker_default(setting, broker))
    validate_topic_overrides(altered, broker)
    return altered


def alter_group(overrides: Mapping[str, str], changes: Sequence[Change], broker: BrokerConfig) -> dict[str, str]:
    """A group's overrides after `changes`; KafkaError if they cannot be, and then nothing is changed."""
    altered = _altered(overrides, changes, GROUP_SETTINGS, lambda setting: broker_value(setting, broker))
    validate_group_overrides(altered, broker)
    return altered


def alter_broker(
    overrides: Mapping[str, str], changes: Sequence[Change], config: BrokerConfig, *, cluster_default: bool = False
) -> dict[str, str]:
    """A broker's dynamic settings, or those all brokers share, after `changes`; KafkaError if they cannot be."""
    _check_request(changes)
    altered = dict(overrides)
    for change in changes:
        setting = BROKER_SETTINGS.get(change.name)
        if change.operation > Operation.DELETE:
            verb = Operation(change.operation).name.lower()
            if setting is None:
                raise _invalid(f"Unknown config name: {change.name}")
            if setting.kind is not Kind.LIST:
                raise _invalid(f"Config value {verb} is not allowed for config key: {change.name}")
        _apply(altered, change, setting, config[change.name] if setting else None)
    if cluster_default:
        config.with_dynamic(config.dynamic_broker, altered)
    else:
        config.with_dynamic(altered, config.dynamic_default)
    return altered


def _altered(
    overrides: Mapping[str, str],
    changes: Sequence[Change],
    settings: Mapping[str, Setting],
    default: Callable[[Setting], Value],
) -> dict[str, str]:
    """Overrides after `changes`, each well-formed; whether they can be is another question."""
    _check_request(changes)
    altered = dict(overrides)
    for change in changes:
        setting = settings.get(change.name)
        if change.operation > Operation.DELETE and (setting is None or setting.kind is not Kind.LIST):
            verb = Operation(change.operation).name
            raise _invalid(f"Can't {verb} to key {change.name} because its type is not LIST.")
        _apply(altered, change, setting, default(setting) if setting else None)
    return altered


def _check_request(changes: Sequence[Change]) -> None:
    if len({change.name for change in changes}) != len(changes):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    for change in changes:
        if change.operation not in Operation.__members__.values():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")
    empty = [one.name for one in changes if one.value is None and one.operation != Operation.DELETE]
    if empty:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(empty)}")


def _apply(altered: dict[str, str], change: Change, setting: Setting | None, current: Value) -> None:
    if change.operation == Operation.DELETE:
        altered.pop(change.name, None)
        return
    assert change.value is not None
    text = change.value
    if change.operation != Operation.SET:
        assert setting is not None
        before = altered.get(change.name, setting.format(current)) or ""
        text = _merge(before.split(",") if before else [], change)
    if len(text) > VALUE_LENGTH_MAX:
        raise _invalid(
            f"The configuration value cannot be added because it exceeds the maximum value size of {VALUE_LENGTH_MAX}"
            " bytes."
        )
    altered[change.name] = text


def _merge(words: list[str], change: Change) -> str:
    assert change.value is not None
    operands = change.value.split(",")
    if change.operation == Operation.SUBTRACT:
        return ",".join(word for word in words if word not in operands)
    return ",".join([*words, *(word for word in operands if word not in words)])


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
