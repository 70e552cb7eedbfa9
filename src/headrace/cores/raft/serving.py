"""Answering fetches: with what there is from an offset on, at once or when there is news."""

from __future__ import annotations

from headrace.cores.raft.inputs import Token
from headrace.cores.raft.log_mirror import Behind, Divergence
from headrace.cores.raft.messages import UNKNOWN_HIGH_WATERMARK, FetchRequest, FetchResponse
from headrace.cores.raft.replica import Replica
from headrace.cores.raft.states import NEVER, Leader


def known_high_watermark(replica: Replica, leader: Leader) -> int:
    """The high watermark as the leader of this epoch can vouch for it."""
    return replica.high_watermark if leader.is_ready else UNKNOWN_HIGH_WATERMARK


def fetch_answer(replica: Replica, leader: Leader, verdict: Divergence | Behind | None = None) -> FetchResponse:
    """An answer without records: how much is committed, or what a replica must do before it can go on."""
    return FetchResponse(
        leader_id=replica.leader_id,
        epoch=replica.epoch,
        endpoints=replica.leader_endpoints,
        high_watermark=known_high_watermark(replica, leader),
        log_start_offset=replica.log.start_offset,
        diverging=verdict.at if isinstance(verdict, Divergence) else None,
        snapshot_id=verdict.snapshot_id if isinstance(verdict, Behind) else None,
    )


def serve(replica: Replica, leader: Leader, token: Token, request: FetchRequest) -> None:
    """Answer a fetch with what there is from its offset on."""
    offset = request.fetch_offset
    if offset < replica.log.start_offset:  # The log was cleaned while the fetch waited.
        replica.answer(token, fetch_answer(replica, leader, replica.log.validate(offset, request.last_epoch)))
        return
    replica.answer(token, fetch_answer(replica, leader), offset if offset < replica.log.end_offset else None)


def serve_parked(replica: Replica, leader: Leader) -> int:
    """Answer the fetches for which there is news or no more time; gives when to look again."""
    wake_ms = NEVER
    if not leader.parked:
        return wake_ms
    high_watermark = known_high_watermark(replica, leader)
    end_offset, now_ms = replica.log.end_offset, replica.now_ms
    for key, parked in [*leader.parked.items()]:
        request = parked.request
        if request.fetch_offset < end_offset or high_watermark > request.high_watermark or now_ms >= parked.deadline_ms:
            del leader.parked[key]
            serve(replica, leader, parked.token, request)
        else:
            wake_ms = min(wake_ms, parked.deadline_ms)
    return wake_ms
