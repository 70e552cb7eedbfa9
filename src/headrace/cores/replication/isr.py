"""The in-sync replicas of a partition: those the controller has committed, and those asked for (KIP-497).

One change is under way at a time. While it is, nobody can know which of the two sets the controller would elect from,
so whoever is in either of them counts: a replica that shall come in counts at once, one that shall go counts until the
controller has said so.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from headrace.cores.replication.messages import AlterPartition
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.cores.replication.messages import AlterAnswer


class Reaction(Enum):
    """What to do when the controller refuses a change."""

    RESET = "it was not applied and cannot be any more: go back to what is committed"
    AWAIT_METADATA = "our view is out of date: newer metadata is under way and will decide"
    RETRY = "ask again"


REACTIONS = {
    ErrorCode.INELIGIBLE_REPLICA: Reaction.RESET,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.RESET,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.AWAIT_METADATA,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.AWAIT_METADATA,
    ErrorCode.FENCED_LEADER_EPOCH: Reaction.AWAIT_METADATA,
    ErrorCode.INVALID_UPDATE_VERSION: Reaction.AWAIT_METADATA,
    ErrorCode.INVALID_REQUEST: Reaction.AWAIT_METADATA,
    ErrorCode.NEW_LEADER_ELECTED: Reaction.AWAIT_METADATA,
}
"""By error; any other is worth another try.

To go back on a refusal is safe only if no copy of the request can be applied later. So whoever sends them must not let
one that is sent again overtake the one before, nor take the late answer to that one for the answer to this.
"""


class InSyncReplicas:
    """The committed ISR, the largest it may have become, and the change that is under way."""

    __slots__ = ("committed", "maximal", "outgoing", "partition_epoch", "pending")

    def __init__(self, isr: Iterable[int], partition_epoch: int) -> None:
        self.committed = frozenset(isr)
        self.maximal = self.committed
        """Everyone the high watermark has to wait for."""
        self.partition_epoch = partition_epoch
        self.pending: AlterPartition | None = None
        """The change asked for, until it is decided."""
        self.outgoing: AlterPartition | None = None
        """The same, while it waits to be sent."""

    def commit(self, isr: Iterable[int], partition_epoch: int) -> None:
        """Take over what the controller committed; a change that was based on an older state is off.

        The same state told again (by the answer to an AlterPartition, then by the metadata) leaves a change that is
        based on it as it is: it may yet be applied.
        """
        if partition_epoch == self.partition_epoch and self.pending is not None:
            return
        self.committed = self.maximal = frozenset(isr)
        self.partition_epoch = partition_epoch
        self.pending = self.outgoing = None

    def propose(self, isr: Iterable[tuple[int, int]], leader_epoch: int) -> None:
        """Ask for another ISR, given with broker epochs."""
        assert self.pending is None
        self.pending = self.outgoing = AlterPartition(
            leader_epoch=leader_epoch, partition_epoch=self.partition_epoch, isr=tuple(isr)
        )
        self.maximal = self.committed.union(self.pending.broker_ids)

    def refused(self, error: ErrorCode) -> Reaction:
        """The controller did not apply the pending change."""
        reaction = REACTIONS.get(error, Reaction.RETRY)
        if reaction is Reaction.RESET:
            self.maximal = self.committed
            self.pending = self.outgoing = None
        elif reaction is Reaction.RETRY:
            self.outgoing = self.pending
        return reaction

    def accepted(self, answer: AlterAnswer) -> bool:
        """The controller answered the pending change with a state; False if we know a newer one."""
        if answer.partition_epoch < self.partition_epoch:
            return False
        self.pending = self.outgoing = None
        self.commit(answer.isr, answer.partition_epoch)
        return True
