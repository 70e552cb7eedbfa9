"""Which partitions a transaction has: they are named before anything is written to them, so that none is forgotten.

Older producers name them with AddPartitionsToTxn; for the newer ones the partition's leader does it on the first write
(KIP-890). A leader asks about every first write, so that a late one cannot open a transaction that nobody will end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.cores.outcome import Outcome, Token
from headrace.cores.transactions.refusals import concurrent, fenced, unmapped
from headrace.cores.transactions.state import PREPARED, TransactionState
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.cores.transactions.shard import Transactions
    from headrace.cores.transactions.transaction import TopicPartition, Transaction

Verdicts = dict["TopicPartition", ErrorCode]
"""For each partition asked about, whether it is in the transaction."""


class TransactionPartitions(Struct, frozen=True, kw_only=True):
    """Partitions that a producer writes to, or wants to."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    transaction_version: int = 0


def add_partitions(core: Transactions, command: TransactionPartitions, token: Token, now_ms: int) -> Outcome:
    """Take partitions into the transaction, which begins with the first of them; the reply is None."""
    outcome = Outcome()
    try:
        transaction = _find(core, command)
    except KafkaError as error:
        return outcome.reply(token, error)
    is_open = transaction.state is TransactionState.ONGOING
    if not (is_open and command.partitions <= transaction.partitions):
        updated_ms = max(now_ms, transaction.updated_ms)
        opened = transaction.moved(
            TransactionState.ONGOING,
            partitions=transaction.partitions | command.partitions,
            started_ms=transaction.started_ms if is_open else updated_ms,
            updated_ms=updated_ms,
            version=command.transaction_version,
        )
        core.emit(outcome, opened)
    return outcome.reply(token, None)


def verify_partitions(core: Transactions, command: TransactionPartitions, token: Token, now_ms: int) -> Outcome:
    """Say which partitions are in the open transaction; the reply is Verdicts."""
    outcome = Outcome()
    try:
        transaction = _find(core, command)
    except KafkaError as error:
        return outcome.reply(token, error)
    verdicts: Verdicts = {
        partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in command.partitions
    }
    return outcome.reply(token, verdicts)


def _find(core: Transactions, command: TransactionPartitions) -> Transaction:
    """The transactional id's state, if it is the producer's and not between two transactions."""
    transaction = core.transactions.get(command.transactional_id)
    if transaction is None or transaction.producer_id != command.producer_id:
        raise unmapped(command.transactional_id)
    if transaction.producer_epoch != command.producer_epoch:
        raise fenced(command.transactional_id)
    if transaction.state in PREPARED:
        raise concurrent(command.transactional_id)
    return transaction
