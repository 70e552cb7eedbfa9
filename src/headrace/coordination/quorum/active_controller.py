"""Deciding while this node leads: against an image ahead of the commit, with replies when that has caught up.

A decision is replayed into the ahead image at once, so that the next one knows of it though neither is committed.
What was decided is written to the log before the core hears of it: a full disk refuses a command, not the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from headrace.cores.controller.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.model.metadata_records import AbortTransactionRecord

if TYPE_CHECKING:
    import asyncio

    from headrace.coordination.quorum.metadata_log import Decision, MetadataLog
    from headrace.cores.controller import Command
    from headrace.cores.metadata import Metadata

Reply = TypeVar("Reply")


class ActiveController:
    """One epoch's controller."""

    def __init__(self, ahead: Metadata, epoch: int, log: MetadataLog) -> None:
        self.ahead = ahead
        self.epoch = epoch
        self.last: asyncio.Future[None] | None = None
        """Ends when the last decision is committed."""
        self._log = log

    def decide(self, command: Command[Reply]) -> tuple[Reply, Decision | None]:
        """Take one decision and write it down; the reply is true when it is committed, with all before it."""
        outcome = command(self.ahead)
        if not outcome.records:
            return outcome.reply, None
        try:
            decision = self._log.append_decision(outcome.records, self.epoch)
        except StorageFault as fault:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log cannot be written: {fault}") from fault
        try:
            for record in outcome.records:
                self.ahead.replay(record)
        except Exception as mistake:
            # A mistake of ours. Whoever replays the record would fail, too, so it must not stay in the log.
            self._log.withdraw(decision)
            raise StorageFault(f"A decision cannot be replayed: {mistake!r}") from mistake
        return outcome.reply, decision

    def abort_transaction(self) -> Decision:
        """End what an earlier leader left half done, before all else: readers would hold back what comes after it."""
        abort = AbortTransactionRecord(reason="The controller that began it no longer leads.")
        _, decision = self.decide(lambda _: Outcome([abort], None))
        assert decision is not None
        return decision
