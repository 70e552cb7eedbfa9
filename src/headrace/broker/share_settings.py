"""The settings that the leader of a share partition goes by: the broker's, and over them the group's own (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.cores.groups.share_limits import bounded
from headrace.cores.metadata import RESOURCE_GROUP
from headrace.cores.share_partition import ShareLimits

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
READ_COMMITTED: Final = "read_committed"


def share_limits(broker: Broker, group_id: str) -> ShareLimits:
    """What a group's settings allow just now."""
    overrides = broker.metadata.configs(RESOURCE_GROUP, group_id)
    return ShareLimits(
        locks_max=bounded(broker.config, overrides, "partition.max.record.locks"),
        deliveries_max=bounded(broker.config, overrides, "delivery.count.limit"),
        lock_duration_ms=bounded(broker.config, overrides, "record.lock.duration.ms"),
        is_renewing_allowed=overrides.get("share.renew.acknowledge.enable", "true").strip().lower() != "false",
    )


def reads_committed(broker: Broker, group_id: str) -> bool:
    """Whether a group must not see records of transactions that were aborted or are still open."""
    level = broker.metadata.configs(RESOURCE_GROUP, group_id).get("share.isolation.level", "")
    return level.strip().lower() == READ_COMMITTED


def offset_reset(broker: Broker, group_id: str) -> str:
    """Where a group begins to read a partition: `latest`, `earliest`, or `by_duration:` and an ISO 8601 duration."""
    return broker.metadata.configs(RESOURCE_GROUP, group_id).get("share.auto.offset.reset", LATEST).strip()
