"""A producer claims its transactional id: it gets the next epoch, and whoever had the id before is fenced.

A producer that was there before says who it was (KIP-360), so that a question it had to repeat gets the same answer
and a producer that was replaced meanwhile is told so. A transaction that is still open is aborted first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.outcome import Outcome, Token
from headrace.cores.transactions.ending import NeedsProducerId, fence
from headrace.cores.transactions.refusals import concurrent, fenced
from headrace.cores.transactions.state import PREPARED, TransactionState
from headrace.cores.transactions.transaction import (
    EPOCH_LAST,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NOT_STARTED,
    ProducerIdentity,
    Transaction,
)
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.cores.transactions.shard import Transactions


class InitProducerId(Struct, frozen=True, kw_only=True):
    """A producer comes up, or comes back."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None
    """Who it was, if it was somebody."""
    fresh_producer_id: int | None = None


def init_producer_id(core: Transactions, command: InitProducerId, token: Token, now_ms: int) -> Outcome:
    """Give a producer its identity; the reply may be NeedsProducerId instead."""
    outcome = Outcome()
    answer: ProducerIdentity | NeedsProducerId | KafkaError
    try:
        answer = _init(core, outcome, command, now_ms)
    except KafkaError as error:
        answer = error
    return outcome.reply(token, answer)


def _init(
    core: Transactions, outcome: Outcome, command: InitProducerId, now_ms: int
) -> ProducerIdentity | NeedsProducerId | KafkaError:
    if not 0 < command.timeout_ms <= core.limits.timeout_ms_max:
        raise KafkaError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"The transaction timeout {command.timeout_ms} ms is not between 1 and {core.limits.timeout_ms_max} ms,"
            " the value of transaction.max.timeout.ms.",
        )
    transaction = core.transactions.get(command.transactional_id)
    if transaction is None:
        if command.fresh_producer_id is None:
            return NeedsProducerId(command.transactional_id)
        transaction = Transaction(
            transactional_id=command.transactional_id,
            producer_id=command.fresh_producer_id,
            producer_epoch=NO_EPOCH,
            state=TransactionState.EMPTY,
            timeout_ms=command.timeout_ms,
            updated_ms=now_ms,
        )
        return _claim(core, outcome, transaction, command, now_ms)
    if command.expected is not None and not _may_be(transaction, command.expected):
        raise fenced(command.transactional_id)
    if transaction.state in PREPARED:
        raise concurrent(command.transactional_id)
    if transaction.state is TransactionState.ONGOING:
        return _interrupt(core, outcome, transaction, command, now_ms)
    return _claim(core, outcome, transaction, command, now_ms)


def _may_be(transaction: Transaction, expected: ProducerIdentity) -> bool:
    """Whether who it says it was has, or had just before, the transactional id; its epoch is looked at later."""
    return expected.producer_id == transaction.producer_id or (
        expected.producer_id == transaction.previous_producer_id and expected.producer_epoch >= EPOCH_LAST
    )


def _interrupt(
    core: Transactions, outcome: Outcome, transaction: Transaction, command: InitProducerId, now_ms: int
) -> NeedsProducerId | KafkaError:
    """A transaction is open: abort it, and let the producer ask again when that is done."""
    if command.expected is not None and not _is_known(core, transaction, command.expected):
        # Kafka aborts here for a producer that it will fence afterwards; the transaction of the rightful one lives on.
        raise fenced(command.transactional_id)
    if not fence(core, outcome, transaction, command.fresh_producer_id, now_ms):
        return NeedsProducerId(command.transactional_id)
    return concurrent(command.transactional_id)


def _is_known(core: Transactions, transaction: Transaction, expected: ProducerIdentity) -> bool:
    return expected.producer_epoch in (transaction.producer_epoch, core.last_epoch(transaction.transactional_id))


def _claim(
    core: Transactions, outcome: Outcome, transaction: Transaction, command: InitProducerId, now_ms: int
) -> ProducerIdentity | NeedsProducerId:
    """Nothing is open: the next epoch, or the next producer id where no epoch is left."""
    epoch, expected = transaction.producer_epoch, command.expected
    is_new = epoch == NO_EPOCH
    changes: dict[str, int] = {"producer_epoch": epoch + 1}
    last_epoch = NO_EPOCH if expected is None else epoch
    if expected is not None and not is_new and expected.producer_epoch != epoch:
        if expected.producer_epoch != core.last_epoch(command.transactional_id):
            raise fenced(command.transactional_id)
        # The answer to the first question got lost; it is the same again.
        changes, last_epoch = {}, expected.producer_epoch
    elif transaction.is_epoch_exhausted:
        if command.fresh_producer_id is None:
            return NeedsProducerId(command.transactional_id)
        changes = {"producer_id": command.fresh_producer_id, "producer_epoch": 0}
    claimed = transaction.moved(
        TransactionState.EMPTY,
        timeout_ms=command.timeout_ms,
        started_ms=NOT_STARTED,
        updated_ms=max(now_ms, transaction.updated_ms),
        previous_producer_id=NO_PRODUCER_ID if is_new else transaction.producer_id,
        partitions=frozenset(),
        **changes,
    )
    core.emit(outcome, claimed, last_epoch=last_epoch)
    return claimed.identity
