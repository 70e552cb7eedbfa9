"""Dynamic settings of topics, brokers, the whole cluster (the broker without a name) and groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from headrace.cores.controller.outcome import Outcome
from headrace.cores.controller.policy import MIN_INSYNC_REPLICAS, elr_enabled
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC, Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import ClearElrRecord, ConfigRecord, MetadataRecord


class ConfigChange(Struct, frozen=True, kw_only=True):
    """A change of the settings of one topic or broker."""

    resource_type: int
    resource_name: str
    change: Callable[[Mapping[str, str]], Mapping[str, str]]
    """From the overrides the resource has to those it shall have; KafkaError where they cannot be."""


def change_configs(
    metadata: Metadata,
    wanted: Sequence[ConfigChange],
    *,
    brokers: Sequence[int] | None = None,
    validate_only: bool = False,
) -> Outcome[list[KafkaError | None]]:
    """Change the settings of each resource, wholly or not at all; the reply has one entry for each change."""
    known: Collection[int] = [*metadata.brokers, *metadata.controllers] if brokers is None else brokers
    has_elr = elr_enabled(metadata)
    records: list[MetadataRecord] = []
    results: list[KafkaError | None] = []
    for one in wanted:
        try:
            old = metadata.configs(one.resource_type, one.resource_name)
            changed = _difference(old, one.change(old))
            _check_exists(metadata, one.resource_type, one.resource_name, known)
            cleared = _cleared_elr(one, changed) if has_elr and MIN_INSYNC_REPLICAS in changed else []
            records.extend(config_records(one.resource_type, one.resource_name, changed))
            records.extend(cleared)
            results.append(None)
        except KafkaError as error:
            results.append(error)
    return Outcome([] if validate_only else records, results)


def _cleared_elr(one: ConfigChange, changed: Mapping[str, str | None]) -> list[MetadataRecord]:
    """What another min.insync.replicas makes void: who was eligible under the old number may not be under the new."""
    if one.resource_type == RESOURCE_TOPIC:
        return [ClearElrRecord(topic_name=one.resource_name)]
    if one.resource_type != RESOURCE_BROKER:
        return []
    if one.resource_name:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        )
    if changed[MIN_INSYNC_REPLICAS] is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        )
    return [ClearElrRecord()]


def _check_exists(metadata: Metadata, resource_type: int, name: str, brokers: Collection[int]) -> None:
    if resource_type == RESOURCE_TOPIC and name not in metadata.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if resource_type == RESOURCE_BROKER and name and name not in map(str, brokers):
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")


def _difference(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """What turns `old` into `new`; None removes."""
    changed: dict[str, str | None] = {name: value for name, value in new.items() if old.get(name) != value}
    changed.update({name: None for name in old if name not in new})
    return changed


def config_records(resource_type: int, name: str, values: Mapping[str, str | None]) -> list[MetadataRecord]:
    """Settings of one resource, in the order of their names; None removes."""
    return [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        for key, value in sorted(values.items())
    ]
