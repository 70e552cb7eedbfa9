"""Which replica a consumer should read from: one in its own rack, if it has what is asked for (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cores.replication.leader import Leader

THE_LEADER = -1
"""What the answer to a fetch says where the leader is as good as any."""


def preferred_read_replica(
    leader: Leader,
    *,
    leader_id: int,
    client_rack: str,
    fetch_offset: int,
    racks: Mapping[int, str | None],
    now_ms: int,
) -> int:
    """The in-sync replica in the consumer's rack that is the furthest; `racks` has the brokers it can reach.

    Only of the ISR: a consumer sent to a replica that lags would lag with it, and be sent there again.
    """
    if not client_rack or racks.get(leader_id) == client_rack:
        return THE_LEADER
    candidates = [
        (follower.offset, follower.last_caught_up_ms - now_ms, follower.broker_id)
        for follower in leader.followers.values()
        if follower.broker_id in leader.isr.committed
        and racks.get(follower.broker_id) == client_rack
        and follower.log_start_offset <= fetch_offset <= follower.offset
    ]
    return max(candidates)[-1] if candidates else THE_LEADER
