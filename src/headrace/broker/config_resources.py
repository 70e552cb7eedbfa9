"""Things that have settings (topics, brokers and groups), and how a request to change their settings is carried out.

AlterConfigs replaces all overrides of a resource, IncrementalAlterConfigs changes some; behind that they are the same.
The change itself is decided in the controller's turn, so that two at once do not undo each other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from headrace.cores.controller import ConfigChange, change_configs
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import topic_name_fault
from headrace.settings.alter import Change, alter_broker, alter_group, alter_topic

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

Answer = TypeVar("Answer")
"""What the API at hand answers for one resource."""

_TURN_RESOURCES = 1000
"""Resources decided on in one turn, at up to 30 µs each."""


class ResourceType(IntEnum):
    """Kinds of things that have settings, by Kafka's numbers."""

    TOPIC = RESOURCE_TOPIC
    BROKER = RESOURCE_BROKER
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = RESOURCE_GROUP


class Alteration(NamedTuple):
    """What a request wants for one resource."""

    resource_type: int
    resource_name: str
    changes: Sequence[Change]
    whole: bool
    """Whether the changes are SETs that replace everything that was set before."""


async def alter_resources(
    broker: Broker, wanted: Sequence[Alteration], *, validate_only: bool, answer: Callable[..., Answer]
) -> tuple[Answer, ...]:
    """Change the settings of each resource, wholly or not at all; an answer for each says why it was not."""
    count = Counter((one.resource_type, one.resource_name) for one in wanted)
    errors: list[KafkaError | None] = []
    for first in range(0, len(wanted), _TURN_RESOURCES):
        turn = wanted[first : first + _TURN_RESOURCES]
        errors += await _alter_turn(broker, turn, count, validate_only=validate_only)
        if first + _TURN_RESOURCES < len(wanted):
            # Others have their turn between two of ours: one resource does not depend on another.
            await asyncio.sleep(0)
    return tuple(
        answer(
            error_code=int(error.code) if error else 0,
            error_message=error.message or None if error else None,
            resource_type=one.resource_type,
            resource_name=one.resource_name,
        )
        for one, error in zip(wanted, errors, strict=True)
    )


def refused_resources(
    resources: Iterable[Any], error: KafkaError, *, answer: Callable[..., Answer]
) -> tuple[Answer, ...]:
    """The same error for each resource of a request."""
    return tuple(
        answer(
            error_code=int(error.code),
            error_message=error.message or None,
            resource_type=one.resource_type,
            resource_name=one.resource_name,
        )
        for one in resources
    )


async def _alter_turn(
    broker: Broker, wanted: Sequence[Alteration], count: Counter[tuple[int, str]], *, validate_only: bool
) -> list[KafkaError | None]:
    """Decide on some of a request's resources in one turn of the controller's."""
    results: list[KafkaError | None] = [None] * len(wanted)
    commands: dict[int, ConfigChange] = {}
    for place, one in enumerate(wanted):
        try:
            if count[one.resource_type, one.resource_name] > 1:
                raise _refusal("Each resource must appear at most once.")
            commands[place] = _config_change(broker, one)
        except KafkaError as error:
            results[place] = error
    try:
        decided = await broker.controller.run(
            partial(
                change_configs,
                wanted=list(commands.values()),
                validate_only=validate_only,
            )
        )
    except KafkaError as error:
        decided = [error] * len(commands)
    for place, result in zip(commands, decided, strict=True):
        results[place] = result
    return results


def require_own_id(name: str, node_id: int, *, expected: str, kind: str = "Broker") -> None:
    """Refuse a broker that is not this one; `expected` and `kind` are Kafka's words for the request at hand."""
    try:
        int(name)
    except ValueError:
        raise _refusal(f"{kind} id must be an integer, but it is: {name}") from None
    if name != str(node_id):
        raise _refusal(f"Unexpected broker id, expected {expected} but received {name}")


def _config_change(broker: Broker, one: Alteration) -> ConfigChange:
    """The decision to be taken for one resource."""
    match one.resource_type:
        case ResourceType.TOPIC:
            _check_topic_name(one.resource_name)
            change = partial(_altered_topic, broker, one)
        case ResourceType.BROKER:
            known = {*broker.metadata.brokers, *broker.metadata.controllers}
            if one.resource_name and one.resource_name not in map(str, known):
                require_own_id(one.resource_name, broker.node_id, expected=f"{broker.node_id},", kind="Node")
            change = partial(_altered_broker, broker, one)
        case ResourceType.GROUP:
            if not one.resource_name:
                raise _refusal("Default group resources are not allowed.")
            change = partial(_altered_group, broker, one)
        case ResourceType.BROKER_LOGGER if one.whole:
            raise _refusal(f"Unknown resource type {one.resource_type}")
        case ResourceType.BROKER_LOGGER | ResourceType.CLIENT_METRICS:
            raise _refusal(f"Settings of {ResourceType(one.resource_type).name} resources cannot be changed yet.")
        case _:
            raise _refusal(f"Unknown resource type {one.resource_type}")
    return ConfigChange(resource_type=one.resource_type, resource_name=one.resource_name, change=change)


def _check_topic_name(name: str) -> None:
    if not name:
        raise _refusal("Default topic resources are not allowed.")
    fault = topic_name_fault(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)


def _altered_topic(broker: Broker, one: Alteration, overrides: Mapping[str, str]) -> Mapping[str, str]:
    return alter_topic({} if one.whole else overrides, one.changes, broker.config)


def _altered_broker(broker: Broker, one: Alteration, overrides: Mapping[str, str]) -> Mapping[str, str]:
    return alter_broker(
        {} if one.whole else overrides, one.changes, broker.config, cluster_default=not one.resource_name
    )


def _altered_group(broker: Broker, one: Alteration, overrides: Mapping[str, str]) -> Mapping[str, str]:
    return alter_group({} if one.whole else overrides, one.changes, broker.config)


def _refusal(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
