"""What happens by itself: transactions that take too long are aborted, ids that nobody uses are forgotten.

Both are looked for from time to time, as Kafka does it, rather than by a timer for each: ending in time is the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cores.outcome import Outcome
from headrace.cores.transactions.ending import NeedsProducerId, fence
from headrace.cores.transactions.state import IDLE, TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.transactions.shard import Transactions
    from headrace.cores.transactions.transaction import Transaction

ABORT = "abort timed out"
REMOVE = "remove expired"

RECORDS_MAX = 500
"""What one step decides at most: its records are one batch, and a batch must fit the topic's limits."""


def start(core: Transactions, outcome: Outcome, now_ms: int) -> None:
    """Set both timers."""
    outcome.wake((ABORT,), now_ms + core.limits.abort_interval_ms)
    outcome.wake((REMOVE,), now_ms + core.limits.removal_interval_ms)


def abort_timed_out(core: Transactions, now_ms: int) -> Outcome:
    """Abort what has been open for longer than its producer allowed, and fence the producer."""
    outcome = Outcome()
    late = [transaction for transaction in core.transactions.values() if _is_late(transaction, now_ms)]
    for transaction in late[:RECORDS_MAX]:
        if not fence(core, outcome, transaction, None, now_ms):
            outcome.effects.append(NeedsProducerId(transaction.transactional_id))
    pause_ms = 0 if len(late) > RECORDS_MAX else core.limits.abort_interval_ms
    outcome.wake((ABORT,), now_ms + pause_ms)
    return outcome


def abort_late(core: Transactions, transactional_id: str, fresh_producer_id: int, now_ms: int) -> Outcome:
    """Abort one transaction that has timed out, now that there is a producer id to go on with."""
    outcome = Outcome()
    transaction = core.transactions.get(transactional_id)
    if transaction is not None and _is_late(transaction, now_ms):
        fence(core, outcome, transaction, fresh_producer_id, now_ms)
    return outcome


def remove_expired(core: Transactions, now_ms: int) -> Outcome:
    """Forget ids that have been idle for long."""
    outcome = Outcome()
    oldest_ms = now_ms - core.limits.id_expiration_ms
    expired = [
        transactional_id
        for transactional_id, transaction in core.transactions.items()
        if transaction.state in IDLE and transaction.updated_ms <= oldest_ms
    ]
    for transactional_id in expired[:RECORDS_MAX]:
        core.forget(outcome, transactional_id)
    pause_ms = 0 if len(expired) > RECORDS_MAX else core.limits.removal_interval_ms
    outcome.wake((REMOVE,), now_ms + pause_ms)
    return outcome


def _is_late(transaction: Transaction, now_ms: int) -> bool:
    return transaction.state is TransactionState.ONGOING and transaction.started_ms + transaction.timeout_ms < now_ms


TIMERS: dict[str, Callable[[Transactions, int], Outcome]] = {ABORT: abort_timed_out, REMOVE: remove_expired}
