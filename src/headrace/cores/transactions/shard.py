"""All transactional ids on one partition of `__transaction_state`.

Each id's state is the last record of it in the log, nothing more; `emit` is the only way to change it.
What a step decides at once, Kafka decides in two moves with a pending state between them: here a state is entered as
soon as its record is decided, and whoever asks next waits until that record is safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.outcome import Outcome
from headrace.cores.transactions import ending, expiry
from headrace.cores.transactions.state import PREPARED, PREVIOUS
from headrace.cores.transactions.transaction import NO_EPOCH, from_record, to_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.outcome import TimerKey
    from headrace.cores.transactions.limits import TransactionLimits
    from headrace.cores.transactions.transaction import Transaction
    from headrace.model.transaction_records import TransactionLogKey, TransactionLogValue


class Transactions:
    """The core of one shard of the transaction coordinator."""

    __slots__ = ("_last_epochs", "_limits", "transactions")

    def __init__(self, limits: Callable[[], TransactionLimits]) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._limits = limits
        self._last_epochs: dict[str, int] = {}
        """The epoch before the current one, where only the producer that had it can have asked for the new one.

        Not in the log, as Kafka's: a producer that repeats its question to the next coordinator is fenced.
        """

    @property
    def limits(self) -> TransactionLimits:
        """The settings as they are now."""
        return self._limits()

    # --- the log

    def replay(self, key: TransactionLogKey, value: TransactionLogValue | None, producer_id: int = -1) -> None:
        """Take in one record; nobody writes here in a transaction of their own."""
        assert producer_id == -1
        if value is None:
            self.transactions.pop(key.transactional_id, None)
            self._last_epochs.pop(key.transactional_id, None)
        else:
            self.transactions[key.transactional_id] = from_record(key, value)

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """No transaction ends on this topic."""

    def loaded(self, now_ms: int) -> Outcome:
        """The log has been read: markers that may be missing are written again, and the clocks start."""
        outcome = Outcome()
        outcome.effects += [
            ending.markers_of(transaction)
            for transaction in self.transactions.values()
            if transaction.state in PREPARED
        ]
        expiry.start(self, outcome, now_ms)
        return outcome

    def on_timer(self, key: TimerKey, now_ms: int) -> Outcome:
        """A timer has run out."""
        return expiry.TIMERS[key[0]](self, now_ms)

    # --- for steps

    def emit(self, outcome: Outcome, transaction: Transaction, *, last_epoch: int | None = None) -> None:
        """Move a transactional id on: at once here, and in the log when the step is over.

        `last_epoch` is the epoch that a repeated question may carry from now on, where that changes.
        """
        old = self.transactions.get(transaction.transactional_id)
        assert old is None or old.state in PREVIOUS[transaction.state], f"{old} cannot become {transaction}"
        key, value = to_record(transaction)
        self.replay(key, value)
        outcome.records.append((key, value))
        if last_epoch is not None:
            self._last_epochs[transaction.transactional_id] = last_epoch

    def forget(self, outcome: Outcome, transactional_id: str) -> None:
        """Remove a transactional id."""
        key, _ = to_record(self.transactions[transactional_id])
        self.replay(key, None)
        outcome.records.append((key, None))

    def last_epoch(self, transactional_id: str) -> int:
        """The epoch that a repeated question may still carry."""
        return self._last_epochs.get(transactional_id, NO_EPOCH)

    def hard_state(self) -> dict[str, Any]:
        """All that is a function of the log, in a form that can be compared."""
        return dict(self.transactions)
