"""What replicas say to each other: Kafka's messages with the same facts, without versions and topic nesting.

Each response tells the leader and the epoch its sender knows, whatever else it says; that is how news travels.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from msgspec import Struct

from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.voters import KRAFT_VERSION_MAX, NOBODY, Endpoints, ReplicaKey, VoterSet
from headrace.model.errors import ErrorCode

UNKNOWN_HIGH_WATERMARK = -1
HIGH_WATERMARK_UNTOLD = 2**63 - 1
"""What a fetch of a version without the field (KIP-1166) says: never wake me for a high watermark."""


class Request(Struct, frozen=True, kw_only=True):
    """A question to another replica."""

    cluster_id: str | None = None


class Response(Struct, frozen=True, kw_only=True):
    """An answer, and the latest its sender knows of the leader."""

    error: ErrorCode = ErrorCode.NONE
    leader_id: int = NOBODY
    epoch: int = 0
    endpoints: Endpoints = ()
    """Where the leader listens; empty if unknown, or if the version has no field for it."""


class VoteRequest(Request, frozen=True, kw_only=True):
    """Vote (52): may I lead; or, as a pre-vote (KIP-996), would you let me, without anything being written down."""

    voter: ReplicaKey | None = None
    """Whom it is meant for."""
    epoch: int
    candidate: ReplicaKey
    last_offset: int
    last_epoch: int
    pre_vote: bool = False


class VoteResponse(Response, frozen=True, kw_only=True):
    """Answers a Vote."""

    granted: bool = False


class BeginQuorumEpochRequest(Request, frozen=True, kw_only=True):
    """BeginQuorumEpoch (53): I lead."""

    voter: ReplicaKey | None = None
    leader_id: int
    epoch: int
    endpoints: Endpoints = ()


class BeginQuorumEpochResponse(Response, frozen=True, kw_only=True):
    """Answers a BeginQuorumEpoch."""


class EndQuorumEpochRequest(Request, frozen=True, kw_only=True):
    """EndQuorumEpoch (54): I lead no longer; those named first should try first."""

    leader_id: int
    epoch: int
    preferred: tuple[ReplicaKey, ...] = ()
    endpoints: Endpoints = ()


class EndQuorumEpochResponse(Response, frozen=True, kw_only=True):
    """Answers an EndQuorumEpoch."""


class Batch(Struct, frozen=True):
    """Some records of one epoch that follow each other; the bytes are the shell's business."""

    base_offset: int
    count: int
    epoch: int
    voters: VoterSet | None = None
    """The voter set, if the batch has a VotersRecord (the last one, and no other record behind it)."""
    records: Any = None


class FetchRequest(Request, frozen=True, kw_only=True):
    """Fetch (1) of the metadata log; the offset says what the replica has flushed."""

    replica: ReplicaKey
    epoch: int
    fetch_offset: int
    last_epoch: int
    max_wait_ms: int = 0
    high_watermark: int = HIGH_WATERMARK_UNTOLD
    """The highest the replica knows (KIP-1166): it is told at once if there is a higher one."""


class FetchResponse(Response, frozen=True, kw_only=True):
    """Answers a Fetch: records, or where the logs diverge, or which snapshot to get first."""

    high_watermark: int = UNKNOWN_HIGH_WATERMARK
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    batches: tuple[Batch, ...] = ()


class FetchSnapshotRequest(Request, frozen=True, kw_only=True):
    """FetchSnapshot (59): a piece of a snapshot from a position on."""

    replica: ReplicaKey
    epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int = 2**31 - 1


class FetchSnapshotResponse(Response, frozen=True, kw_only=True):
    """Answers a FetchSnapshot."""

    snapshot_id: OffsetAndEpoch | None = None
    size: int = 0
    position: int = 0
    data: Sized = b""


class DescribeQuorumRequest(Request, frozen=True, kw_only=True):
    """DescribeQuorum (55)."""


class ReplicaStatus(Struct, frozen=True):
    """How far one replica is; the times are of the core's clock, -1 if unknown."""

    key: ReplicaKey
    end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    endpoints: Endpoints = ()


class DescribeQuorumResponse(Response, frozen=True, kw_only=True):
    """Answers a DescribeQuorum."""

    high_watermark: int = UNKNOWN_HIGH_WATERMARK
    voters: tuple[ReplicaStatus, ...] = ()
    observers: tuple[ReplicaStatus, ...] = ()


class AddVoterRequest(Request, frozen=True, kw_only=True):
    """AddRaftVoter (80)."""

    voter: ReplicaKey
    endpoints: Endpoints
    timeout_ms: int
    ack_when_committed: bool = True


class AddVoterResponse(Response, frozen=True, kw_only=True):
    """Answers an AddRaftVoter."""

    message: str = ""


class RemoveVoterRequest(Request, frozen=True, kw_only=True):
    """RemoveRaftVoter (81)."""

    voter: ReplicaKey


class RemoveVoterResponse(Response, frozen=True, kw_only=True):
    """Answers a RemoveRaftVoter."""

    message: str = ""


class UpdateVoterRequest(Request, frozen=True, kw_only=True):
    """UpdateRaftVoter (82): a voter listens elsewhere now."""

    voter: ReplicaKey
    epoch: int
    endpoints: Endpoints
    kraft_versions: tuple[int, int] = (0, KRAFT_VERSION_MAX)


class UpdateVoterResponse(Response, frozen=True, kw_only=True):
    """Answers an UpdateRaftVoter."""


class KRaftVersionsRequest(Request, frozen=True, kw_only=True):
    """ApiVersions (18), asked of a replica that is to become a voter: which `kraft.version` does it speak?"""


class KRaftVersionsResponse(Response, frozen=True, kw_only=True):
    """Answers with the `kraft.version` feature of ApiVersions; its epoch and leader mean nothing."""

    kraft_versions: tuple[int, int] = (0, 0)
