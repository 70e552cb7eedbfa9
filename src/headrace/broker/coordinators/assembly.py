"""The coordinators of a broker, each put together from its topic, its records and its core.

A core is imported when the first shard is led here: the larger part of what a broker is made of, and a broker without
groups starts without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.topics import OFFSETS, SHARE_STATE
from headrace.wire.coordinator_records import GROUP_RECORDS, SHARE_STATE_RECORDS

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.cores.groups.shard import Groups
    from headrace.cores.share_state import ShareStates


def group_coordinator(broker: Broker) -> Coordinator[Groups]:
    """Groups and their offsets."""

    def make() -> Groups:
        from headrace.cores.groups.limits import limits_from  # noqa: PLC0415
        from headrace.cores.groups.shard import Groups  # noqa: PLC0415

        return Groups(broker.metadata, lambda: limits_from(broker.config))

    return Coordinator(broker, OFFSETS, GROUP_RECORDS, make)


def share_state_coordinator(broker: Broker) -> Coordinator[ShareStates]:
    """The delivery state of share groups' partitions."""

    def updates_per_snapshot() -> int:
        count: int = broker.config["share.coordinator.snapshot.update.records.per.snapshot"]
        return count

    def make() -> ShareStates:
        from headrace.cores.share_state import ShareStates  # noqa: PLC0415

        return ShareStates(broker.metadata, updates_per_snapshot)

    return Coordinator(broker, SHARE_STATE, SHARE_STATE_RECORDS, make)
