"""What the core wants done; a shell does it in the order given."""

from __future__ import annotations

from collections.abc import Sized

from msgspec import Struct

from headrace.cores.raft.inputs import Token
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.messages import Batch, Request, Response
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.voters import Endpoints, VoterSet
from headrace.model.errors import ErrorCode


class Persist(Struct, frozen=True):
    """Write the quorum state down; it must be safe before anything behind it in the list is done."""

    state: QuorumState


class TruncateLog(Struct, frozen=True):
    """Cut the log off at an offset; the cut must be safe, or be undone whole by a crash, never half."""

    offset: int


class AppendRecords(Struct, frozen=True):
    """Append what was proposed, or what a fetch brought, with these offsets and epochs; no flush yet."""

    batches: tuple[Batch, ...]


class LeaderChange(Struct, frozen=True):
    """The LeaderChangeMessage with which each epoch begins."""

    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


class KRaftVersion(Struct, frozen=True):
    """The KRaftVersionRecord that precedes the first voter set of a log."""

    version: int


class Voters(Struct, frozen=True):
    """A VotersRecord."""

    voters: VoterSet


class AppendControl(Struct, frozen=True):
    """Append control records as one batch."""

    base_offset: int
    epoch: int
    records: tuple[LeaderChange | KRaftVersion | Voters, ...]


class FlushLog(Struct, frozen=True):
    """Flush the log as far as it goes now; tell with Flushed and the same numbers. May take its time."""

    offset: int
    generation: int


class Send(Struct, frozen=True):
    """Ask a replica something."""

    to: int
    endpoints: Endpoints
    """Where it listens; empty for bootstrap servers, which have negative numbers."""
    correlation: int
    request: Request


class Answer(Struct, frozen=True):
    """Answer a request."""

    token: Token
    response: Response
    read_from: int | None = None
    """In the answer to a fetch: put in the batches from this offset on, as many as its size allows, at least one.
    In the answer to a FetchSnapshot: put in the piece of the snapshot from this position, and its size."""


class Proposed(Struct, frozen=True):
    """How a proposal fared: appended at an offset, which is committed when the high watermark is above the last."""

    error: ErrorCode
    base_offset: int = -1
    epoch: int = -1


class AnswerProposal(Struct, frozen=True):
    """Answer a proposal."""

    token: Token
    proposed: Proposed


class HighWatermarkMoved(Struct, frozen=True):
    """All records below are committed; the state machine may have them."""

    offset: int


class LeaderKnown(Struct, frozen=True):
    """The leader or the epoch has changed; the leader may be nobody."""

    leader_id: int
    epoch: int
    endpoints: Endpoints


class BecameLeader(Struct, frozen=True):
    """This replica leads; its controller must wait for LeadershipReady."""

    epoch: int
    epoch_start_offset: int


class LeadershipReady(Struct, frozen=True):
    """Everything earlier leaders committed is known to be committed: apply it, then lead."""

    epoch: int


class LeadershipLost(Struct, frozen=True):
    """This replica leads no longer; what it proposed and is not committed may be lost."""

    epoch: int


class WriteSnapshotPiece(Struct, frozen=True):
    """Keep a piece of a leader's snapshot; position 0 starts it anew."""

    snapshot_id: OffsetAndEpoch
    position: int
    data: Sized


class LoadSnapshot(Struct, frozen=True):
    """The snapshot is complete: make it safe, empty the log and start it behind it, load it, tell SnapshotLoaded."""

    snapshot_id: OffsetAndEpoch


class RaiseLogStart(Struct, frozen=True):
    """Delete the records that a snapshot covers, and the snapshots before it."""

    snapshot_id: OffsetAndEpoch


class Wake(Struct, frozen=True):
    """Give a Tick at this time; it replaces the last one."""

    at_ms: int


class ShutdownComplete(Struct, frozen=True):
    """The quorum can do without this replica."""


class Halt(Struct, frozen=True):
    """Something happened that must not: stop this replica, and let a person look."""

    reason: str


Output = (
    Persist
    | TruncateLog
    | AppendRecords
    | AppendControl
    | FlushLog
    | Send
    | Answer
    | AnswerProposal
    | HighWatermarkMoved
    | LeaderKnown
    | BecameLeader
    | LeadershipReady
    | LeadershipLost
    | WriteSnapshotPiece
    | LoadSnapshot
    | RaiseLogStart
    | Wake
    | ShutdownComplete
    | Halt
)
