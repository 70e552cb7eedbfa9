"""Looking at transactions: one by its id, or those that fit a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import re2  # type: ignore[import-untyped]
from msgspec import Struct, field

from headrace.cores.outcome import Outcome, Token
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.transactions.shard import Transactions
    from headrace.cores.transactions.state import TransactionState
    from headrace.cores.transactions.transaction import Transaction


PATTERN_LENGTH_MAX = 10_000
"""The longest pattern for ids; Kafka has no limit of its own."""


class TransactionFilter(Struct, frozen=True, kw_only=True):
    """Which transactions to list; what is empty does not matter."""

    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] = field(default_factory=frozenset)
    longer_than_ms: int = -1
    matches_id: Callable[[str], bool] | None = None

    def fits(self, transaction: Transaction, now_ms: int) -> bool:
        """Whether a transaction is to be listed."""
        return (
            (not self.producer_ids or transaction.producer_id in self.producer_ids)
            and (self.states is None or transaction.state in self.states)
            and (self.longer_than_ms < 0 or now_ms - transaction.started_ms > self.longer_than_ms)
            and (self.matches_id is None or self.matches_id(transaction.transactional_id))
        )


def id_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a regular expression matches a whole id; RE2's dialect as in Kafka, which no pattern can slow down."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise _not_a_pattern(pattern[:100] + "…")
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise _not_a_pattern(pattern) from error
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None


def _not_a_pattern(pattern: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"Transaction ID pattern `{pattern}` is not a valid regular expression."
    )


def describe(core: Transactions, transactional_id: str, token: Token, now_ms: int) -> Outcome:
    """Show one transactional id; the reply is a Transaction."""
    transaction = core.transactions.get(transactional_id)
    if transaction is None:
        missing = KafkaError(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"No transactional id {transactional_id!r} is known."
        )
        return Outcome().reply(token, missing)
    return Outcome().reply(token, transaction)


def list_transactions(core: Transactions, wanted: TransactionFilter, token: Token, now_ms: int) -> Outcome:
    """Find those that fit; the reply is a list of Transactions."""
    return Outcome().reply(token, [each for each in core.transactions.values() if wanted.fits(each, now_ms)])
