"""Nodes that join and leave: 62 BrokerRegistration, 70 ControllerRegistration, 64 UnregisterBroker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, field

from headrace.cores.controller.broker_changes import started_again, unregistered
from headrace.cores.controller.features import METADATA_VERSION
from headrace.cores.controller.liveness import Liveness
from headrace.cores.controller.outcome import Outcome
from headrace.cores.controller.placement import RESERVED_DIRECTORIES_MAX
from headrace.cores.controller.policy import DEFAULT_POLICY, Policy
from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import encode_uuid
from headrace.model.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)


class Registration(Struct, frozen=True, kw_only=True):
    """A broker that wants to be part of the cluster."""

    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    """Drawn anew by every process."""
    end_points: Sequence[BrokerEndpoint] = ()
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Levels it supports, lowest and highest, by feature."""
    rack: str | None = None
    log_dirs: Sequence[UUID] = ()
    previous_broker_epoch: int | None = None
    """The epoch its last process had and wrote down when it stopped cleanly, -1 if it did not; None if not told."""
    is_migrating_zk_broker: bool = False


def register_broker(
    metadata: Metadata,
    liveness: Liveness,
    wanted: Registration,
    *,
    cluster_id: str,
    next_offset: int,
    now_ms: int,
    policy: Policy = DEFAULT_POLICY,
) -> Outcome[int]:
    """Let a broker in, fenced until its heartbeats say that it has caught up; the reply is its epoch.

    The epoch is the offset its registration has in the log: `next_offset` is where this command's records begin.
    """
    existing = metadata.brokers.get(wanted.broker_id)
    _check_identity(existing, liveness, wanted, cluster_id=cluster_id, now_ms=now_ms)
    _check_directories(metadata, wanted)
    _check_features(metadata, wanted)
    if existing is not None and existing.incarnation_id == wanted.incarnation_id:
        record = _registration(
            wanted,
            broker_epoch=existing.broker_epoch,
            fenced=existing.fenced,
            in_controlled_shutdown=existing.in_controlled_shutdown,
        )
        liveness.touch(
            wanted.broker_id,
            is_fenced=existing.fenced,
            metadata_offset=liveness.session(wanted.broker_id).metadata_offset,
            now_ms=now_ms,
        )
        return Outcome([record], existing.broker_epoch)
    stopped_at = None if existing is None else existing.broker_epoch
    is_clean = wanted.previous_broker_epoch is None or wanted.previous_broker_epoch == stopped_at
    records = started_again(metadata, wanted.broker_id, policy, is_clean=is_clean)
    record = _registration(wanted, broker_epoch=next_offset + len(records), fenced=True, in_controlled_shutdown=False)
    liveness.begin(wanted.broker_id, broker_epoch=record.broker_epoch, is_fenced=True, now_ms=now_ms)
    return Outcome([*records, record], record.broker_epoch)


def _check_identity(
    existing: RegisterBrokerRecord | None, liveness: Liveness, wanted: Registration, *, cluster_id: str, now_ms: int
) -> None:
    if wanted.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {cluster_id}, but got cluster ID {wanted.cluster_id}",
        )
    if (
        existing is not None
        and existing.incarnation_id != wanted.incarnation_id
        and liveness.is_alive(wanted.broker_id, broker_epoch=existing.broker_epoch, now_ms=now_ms)
    ):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this should "
            "self-resolve once the heartbeat manager expires the broker's session.",
        )
    if wanted.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")


def _check_directories(metadata: Metadata, wanted: Registration) -> None:
    if not wanted.log_dirs:
        raise _invalid("No directories specified in request")
    if any(directory.int < RESERVED_DIRECTORIES_MAX for directory in wanted.log_dirs):
        raise _invalid("Reserved directory ID in request")
    if len(set(wanted.log_dirs)) != len(wanted.log_dirs):
        raise _invalid("Duplicate directory ID in request")
    for broker_id, broker in metadata.brokers.items():
        for directory in broker.log_dirs:
            if broker_id != wanted.broker_id and directory in wanted.log_dirs:
                raise _invalid(f"Broker {broker_id} is already registered with directory {encode_uuid(directory)}")


def _check_features(metadata: Metadata, wanted: Registration) -> None:
    """Every level the cluster runs at must be one that the broker supports; it supports 0 of what it does not name."""
    if METADATA_VERSION not in wanted.features:
        raise _invalid("Request features do not contain 'metadata.version'")
    for name in {**wanted.features, **metadata.features}:
        finalized = metadata.features.get(name, 0)
        if name == METADATA_VERSION and not finalized:
            continue
        low, high = wanted.features.get(name, (0, 0))
        if not low <= finalized <= high:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {finalized} of {name}. "
                f"The broker wants a version between {low} and {high}, inclusive.",
            )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, message)


def _registration(
    wanted: Registration, *, broker_epoch: int, fenced: bool, in_controlled_shutdown: bool
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=wanted.broker_id,
        incarnation_id=wanted.incarnation_id,
        broker_epoch=broker_epoch,
        end_points=tuple(wanted.end_points),
        features=tuple(
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(wanted.features.items())
        ),
        rack=wanted.rack,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=tuple(wanted.log_dirs),
    )


def unregister_broker(
    metadata: Metadata, liveness: Liveness, *, broker_id: int, policy: Policy = DEFAULT_POLICY
) -> Outcome[None]:
    """Take a broker out of the cluster, whether it lives or not."""
    broker = metadata.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    records: list[MetadataRecord] = unregistered(metadata, broker, policy)
    liveness.forget(broker_id)
    return Outcome(records, None)


def register_controller(metadata: Metadata, wanted: RegisterControllerRecord) -> Outcome[None]:
    """Note where a controller is and what it supports; nothing if that is known already."""
    return Outcome([] if metadata.controllers.get(wanted.controller_id) == wanted else [wanted], None)
