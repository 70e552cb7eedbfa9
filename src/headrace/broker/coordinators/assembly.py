"""The coordinators of a broker, each put together from its topic, its records and its core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.topics import OFFSETS, SHARE_STATE
from headrace.cores.groups.limits import limits_from
from headrace.cores.groups.shard import Groups
from headrace.cores.share_state import ShareStates
from headrace.wire.coordinator_records import GROUP_RECORDS, SHARE_STATE_RECORDS

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


def group_coordinator(broker: Broker) -> Coordinator[Groups]:
    """Groups and their offsets."""
    return Coordinator(
        broker, OFFSETS, GROUP_RECORDS, lambda: Groups(broker.metadata, lambda: limits_from(broker.config))
    )


def share_state_coordinator(broker: Broker) -> Coordinator[ShareStates]:
    """The delivery state of share groups' partitions."""

    def updates_per_snapshot() -> int:
        count: int = broker.config["share.coordinator.snapshot.update.records.per.snapshot"]
        return count

    return Coordinator(
        broker, SHARE_STATE, SHARE_STATE_RECORDS, lambda: ShareStates(broker.metadata, updates_per_snapshot)
    )
