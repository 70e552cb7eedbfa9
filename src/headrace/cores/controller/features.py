"""Levels at which a cluster runs its features (57 UpdateFeatures, KIP-584)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

from headrace.cores.controller.outcome import Outcome
from headrace.cores.controller.policy import DEFAULT_POLICY, ELR_VERSION, MIN_INSYNC_REPLICAS, Policy
from headrace.cores.metadata import RESOURCE_BROKER, Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import (
    BrokerFeature,
    ConfigRecord,
    ControllerFeature,
    FeatureLevelRecord,
    MetadataRecord,
)

METADATA_VERSION = "metadata.version"

_METADATA_VERSIONS = (
    "7 3.3-IV3 changed, 8 3.4-IV0 changed, 9 3.5-IV0, 10 3.5-IV1, 11 3.5-IV2 changed, 12 3.6-IV0, 13 3.6-IV1 changed, "
    "14 3.6-IV2 changed, 15 3.7-IV0 changed, 16 3.7-IV1, 17 3.7-IV2 changed, 18 3.7-IV3, 19 3.7-IV4, 20 3.8-IV0, "
    "21 3.9-IV0, 22 4.0-IV0, 23 4.0-IV1 changed, 24 4.0-IV2, 25 4.0-IV3, 26 4.1-IV0, 27 4.1-IV1, 28 4.2-IV0, "
    "29 4.2-IV1, 30 4.3-IV0 changed"
)
"""Levels of metadata.version, their names, and which of them changed the records: one cannot go back over these."""

_LEVELS = {int(words[0]): words[1:] for words in map(str.split, _METADATA_VERSIONS.split(", "))}
METADATA_VERSION_NAMES = {level: words[0] for level, words in _LEVELS.items()}
_CHANGED = frozenset(level for level, words in _LEVELS.items() if words[1:])

_NEEDS_METADATA_VERSION = {(ELR_VERSION, 1): 23}
"""The metadata version that a level of a feature needs."""


class UpgradeType(IntEnum):
    """What the caller is prepared for, by Kafka's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(Struct, frozen=True, kw_only=True):
    """The level a feature shall have; 0 turns it off."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class ThisController(Struct, frozen=True, kw_only=True):
    """What the active controller knows of itself and of the quorum."""

    node_id: int
    supported: Mapping[str, tuple[int, int]]
    quorum: Collection[int] = ()


def update_features(
    metadata: Metadata,
    wanted: Sequence[FeatureUpdate],
    *,
    controller: ThisController,
    validate_only: bool = False,
    policy: Policy = DEFAULT_POLICY,
) -> Outcome[KafkaError | None]:
    """Change the levels of features, all or none; the reply is why not."""
    proposed = {**metadata.features, **{update.name: update.level for update in wanted}}
    records: list[MetadataRecord] = []
    try:
        for update in wanted:
            _check_update(metadata, update, proposed, controller)
            records.append(FeatureLevelRecord(name=update.name, feature_level=update.level))
    except KafkaError as error:
        return Outcome([], error)
    if validate_only:
        return Outcome([], None)
    if any(update.name == ELR_VERSION and update.level > 0 for update in wanted):
        records = [*safe_for_elr(metadata, policy), *records]
    return Outcome(records, None)


def _check_update(
    metadata: Metadata, update: FeatureUpdate, proposed: Mapping[str, int], controller: ThisController
) -> None:
    """Whether one update can be; Kafka's order of checks."""
    if update.upgrade_type not in set(UpgradeType):
        raise _refusal(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _refusal(update, "A feature version cannot be less than 0.")
    reason = next(_reasons_not_supported(metadata, update, controller), None)
    if reason is not None:
        raise _refusal(update, reason)
    current = metadata.features.get(update.name, 0)
    if update.level < current and update.upgrade_type == UpgradeType.UPGRADE:
        raise _refusal(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if update.level > current and update.upgrade_type != UpgradeType.UPGRADE:
        raise _refusal(update, "Can't downgrade to a newer version.")
    if update.name == METADATA_VERSION:
        _check_metadata_version(update, current)
    needed = _NEEDS_METADATA_VERSION.get((update.name, update.level), 0)
    if proposed.get(METADATA_VERSION, 0) < needed:
        raise _refusal(
            update,
            f"{update.name} could not be set to {update.level} because it depends on metadata.version={needed} "
            f"({METADATA_VERSION_NAMES[needed]})",
        )


def _check_metadata_version(update: FeatureUpdate, current: int) -> None:
    if any(update.level < level <= current for level in _CHANGED):
        is_unsafe = update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {METADATA_VERSION_NAMES[current]} to "
            f"{METADATA_VERSION_NAMES[update.level]}. "
            + (
                "Unsafe metadata downgrade is not supported in this version."
                if is_unsafe
                else "Refusing to perform the requested downgrade because it might delete metadata information."
            ),
        )


def _reasons_not_supported(metadata: Metadata, update: FeatureUpdate, controller: ThisController) -> Iterator[str]:
    """Why some node could not run at the level."""
    local = controller.supported.get(update.name, (0, 0))
    yield from _reason(f"Local controller {controller.node_id}", local, update.level)
    for broker_id, broker in metadata.brokers.items():
        yield from _reason(f"Broker {broker_id}", _range(broker.features, update.name), update.level)
    for node_id, node in metadata.controllers.items():
        if node_id != controller.node_id:
            yield from _reason(f"Controller {node_id}", _range(node.features, update.name), update.level)
    for node_id in controller.quorum:
        if node_id != controller.node_id and node_id not in metadata.controllers:
            yield f"controller {node_id} has not registered, and may not support this feature"


def _range(features: Sequence[BrokerFeature] | Sequence[ControllerFeature], name: str) -> tuple[int, int]:
    for feature in features:
        if feature.name == name:
            return feature.min_supported_version, feature.max_supported_version
    return 0, 0


def _reason(who: str, supported: tuple[int, int], level: int) -> Iterator[str]:
    low, high = supported
    if not low <= level <= high:
        yield f"{who} does not support this feature." if high == 0 else f"{who} only supports versions {low}-{high}"


def _refusal(update: FeatureUpdate, message: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.level} for feature {update.name}. {message}",
    )


def safe_for_elr(metadata: Metadata, policy: Policy) -> Iterator[MetadataRecord]:
    """Who is eligible depends on min.insync.replicas, so that all nodes must agree on one: the cluster's."""
    if MIN_INSYNC_REPLICAS not in metadata.configs(RESOURCE_BROKER, ""):
        value = str(policy.min_insync_replicas)
        yield ConfigRecord(resource_type=RESOURCE_BROKER, resource_name="", name=MIN_INSYNC_REPLICAS, value=value)
    for name in metadata.config_resources(RESOURCE_BROKER):
        if name and MIN_INSYNC_REPLICAS in metadata.configs(RESOURCE_BROKER, name):
            yield ConfigRecord(resource_type=RESOURCE_BROKER, resource_name=name, name=MIN_INSYNC_REPLICAS, value=None)
