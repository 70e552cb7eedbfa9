"""The knobs of a quorum, under Kafka's names (`controller.quorum.*`) and with its defaults."""

from __future__ import annotations

from msgspec import Struct

from headrace.cores.raft.voters import Endpoints

OBSERVERS_MAX = 10_000
"""How many observers a leader keeps account of; the one not seen for longest gives way."""
PARKED_MAX = 10_000
"""How many fetches may wait at a leader; one more is answered at once."""
OBSERVER_SESSION_MS = 300_000
"""An observer that has not fetched for so long is no longer listed."""
CAUGHT_UP_WITHIN_MS = 3_600_000
"""A replica that is to become a voter must have fetched within this time."""


class QuorumConfig(Struct, frozen=True, kw_only=True):
    """How one replica behaves."""

    cluster_id: str = ""
    endpoints: Endpoints = ()
    """Where this replica listens, the default listener first."""
    bootstrap_servers: int = 0
    """How many bootstrap servers the shell knows; they are asked as nodes -2, -3 and so on, like in Kafka."""
    election_timeout_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    election_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    fetch_wait_max_ms: int = 500
    """How long a leader may keep a fetch waiting for news."""
    snapshot_bytes_max: int = 1 << 20
    """How much of a snapshot is asked for at once."""

    @property
    def check_quorum_timeout_ms(self) -> int:
        """A leader that hears of no majority for so long resigns: half as long again as followers wait."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        """How often a leader presents itself to voters that do not fetch."""
        return self.fetch_timeout_ms // 2
