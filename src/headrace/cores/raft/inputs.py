"""What a shell tells the core; each is one `step`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.messages import Request, Response
from headrace.cores.raft.voters import VoterSet

Token = Any
"""Who waits for an answer; the shell's business, the core only hands it back."""


class Tick(Struct, frozen=True):
    """Time has passed; give it at the time of the last Wake, and whenever you like."""


class Received(Struct, frozen=True):
    """Another replica, or a client, asks something."""

    token: Token
    request: Request


class Answered(Struct, frozen=True):
    """A replica answers what was sent to it."""

    sender: int
    """The node as it stood in the Send, a bootstrap server's negative number too."""
    correlation: int
    response: Response


class SendFailed(Struct, frozen=True):
    """A request will not be answered: no connection, or it broke."""

    receiver: int
    correlation: int


class Propose(Struct, frozen=True):
    """The controller wants records appended; answered at once with a Proposed."""

    token: Token
    epoch: int
    """The epoch the records were decided in: leaders of others refuse them."""
    count: int
    records: Any = None


class Flushed(Struct, frozen=True):
    """A flush that was wanted is done."""

    offset: int
    generation: int


class SnapshotWritten(Struct, frozen=True):
    """The state machine has written a snapshot of committed records, and it is safe."""

    snapshot_id: OffsetAndEpoch


class CleanBefore(Struct, frozen=True):
    """What a snapshot covers is not to be kept any longer."""

    snapshot_id: OffsetAndEpoch


class SnapshotLoaded(Struct, frozen=True):
    """LoadSnapshot is done: the snapshot is safe, the log starts behind it, the state machine has it."""

    snapshot_id: OffsetAndEpoch
    voters: VoterSet | None
    """The voter set in the snapshot, if it has one."""


class Resign(Struct, frozen=True):
    """The controller cannot go on leading in an epoch."""

    epoch: int


class Shutdown(Struct, frozen=True):
    """Hand over if this is the leader, and start no more elections; answered by ShutdownComplete."""

    timeout_ms: int


Input = (
    Tick
    | Received
    | Answered
    | SendFailed
    | Propose
    | Flushed
    | SnapshotWritten
    | CleanBefore
    | SnapshotLoaded
    | Resign
    | Shutdown
)
