"""When a snapshot of the metadata is due, and which old ones may go; Kafka's rules."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.raft.log_mirror import OffsetAndEpoch

if TYPE_CHECKING:
    from collections.abc import Sequence


class SnapshotPolicy(Struct, frozen=True, kw_only=True):
    """The settings about snapshots, under Kafka's names."""

    bytes_between: int = 20 * 1024 * 1024
    """metadata.log.max.record.bytes.between.snapshots"""
    interval_ms: int = 3_600_000
    """metadata.log.max.snapshot.interval.ms; 0 is never by time"""
    retention_bytes: int = 100 * 1024 * 1024
    """metadata.max.retention.bytes"""
    retention_ms: int = 7 * 24 * 3_600_000
    """metadata.max.retention.ms"""

    def is_due(self, *, bytes_since: int, oldest_ms: int | None, now_ms: int) -> bool:
        """Whether to write one, given what was committed since the last: how much, and since when."""
        if oldest_ms is None:
            return False
        by_time = self.interval_ms > 0 and now_ms - oldest_ms >= self.interval_ms
        return bytes_since >= self.bytes_between or by_time


class KeptSnapshot(Struct, frozen=True):
    """A snapshot on disk."""

    id: OffsetAndEpoch
    size: int
    timestamp_ms: int


def keep_from(
    snapshots: Sequence[KeptSnapshot], *, log_bytes: int, policy: SnapshotPolicy, now_ms: int
) -> OffsetAndEpoch | None:
    """The oldest snapshot to keep, if older ones (and the log before it) may go; the newest always stays."""
    total = log_bytes + sum(one.size for one in snapshots)
    kept: OffsetAndEpoch | None = None
    for old, following in pairwise(snapshots):
        too_large = 0 <= policy.retention_bytes < total
        too_old = 0 <= policy.retention_ms < now_ms - old.timestamp_ms
        if not too_large and not too_old:
            break
        total -= old.size
        kept = following.id
    return kept
